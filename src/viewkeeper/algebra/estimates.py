"""How many rows a relation holds, roughly: enough to say what is small.

A join along a key multiplies the rows by the ratio of the two tables' sizes: each of 1,500 customers has
about |orders| / |customer| orders. A join without an equality multiplies by the size of the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from viewkeeper.algebra.conditions import conditions_alone
from viewkeeper.algebra.expressions import cost
from viewkeeper.algebra.join_sizes import UNKNOWN_ROWS, JoinInput, JoinSizes, constant_column, equalities
from viewkeeper.algebra.provenance import scan_origin
from viewkeeper.algebra.reading_costs import SMALL_ROWS, UNKNOWN_WIDTH, is_broadcast, width
from viewkeeper.algebra.relations import (
    Aggregate,
    Constant,
    Distinct,
    Exists,
    Filter,
    Join,
    OuterJoin,
    Relation,
    Repeat,
    Scan,
    TimeFilter,
    UnionAll,
    Window,
    children,
    scans,
)
from viewkeeper.algebra.rules import read_once
from viewkeeper.algebra.rules.leaves import Leaves

_UNKNOWN_SHARE = 100
"""A delta whose size is not known is taken for this part of its table."""


def is_small(rows: float | None, relation: Relation) -> bool:
    """Whether a delta of so many rows, or what is made of one, is worth broadcasting."""
    return rows is not None and is_broadcast(rows, len(relation.columns))


def size(relation: Relation, leaves: Leaves) -> int | None:
    """Rows of a relation now, at most or nearly so; ``None`` when unknown."""
    return _size(relation, leaves.size)


def old_size(relation: Relation, leaves: Leaves) -> int | None:
    """Rows of it before, in the same way."""
    return _size(relation, leaves.old_size)


def _size(relation: Relation, rows_of: Callable[[Scan], int | None]) -> int | None:
    if isinstance(relation, Scan):
        return rows_of(relation)
    if isinstance(relation, Constant):
        return relation.rows
    sizes = [_size(child, rows_of) for child in children(relation)]
    known = [each for each in sizes if each is not None]
    if len(known) < len(sizes):
        return None
    if isinstance(relation, Repeat):
        return relation.times * known[0]
    return sum(known) if isinstance(relation, UnionAll) else max(known, default=0)


def delta_size(relation: Relation, leaves: Leaves) -> int | None:
    """Rows of a relation's delta, as if every changed row of a leaf came through once."""
    if isinstance(relation, Scan):
        return leaves.delta_size(relation)
    if isinstance(relation, Filter) and leaves.excludes(relation):
        return 0
    if isinstance(relation, Join):
        return known_sum(_delta_sizes(relation, leaves))
    if isinstance(relation, Repeat):
        below = delta_size(relation.child, leaves)
        return None if below is None else relation.times * below
    if isinstance(relation, TimeFilter):
        return known_sum((delta_size(relation.child, leaves), _passing(relation, leaves)))
    return known_sum(delta_size(child, leaves) for child in children(relation))


def _delta_sizes(relation: Join, leaves: Leaves) -> list[int | None]:
    """Of each input, under the conditions that concern it alone."""
    return [
        0 if excludes_input(relation, at, leaves) else delta_size(child, leaves)
        for at, child in enumerate(relation.inputs)
    ]


def excludes_input(relation: Join, at: int, leaves: Leaves) -> bool:
    """Whether no changed row of a joined table meets the conditions that concern it alone."""
    alone = conditions_alone(relation, at)
    return alone is not None and leaves.excludes(alone)


def _passing(relation: TimeFilter, leaves: Leaves) -> int | None:
    """About how many rows come or go as time passes: those of a few files."""
    if not delta_size(relation.clock, leaves):
        return 0
    rows = size(relation.child, leaves)
    return None if rows is None else rows // _UNKNOWN_SHARE + 1


def work_of_delta(relation: Relation, leaves: Leaves) -> int | None:
    """The rows that the operands of a delta's expression read: what Lee et al. (2001) call its work."""
    if delta_size(relation, leaves) == 0:
        return 0
    if isinstance(relation, Scan):
        return leaves.delta_size(relation)
    inner = [work_of_delta(child, leaves) for child in children(relation)]
    sizes = [size(child, leaves) for child in children(relation)]
    match relation:
        case Join():
            if None in (*inner, *sizes):
                return None
            known = join_sizes(relation, [each != 0 for each in _delta_sizes(relation, leaves)], leaves)
            leaf = sum(known.delta(1 << place) for place in range(len(relation.inputs)))  # counted in inner
            return known_sum([*inner, round(cost(leaves.expression(relation, known), known) - leaf)])
        case Aggregate() | Distinct() | Window():
            return known_sum([*inner, *_before_and_after(sizes[0])])  # of the affected keys
        case TimeFilter():
            return known_sum([inner[0], _passing(relation, leaves)])
        case OuterJoin() | Exists():
            # The other side of what changed; where the right side changed, that one too, before and after.
            mine, theirs = (delta_size(child, leaves) != 0 for child in children(relation))
            read = [sizes[1]] * mine + [sizes[0], *_before_and_after(sizes[1])] * theirs
            return known_sum([*inner, *read])
        case _:
            return known_sum(inner)


