"""Whether a finding of a paper holds by our results: decided from the tables, each time anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from results_read import Results, Row, number

Measure = Callable[[Row], float]


class Verdict(Enum):
    """What became of a finding."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    NOT = "does not hold"
    NOT_MEASURED = "not measured yet"


@dataclass(frozen=True)
class Judged:
    """A verdict, and what it rests on."""

    verdict: Verdict
    ours: str


Judge = Callable[[Results], Judged]


def of(column: str) -> Measure:
    """The number in a column."""
    return lambda row: number(row[column])


def ratio(dividend: str, divisor: str) -> Measure:
    """How many times as much as the second column the first one is."""
    return lambda row: number(row[dividend]) / number(row[divisor])


def decided(cases: Sequence[bool], ours: str) -> Judged:
    """All of them, some, or none."""
    verdict = Verdict.HOLDS if all(cases) else Verdict.IN_PART if any(cases) else Verdict.NOT
    return Judged(verdict, ours)


def each_row(
    names: Sequence[str],
    what: str,
    measure: Measure,
    *,
    least: float | None = None,
    most: float | None = None,
    where: Callable[[Row], bool] = lambda row: True,
) -> Judge:
    """A measure of every row lies between two bounds."""

    def judge(results: Results) -> Judged:
        found = [measure(row) for row in results.rows(names) if where(row)]
        cases = [(least is None or each >= least) and (most is None or each <= most) for each in found]
        where_so = f", in {sum(cases)} of {len(cases)} cases as the paper says" if len(cases) > 1 else ""
        return decided(cases, f"{what}: {span(found)}{where_so}")

    return judge


def compared(
    upper: str, lower: str, what: str, measure: Measure, *, least: float = 1.0, most: float | None = None
) -> Judge:
    """A measure of one table against the same measure of another, row by row."""

    def judge(results: Results) -> Judged:
        pairs = list(zip(results[upper].rows, results[lower].rows, strict=True))
        found = [measure(above) / measure(below) for above, below in pairs]
        cases = [each >= least and (most is None or each <= most) for each in found]
        return decided(cases, f"{what}: {span(found)}")

    return judge


def growing(names: Sequence[str], what: str, measure: Measure, *, by: float = 1.0) -> Judge:
    """From the first row to the last a measure grows at least so many times, to more than nothing."""

    def judge(results: Results) -> Judged:
        ends = [(measure(results[name].rows[0]), measure(results[name].rows[-1])) for name in names]
        told = "; ".join(f"{first:.3g} to {last:.3g}" for first, last in ends)
        return decided([last >= by * first and last > 0 for first, last in ends], f"{what}: {told}")

    return judge


def not_growing(names: Sequence[str], what: str, measure: Measure, *, by: float = 1.25) -> Judge:
    """From the first row to the last a measure grows at most so many times."""

    def judge(results: Results) -> Judged:
        ends = [(measure(results[name].rows[0]), measure(results[name].rows[-1])) for name in names]
        told = "; ".join(f"{first:.3g} to {last:.3g}" for first, last in ends)
        return decided([last <= by * first for first, last in ends], f"{what}: {told}")

    return judge


def steady(names: Sequence[str], what: str, measure: Measure, *, within: float = 1.5) -> Judge:
    """The largest of a measure is at most so many times the smallest."""

    def judge(results: Results) -> Judged:
        spreads = [_spread([measure(row) for row in results[name].rows]) for name in names]
        told = ", ".join(f"{each:.2f}" for each in spreads)
        return decided([each <= within for each in spreads], f"{what}, largest by smallest: {told}")

    return judge


def span(found: Sequence[float]) -> str:
    """From the least to the greatest."""
    low, high = (f"{each:.3g}" for each in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"


def _spread(found: Sequence[float]) -> float:
    return max(found) / min(found)


def by_test(test: str, ours: str) -> Judge:
    """Not a matter of time: a test of ours checks it."""
    return lambda results: Judged(Verdict.HOLDS, f"{ours} ({test})")
