"""Foreign keys that are known to hold: what they let joins leave out, whatever the keys are.

A project may declare that every line item refers to an order. If that is so in the versions of both tables
that a view was computed from, and the keys of the orders that came since are new, then no line item of before
refers to any of these:

    Δorders ⋈ lineitem = ∅

Nothing of it is believed. It is found once, by a look at the whole tables, and from then on by the rows
touched alone, by induction over the versions c of the child and p of the parent:

    holds(c′, p′)  ⇐  holds(c, p),  no row of p is missing in p′,  and what came to c refers to rows of p′

The ledger keeps the versions at which it held; what was true of these stays true, whatever is declared. Where
it is not known, as when parents were deleted, or a row refers to none, nothing is left out until the whole
tables were looked at again. NULL refers to nothing, and finds nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from viewkeeper.algebra.empty_terms import Extents, KeyReference, plain_equalities
from viewkeeper.algebra.provenance import scan_origin
from viewkeeper.algebra.relations import Join, Scan, scans
from viewkeeper.define.clock import is_clock
from viewkeeper.define.settings import ForeignKey
from viewkeeper.define.sources import SOURCES
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.key_references import TouchedRows, Violations
from viewkeeper.join_metadata import joins_of
from viewkeeper.lattices import is_named
from viewkeeper.ledger.records import SourceObservation
from viewkeeper.plan.situation import Situation, Span, ViewInput
from viewkeeper.plan.source_change import SourceChange
from viewkeeper.sql.quoting import parse_path

Versions = tuple[str, str]
"""Of a child, and of its parent."""

_LARGE_ROWS = 10_000_000
"""To check the rows touched is a statement of its own; it takes as long as reading some millions of rows."""
_KEPT = "references"
_PAIRS = 8
"""So many versions are remembered: views that were not refreshed for a while stand at earlier ones."""
_LESS = 2
"""So many times fewer rows than the child has are to be read for a check."""
_RAREST = 10


@dataclass(frozen=True, slots=True)
class Holding:
    """The versions at which a foreign key was found to hold, newest last; how often both tables were looked
    at whole, and how often since then it would have helped to know that it holds."""

    at: tuple[Versions, ...] = ()
    looks: int = 0
    missed: int = 0

    def holding(self, versions: Versions) -> Holding:
        """It holds at these, too."""
        return replace(self, at=(*(each for each in self.at if each != versions), versions)[-_PAIRS:])

    @property
    def is_due(self) -> bool:
        """Whether to look at the whole tables: at once at first, and each time half as often after that.

        >>> Holding().is_due, Holding(looks=1).is_due, Holding(looks=2, missed=3).is_due
        (True, False, True)
        """
        return self.missed >= (1 << min(self.looks, _RAREST)) - 1

    def to_json(self) -> dict[str, Any]:
        """As the ledger keeps it."""
        return {"at": [list(each) for each in self.at], "looks": self.looks, "missed": self.missed}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Holding:
        """What :meth:`to_json` gave."""
        return cls(tuple((child, parent) for child, parent in kept["at"]), kept["looks"], kept["missed"])


Holdings = Mapping[KeyReference, Holding]
UNKNOWN = Holding()


@dataclass(frozen=True, slots=True)
class Move:
    """A foreign key between the versions that a view was computed from, and those there are."""

    reference: KeyReference
    before: Versions
    now: Versions

    @property
    def child(self) -> Span:
        return self.reference.child, self.before[0], self.now[0]

    @property
    def parent(self) -> Span:
        return self.reference.parent, self.before[1], self.now[1]


class Checker(Protocol):
    """Asks the tables."""

    def violations(self, moves: Sequence[Move]) -> Sequence[Violations | None]:
        """On the rows touched; ``None`` where it cannot be told."""

    def holds(self, reference: KeyReference, versions: Versions) -> bool:
        """On whole tables."""


def checked(
    checker: Checker,
    situation: Situation,
    declared: Sequence[ForeignKey],
    known: Holdings,
    *,
    may_look: bool,
) -> tuple[Situation, dict[KeyReference, Holding]]:
    """The situation, with what foreign keys tell of it, and at which versions they are known to hold now.
    ``may_look``: whether whole tables may be read to know more the next time."""
    found, moves = dict(known), _moves(situation, declared)
    asked = [
        move
        for move in moves
        if move.before in found.get(move.reference, UNKNOWN).at and _only_grew(situation, move.parent)
    ]
    unreferred = set()
    for move, told in zip(asked, checker.violations(asked), strict=True):
        if told is not None and not told.old_keys:
            unreferred.add((move.reference, move.parent, move.before[0]))
        if told is not None and not told.orphans:
            found[move.reference] = found[move.reference].holding(move.now)
    if may_look:
        for reference, versions in _helpful(situation, moves, known):
            holding = found.get(reference, UNKNOWN)
            if versions in holding.at:
                continue
            if not holding.is_due:
                found[reference] = replace(holding, missed=holding.missed + 1)
                continue
            looked = replace(holding, looks=holding.looks + 1, missed=0)
            found[reference] = looked.holding(versions) if checker.holds(reference, versions) else looked
    return replace(situation, unreferred=frozenset(unreferred)), found


def _moves(situation: Situation, declared: Sequence[ForeignKey]) -> dict[Move, bool]:
    """The foreign keys that views join by, where one of the tables moved and it is worth to check them; and
    whether there is a term that they could let a view leave out."""
    found: dict[Move, bool] = {}
    if situation.policy == "full" or not declared:
        return found
    for view in situation.views:
        if view.needs_full is not None:
            continue
        for join in joins_of(view.analysis.relation):
            terms = sum(
                any(_is_touched(situation, view, scan) for scan in scans(each)) for each in join.inputs
            )
            for reference in references(join, declared, situation.types):
                move = _move(situation, view, reference)
                if move is not None and _is_worth_it(situation, move):
                    came = situation.changes.get(move.parent) is not None
                    helps = came and terms > 1 and _only_grew(situation, move.parent)
                    found[move] = found.get(move, False) or helps
    return found


def references(
    join: Join, declared: Sequence[ForeignKey], types: Mapping[str, Mapping[str, str]]
) -> Iterator[KeyReference]:
    """The declared foreign keys that a join follows, between columns of the same types: where Spark would
    cast one of them, equal is not always the same."""
    joined: dict[tuple[Scan, Scan], dict[tuple[str, str], tuple[str, str]]] = defaultdict(dict)
    for pair in plain_equalities(join):
        for one, two in (pair, pair[::-1]):
            child, parent = scan_origin(join, one), scan_origin(join, two)
            if child is None or parent is None:
                continue
            its, other = (_types(types, scan).get(name.casefold()) for scan, name in (child, parent))
            if its is not None and its == other:
                folded = child[1].casefold(), parent[1].casefold()
                joined[child[0], parent[0]][folded] = child[1], parent[1]
    for (child_scan, parent_scan), pairs in joined.items():
        for fk in declared:
            if is_named(child_scan.table, fk.table) and is_named(parent_scan.table, fk.references):
                columns, key = _followed(fk, pairs)
                if columns:
                    yield KeyReference(child_scan.table, columns, parent_scan.table, key)


def _followed(
    fk: ForeignKey, pairs: Mapping[tuple[str, str], tuple[str, str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of a foreign key as they are stored, and those that they refer to, if all are set equal;
    ``pairs``: what is, by names in lower case."""
    key = fk.referenced_columns or fk.columns
    wanted = [(one.casefold(), two.casefold()) for one, two in zip(fk.columns, key, strict=False)]
    if len(fk.columns) != len(key) or any(each not in pairs for each in wanted):
        return (), ()
    stored = [pairs[each] for each in wanted]
    return tuple(one for one, _ in stored), tuple(two for _, two in stored)


