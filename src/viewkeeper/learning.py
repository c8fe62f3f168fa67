"""What was estimated of joins, and what it turned out to be: kept in the ledger, and used for the next plan.

The estimate of |Δ(⋈P)| rests on row counts and on guesses about the rest. How far it was off, the last time
that it was counted, corrects it from then on: factor = actual / estimated, per view and part.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from viewkeeper.ledger import Ledger
from viewkeeper.plan.methods import Method
from viewkeeper.plan.prices import BELIEVED, Rates, rates_of_json
from viewkeeper.plan.pricing import by_others
from viewkeeper.plan.situation import Counted
from viewkeeper.plan.steps import ViewPlan

_EPOCHS = 20
"""So far back the ledger is asked."""
_PAYMENTS = 5
_BELIEVED = 3
"""So many payments are believed."""
_MOST = 8.0
"""A price is corrected by no more: what is wrong by more than that was wrong about sizes, not about speed."""
_ANEW = 1.4
"""When the last two payments are both so many times more, or less, than those before, something has changed,
such as how much changes at a time: then those before tell no more."""
_SURPRISE = 3.0
"""A delta that holds so many times more or less than expected."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many rows the delta of a view's part was estimated to hold, and how many it held."""

    epoch: int
    view: str
    part: str
    estimated: int
    actual: int

    @property
    def factor(self) -> float:
        """How many times more there were than estimated."""
        return Counted(self.estimated, self.actual).factor

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "factor": round(self.factor, 3)}


def told(plan: ViewPlan, counted: Mapping[str, int]) -> list[dict[str, Any]]:
    """For the ledger: every part of the view's joins that was counted, with what it was estimated to hold.
    ``counted``: the rows of the epoch's results, by their names, where they are known."""
    found = []
    for join, propagation in enumerate(plan.propagations):
        actual = {mask: counted[name] for mask, name in propagation.counting if name in counted}
        uncorrected = dict(propagation.uncorrected)
        for relations, rows in dict(propagation.rows).items():
            if relations in actual:
                found.append(
                    {
                        "join": join,
                        "relations": relations,
                        "part": propagation.name(relations),
                        "estimated": rows,
                        "uncorrected": uncorrected[relations],
                        "actual": actual[relations],
                    }
                )
    return found


def held(plan: ViewPlan, told_of: Mapping[str, Any]) -> list[dict[int, int]]:
    """For each join of the view, how many rows the delta of which of its relations (a bit mask) held in the
    epoch that carried the plan out, from what the ledger keeps of it."""
    found: list[dict[int, int]] = []
    for join, propagation in enumerate(plan.propagations):
        # Older ledgers knew parts by their names alone.
        by_name = {each["part"]: each["actual"] for each in told_of.get("parts", ()) if "join" not in each}
        masks = {mask: propagation.name(mask) for mask, _ in propagation.rows}
        actual = {mask: by_name[name] for mask, name in masks.items() if name in by_name}
        actual |= {
            each["relations"]: each["actual"] for each in told_of.get("parts", ()) if each.get("join") == join
        }
        found.append(actual)
    return found


def estimates(ledger: Ledger, view: str | None = None, limit: int | None = None) -> list[Estimate]:
    """What was counted in earlier epochs, newest first."""
    return [
        Estimate(epoch, name, each["part"], each["estimated"], each["actual"])
        for epoch, name, told_of in ledger.estimates([view] if view else None, limit)
        for each in told_of.get("parts", ())
    ]


@dataclass(frozen=True, slots=True)
class Experience:
    """What the ledger teaches for the next plan: of the views' joins, of bags that hold copies, and of what
    operations take."""

    joins: Mapping[str, Mapping[str, Counted]] = field(default_factory=dict)
    with_copies: frozenset[str] = frozenset()
    """The views in which equal rows were in the way when rows were last deleted by hash."""
    rates: Rates = field(default_factory=lambda: BELIEVED)
    groups_when_whole: Mapping[str, int] = field(default_factory=dict)
    """Of views that are stored in parts, how many groups they had when they were last stored whole."""
    keeps_all: Mapping[str, str] = field(default_factory=dict)
    """Of views with a LIMIT, the last snapshot that held all that there was, and not only the first rows."""
    paid: Mapping[str, Mapping[Method, float]] = field(default_factory=dict)
    """Of each view and method, how many times its price was paid."""