def _before_and_after(rows: int | None) -> list[int | None]:
    """What is read of a relation for both: what is large is read once (:mod:`.rules.read_once`)."""
    return [rows] if rows is not None and rows >= read_once.LARGE_ROWS else [rows, rows]


def join_sizes(relation: Join, changed: Sequence[bool], leaves: Leaves) -> JoinSizes:
    """What a join's inputs and their deltas hold, as far as it is known; the rest is guessed."""
    inputs = []
    names = _names(relation)
    for at, (child, has_changed) in enumerate(zip(relation.inputs, changed, strict=True)):
        alone = conditions_alone(relation, at)
        known, changed_rows = size(child, leaves), delta_size(child, leaves)
        rows = float(UNKNOWN_ROWS if known is None else known)
        before = old_size(child, leaves) if has_changed else known
        delta = rows / _UNKNOWN_SHARE if changed_rows is None else float(changed_rows)
        inputs.append(
            JoinInput(
                names[at],
                frozenset(child.columns),
                rows if before is None else float(before),
                rows,
                delta if has_changed else None,
                _distinct(child, relation, leaves),
                _width(child, leaves),
                None if alone is None else leaves.pruned_size(alone),
            )
        )
    return JoinSizes(tuple(inputs), relation.conjuncts, leaves.corrections)


def _names(relation: Join) -> list[str]:
    """What the inputs of a join are called: by their tables, and numbered where these are the same, for what
    is learned of one part is not to be taken for another."""
    names: list[str] = []
    for child in relation.inputs:
        tables = ", ".join(scan.table.rsplit(".", 1)[-1] for scan in scans(child))
        name = tables if isinstance(child, Scan) else f"[{tables}]"
        before = sum(each.partition(" #")[0] == name for each in names)
        names.append(f"{name} #{before + 1}" if before else name)
    return names


def _distinct(child: Relation, relation: Join, leaves: Leaves) -> dict[str, float]:
    """Of the columns that an input is joined by, or compared with constants, about how many values they have,
    where it is known."""
    constants = filter(None, map(constant_column, relation.conjuncts))
    compared = {*constants}.union(*equalities(relation.conjuncts))
    found: dict[str, float] = {}
    for column in compared & {*child.columns}:
        values = distinct_values(child, column, leaves)
        if values is not None:
            found[column] = max(1.0, values)
    return found


def read_bytes(relation: Relation, leaves: Leaves) -> float | None:
    """About how many bytes of its tables a relation reads, all of their rows; ``None`` when unknown."""
    sizes = [(leaves.size(scan), _width(scan, leaves)) for scan in scans(relation)]
    known = [rows * bytes_of_row for rows, bytes_of_row in sizes if rows is not None]
    return sum(known) if len(known) == len(sizes) else None


def joined_rows(relation: Relation, leaves: Leaves) -> int:
    """How many rows go into joins, those of tables that are small enough to be broadcast apart."""
    below = sum(joined_rows(child, leaves) for child in children(relation))
    if not isinstance(relation, Join):
        return below
    sizes = [size(child, leaves) or 0 for child in relation.inputs]
    return below + sum(rows for rows in sizes if rows > SMALL_ROWS)


def join_partners(relation: Relation) -> int:
    """With how many inputs of its joins a change of the relation's tables is joined, at most."""
    below = sum(join_partners(child) for child in children(relation))
    return below + len(relation.inputs) - 1 if isinstance(relation, Join) else below


def _width(child: Relation, leaves: Leaves) -> float:
    """About how many bytes of a row are read."""
    return sum(_column_width(child, column, leaves) for column in child.columns)


def _column_width(child: Relation, column: str, leaves: Leaves) -> float:
    stored, kind = scan_origin(child, column), column_type(child, column, leaves)
    if stored is None or kind is None:
        return UNKNOWN_WIDTH
    # What files hold is compressed: what little it takes there is no less to be handled.
    return max(width(kind), leaves.widths(stored[0]).get(stored[1], 0.0))


def column_type(relation: Relation, column: str, leaves: Leaves) -> str | None:
    """The type of a column that comes from a table as it is, if it is known."""
    stored = scan_origin(relation, column)
    return None if stored is None else leaves.types(stored[0]).get(stored[1])


def distinct_values(relation: Relation, column: str, leaves: Leaves) -> float | None:
    """About how many values such a column has in its table, if that is known."""
    stored = scan_origin(relation, column)
    return None if stored is None else leaves.distinct(stored[0]).get(stored[1])


def known_sum(values: Iterable[int | None]) -> int | None:
    """Their sum, if all are known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
