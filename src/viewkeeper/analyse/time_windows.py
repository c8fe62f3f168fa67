"""Time windows: GROUP BY window(t, …), as what they stand for, a column of FROM.

    window(t, d)            (start, start + d), where start = t − (t − s) mod d; s is 0 if it is not said
    window(t, d, e, s)      of windows that overlap: start − i·e for i = 0 … ⌈d/e⌉ − 1, one row each,
                            as far as t lies within

A row without a time is in no window. Spark offers the column under the name ``window`` as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.relations import Filter, Generate, Project, Relation
from viewkeeper.algebra.scalars import Named, Scalar, column, compose, keep, words
from viewkeeper.analyse.expressions import Reader, same_key
from viewkeeper.analyse.functions import TIME_WINDOWS
from viewkeeper.analyse.inputs import Inputs, column_lookup
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.scopes import Names, Output

_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
_DURATION = re.compile(r"\s*(?:interval\s+)?((?:[+-]?\d+\s*[a-z]+\s*)+)", re.IGNORECASE)
_PART = re.compile(r"([+-]?\d+)\s*([a-z]+)", re.IGNORECASE)
_MOST = 100
"""Of more windows than these that overlap, every row would become as many."""

_AS_NUMBER = {
    "timestamp": "unix_micros(?)",
    "date": "unix_micros(CAST(? AS TIMESTAMP))",
    # timestampdiff and unix_micros would take it for a time of the session's zone, where hours are left out.
    "timestamp_ntz": "(datediff(CAST(? AS DATE), DATE'1970-01-01') * 86400000000L + hour(?) * 3600000000L "
    "+ minute(?) * 60000000L + CAST(extract(SECOND FROM ?) * 1000000 AS BIGINT))",
}
_AS_TIME = {
    "timestamp": "timestamp_micros(?)",
    "date": "timestamp_micros(?)",
    # Without a zone a day has 24 hours, so that an interval is as many microseconds.
    "timestamp_ntz": "(TIMESTAMP_NTZ'1970-01-01 00:00:00' "
    "+ make_dt_interval(0, 0, 0, CAST(? AS DECIMAL(20, 0)) * 0.000001BD))",
}


@dataclass(frozen=True, slots=True)
class _Window:
    """One window function: the column it reads, and three durations in microseconds."""

    time: Scalar
    kind: str
    length: int
    slide: int
    start: int

    @property
    def overlapping(self) -> int:
        return -(-self.length // self.slide)

    def begin(self) -> Scalar:
        """When the last window began that the time may lie in, in microseconds."""
        number = _applied(_AS_NUMBER[self.kind], self.time)
        since = f" - {self.start}L" if self.start else ""
        return compose(number, " - pmod(", number, f"{since}, {self.slide}L)")

    def struct(self, begin: Scalar) -> Scalar:
        """The window that begins then."""
        ends = (begin, compose(begin, f" + {self.length}L"))
        first, last = (_applied(_AS_TIME[self.kind], each) for each in ends)
        return compose("named_struct('start', ", first, ", 'end', ", last, ")")


def _applied(template: str, value: Scalar) -> Scalar:
    """The expression with the value in its holes."""
    words, *rest = template.split("?")
    return compose(words, *(part for each in rest for part in (value, each)))


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Reads the time windows of grouped queries."""

    reader: Reader
    names: Names
    kinds: Mapping[str, str]
    """The types of columns, as far as they are known."""

    def windowed(self, inputs: Inputs, select: exp.Select) -> Inputs:
        """What FROM offers with the window of this SELECT, if it groups by one."""
        calls = list(_calls(select))
        if not calls:
            return inputs
        windows = [self._read(call, inputs) for call in calls]
        if len({(same_key(each.time), each.length, each.slide, each.start) for each in windows}) > 1:
            raise self._stop(calls[0])
        window = windows[0]
        shown = Output("window", self.names.fresh("window"))
        for call in calls:
            self.reader.stand_ins[self.reader.extent(call)] = column(shown.column).parts
        scope = replace(inputs.scope, visible=(*inputs.scope.visible, shown))
        timed = Filter(inputs.relation(), compose(window.time, " IS NOT NULL"))
        begin = self.names.fresh("begin")
        begun: Relation = Project(timed, (*keep(timed.columns), Named(begin, window.begin())))
        since = column(begin)
        if window.overlapping > 1:
            place = self.names.fresh("place")
            begun = Generate(begun, words(f"explode(sequence(0, {window.overlapping - 1}))"), (place,))
            since = compose(since, " - ", column(place), f" * {window.slide}L")
        made = Project(begun, (*keep(timed.columns), Named(shown.column, window.struct(since))))
        within = [
            compose(column(shown.column), ".start <= ", window.time),
            compose(window.time, " < ", column(shown.column), ".end"),
        ]
        return Inputs((made,), () if window.length % window.slide == 0 else tuple(within), scope)

    def _read(self, call: exp.Anonymous, inputs: Inputs) -> _Window:
        time, *durations = call.expressions
        if call.name.lower() != "window" or not isinstance(time, exp.Column) or len(durations) > 3:
            raise self._stop(call)
        scope = inputs.scope
        read = self.reader.scalar(time, column_lookup(scope), scope.names())
        kind = self.kinds.get(next(iter(read.columns)), "") if read.is_column else ""
        told = [_microseconds(each) for each in durations]
        spans = [each for each in told if each is not None]
        if kind not in _AS_NUMBER or not spans or len(spans) < len(durations):
            raise self._stop(call)
        length, slide, start = (*spans, *(spans[0], 0)[len(spans) - 1 :])
        if not 0 < slide <= length or -(-length // slide) > _MOST:
            raise self._stop(call)
        return _Window(read, kind, length, slide, start)

    def _stop(self, call: exp.Anonymous) -> NotIncremental:
        return self.reader.stop(ReasonCode.TIME_WINDOW, call, call.name.lower())


def _calls(select: exp.Select) -> Iterator[exp.Anonymous]:
    """The time windows of a grouped SELECT, those of queries inside it apart."""
    group = select.args.get("group")
    if group is None or any(isinstance(each, exp.Star) for each in select.expressions):
        return
    clauses = (*select.expressions, group, *filter(None, [select.args.get("having")]))
    for clause in clauses:
        for node in clause.walk(prune=lambda each: isinstance(each, exp.Query)):
            if isinstance(node, exp.Anonymous) and node.name.lower() in TIME_WINDOWS:
                yield node


def _microseconds(node: exp.Expr) -> int | None:
    """What a written duration comes to; ``None`` if it is no number of such units.

    >>> _microseconds(exp.Literal.string("1 hour 30 minutes"))
    5400000000
    >>> _microseconds(exp.Literal.string("1 month"))
    """
    found = _DURATION.fullmatch(node.name) if isinstance(node, exp.Literal) and node.is_string else None
    parts = _PART.findall(found[1]) if found else []
    units = [_MICROSECONDS.get(unit.lower().removesuffix("s")) for _, unit in parts]
    known = [unit for unit in units if unit is not None]
    if not parts or len(known) < len(parts):
        return None
    return sum(int(number) * unit for (number, _), unit in zip(parts, known, strict=True))