def _types(types: Mapping[str, Mapping[str, str]], scan: Scan) -> dict[str, str]:
    return {name.casefold(): kind for name, kind in types.get(scan.table, {}).items()}


def _move(situation: Situation, view: ViewInput, reference: KeyReference) -> Move | None:
    """Between tables with versions, not between views."""
    tables = reference.child, reference.parent
    if any(is_clock(table) or parse_path(table)[0] == SOURCES for table in tables):
        return None
    before = tuple(view.vector.get(table) for table in tables)
    now = tuple(situation.versions.get(table) for table in tables)
    match before, now:
        case (str(), str()), (str(), str()) if before != now:
            return Move(reference, before, now)  # type: ignore[arg-type]  # just matched
        case _:
            return None


def _is_worth_it(situation: Situation, move: Move) -> bool:
    """Whether the child is large, and what is read to check it is much less."""
    child, parent = (situation.rows.get(table) for table in (move.reference.child, move.reference.parent))
    if child is None or parent is None or child < _LARGE_ROWS:
        return False
    changed = 0
    for span in (move.child, move.parent):
        if span[1] == span[2]:
            continue
        if span not in situation.changes:
            return False  # its history is lost
        change = situation.changes[span]
        changed += 0 if change is None else change.inserted + change.deleted + change.passed_over
    return _LESS * (parent + changed) <= child