NO_EXPERIENCE = Experience()


def experience(ledger: Ledger, views: Iterable[str]) -> Experience:
    """All that is known from earlier epochs of these views."""
    told_of = ledger.estimates(views, _EPOCHS)
    with_copies = frozenset(view for view, copies in _last_told(told_of, "copies").items() if copies)
    return Experience(
        lessons(told_of),
        with_copies,
        known_rates(ledger),
        _last_told(told_of, "groups"),
        _last_told(told_of, "keeps_all"),
        paid_for(told_of),
    )


def paid_for(
    told_of: Iterable[tuple[int, str, Mapping[str, Any]]],
) -> dict[str, dict[Method, float]]:
    """How many times its price each method was paid in the last epochs of each view; prices as they are
    before they are corrected by it."""
    ratios: dict[str, dict[Method, list[float]]] = {}
    for _, view, told_ in told_of:  # newest first
        payment = told_ if told_.get("method") else told_.get("for_nothing") or {}
        method, paid = payment.get("method"), payment.get("paid")
        price = told_.get("prices", {}).get(method)
        if not paid or not price:
            continue
        known = ratios.setdefault(view, {}).setdefault(Method(method), [])
        if len(known) < _PAYMENTS:
            known.append(paid / (price / told_.get("corrected", {}).get(method, 1.0)))
    return {view: _believed(methods) for view, methods in ratios.items()}


def _believed(ratios: Mapping[Method, list[float]]) -> dict[Method, float]:
    """The medians. One payment says little, three are believed; what is missing is made up by others."""
    of_late = {method: _of_late(each) for method, each in ratios.items()}
    medians = {
        method: min(_MOST, max(1 / _MOST, statistics.median(each))) for method, each in of_late.items()
    }
    found = {}
    for method, median in medians.items():
        weight = min(len(of_late[method]), _BELIEVED) / _BELIEVED
        others = by_others(each for other, each in medians.items() if other is not method)
        found[method] = median**weight * others ** (1 - weight)
    return found


def _of_late(ratios: Sequence[float]) -> Sequence[float]:
    """The payments, newest first, since they have been what they are now."""
    last, before = ratios[:2], ratios[2:]
    if not before:
        return ratios
    usual = statistics.median(before)
    is_new = min(last) > _ANEW * usual or max(last) < usual / _ANEW
    return last if is_new else ratios


def known_rates(ledger: Ledger) -> Rates:
    """What operations take here: as calibrated, or as it is believed before."""
    found = ledger.rates()
    return BELIEVED if found is None else rates_of_json(found)


def _last_told(told_of: Iterable[tuple[int, str, Mapping[str, Any]]], what: str) -> dict[str, Any]:
    """What was told of each view when it was last told."""
    found: dict[str, Any] = {}
    for _, view, estimated in told_of:  # newest first
        if estimated.get(what) is not None:
            found.setdefault(view, estimated[what])
    return found


def lessons(told_of: Iterable[tuple[int, str, Mapping[str, Any]]]) -> dict[str, dict[str, Counted]]:
    """Of each view and part what was counted last; but for what was counted before a surprise: when a delta
    held far more or less than expected, the data has changed its nature, and the parts are counted again.

    The delta of a single table teaches nothing: it is known beforehand, or how well differs each time.
    """
    found: dict[str, dict[str, Counted]] = {}
    surprised: set[str] = set()
    for _, view, estimated in told_of:  # newest first
        told_ = () if view in surprised else estimated.get("parts", ())
        parts = [each for each in told_ if not _is_single(each)]
        for each in parts:
            counted = Counted(each["uncorrected"], each["actual"])
            found.setdefault(view, {}).setdefault(each["part"], counted)
        if any(_surprising(Counted(each["estimated"], each["actual"])) for each in parts):
            surprised.add(view)
    return found


def _is_single(part: Mapping[str, Any]) -> bool:
    return "relations" in part and int(part["relations"]).bit_count() == 1


def _surprising(counted: Counted) -> bool:
    return not 1 / _SURPRISE <= counted.factor <= _SURPRISE