def _only_grew(situation: Situation, span: Span) -> bool:
    """Whether rows only came, if any did."""
    change = situation.changes.get(span)
    return change is None or change.deleted == 0


def _is_touched(situation: Situation, view: ViewInput, scan: Scan) -> bool:
    if scan.table not in situation.versions:
        return True  # another view: perhaps
    span = scan.table, view.vector.get(scan.table), situation.versions[scan.table]
    return situation.changes.get(span) is not None


def _helpful(
    situation: Situation, moves: Mapping[Move, bool], known: Holdings
) -> dict[tuple[KeyReference, Versions], None]:
    """What it would help to know: where it was known before, or the metadata of the tables does not tell the
    same."""
    return {
        (move.reference, move.now): None
        for move, helps in moves.items()
        if helps and (move.before in known.get(move.reference, UNKNOWN).at or not _lie_apart(situation, move))
    }


def _lie_apart(situation: Situation, move: Move) -> bool:
    for key, column in zip(move.reference.key, move.reference.columns, strict=True):
        came = situation.extents.get((move.parent, key), Extents()).inserted
        there = situation.extents.get((move.child, column), Extents()).before
        if came is not None and there is not None and came.is_apart_from(there):
            return True
    return False


@dataclass(frozen=True, slots=True)
class SparkChecker:
    """By Spark, at most one statement for all rows touched."""

    engine: Engine
    situation: Situation

    def violations(self, moves: Sequence[Move]) -> Sequence[Violations | None]:
        """See :class:`Checker`."""
        touched = {move: self._touched(move) for move in moves}
        rows = {move: each for move, each in touched.items() if each.parents or each.children}
        told = dict(zip(rows, self.engine.violations(list(rows.values())), strict=True))
        return [told[move] if move in told else Violations(0, 0) for move in moves]

    def holds(self, reference: KeyReference, versions: Versions) -> bool:
        """See :class:`Checker`."""
        child, parent = (
            self._at(table, version)
            for table, version in zip((reference.child, reference.parent), versions, strict=True)
        )
        return self.engine.holds(reference, child, parent)

    def _touched(self, move: Move) -> TouchedRows:
        reference = move.reference
        came, moved = (self.situation.changes.get(span) for span in (move.parent, move.child))
        return TouchedRows(
            reference,
            _statements(came, reference.key),
            _statements(moved, reference.columns),
            self._at(reference.parent, move.now[1]),
            sum(each.inserted + each.deleted for each in (came, moved) if each is not None),
        )

    def _at(self, table: str, version: str) -> str:
        return self.engine.observer.source(table).rows(table, version)


def _statements(change: SourceChange | None, columns: Sequence[str]) -> tuple[str, ...]:
    return () if change is None else change.statements(columns)


# What the ledger keeps, with the version that a child was seen at.


def kept_holdings(observations: Mapping[str, SourceObservation]) -> dict[KeyReference, Holding]:
    """What the ledger has of each foreign key."""
    return {
        KeyReference(child, tuple(kept["columns"]), kept["parent"], tuple(kept["key"])): Holding.from_json(
            kept
        )
        for child, seen in observations.items()
        for kept in seen.details.get(_KEPT, ())
    }


def details_of(table: str, holdings: Holdings) -> dict[str, Any]:
    """For the ledger, of a child."""
    kept = [
        {
            "columns": list(reference.columns),
            "parent": reference.parent,
            "key": list(reference.key),
            **holding.to_json(),
        }
        for reference, holding in holdings.items()
        if reference.child == table
    ]
    return {_KEPT: kept} if kept else {}
