"""Relations: a small relational algebra over bags, as frozen values that refuse to be built wrong.

Column names are unique within one view, whatever table they come from, so an expression names a column
and nothing else: no aliases, no scopes. A ``Scan`` is logical (a table, before or after the change); the
planner binds it to something physical: a table at a version, or a staged result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from viewkeeper.algebra.scalars import Named, Scalar, column


class State(Enum):
    """Which state of a changing table is meant."""

    OLD = "old"
    NEW = "new"


class IllFormed(ValueError):
    """A relation that cannot exist; always a fault of the engine, never of the user."""


def _require(condition: bool, message: str) -> None:  # noqa: FBT001  (reads like an assertion)
    if not condition:
        raise IllFormed(message)


def _distinct(names: tuple[str, ...], what: str) -> None:
    folded = [name.casefold() for name in names]
    _require(len(set(folded)) == len(folded), f"{what}: a column name occurs twice in {names}")


def _require_columns(scalars: Iterable[Scalar], available: Iterable[str], what: str) -> None:
    missing = frozenset[str]().union(*(scalar.columns for scalar in scalars)) - set(available)
    _require(not missing, f"{what} reads {sorted(missing)}, which no input has")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a stored table, and the name by which this view knows it."""

    stored: str
    name: str


@dataclass(frozen=True, slots=True)
class Scan:
    """A source or view that the query names, in one of its two states."""

    table: str
    fields: tuple[Field, ...]
    state: State = State.NEW

    def __post_init__(self) -> None:
        _distinct(self.columns, f"scan of {self.table}")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)


@dataclass(frozen=True, slots=True)
class TableAt:
    """A physical table at one version (``None``: as it is now, for tables without versions), how to read it
    (options of its format), and about how many rows it has."""

    table: str
    version: str | None
    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...] = ()
    rows: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)


@dataclass(frozen=True, slots=True)
class Staged:
    """A result that an earlier step of the same epoch has staged under a name. ``rows``: at most so many;
    ``never_null``: which of its stored columns are known to hold no NULL."""

    name: str
    fields: tuple[Field, ...]
    rows: int | None = None
    never_null: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)


@dataclass(frozen=True, slots=True)
class Nothing:
    """∅ with columns of these types: what a table that was never written holds."""

    columns: tuple[str, ...]
    types: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(len(self.columns) == len(self.types), "every column has a type")


@dataclass(frozen=True, slots=True)
class Constant:
    """Rows that stand in the query itself: ``VALUES (1, 'a'), (2, 'b')``, in the user's words."""

    columns: tuple[str, ...]
    text: str
    rows: int

    def __post_init__(self) -> None:
        _distinct(self.columns, "constant")


@dataclass(frozen=True, slots=True)
class Moment:
    """What a clock shows: one row with one value, as a literal."""

    name: str
    literal: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Filter:
    """σ: the rows for which the predicate is true."""

    child: Relation
    predicate: Scalar

    def __post_init__(self) -> None:
        missing = self.predicate.columns - set(self.child.columns)
        _require(not missing, f"filter reads {sorted(missing)}, which its input lacks")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True)
class TimeFilter:
    """σ under a condition that reads the clock, too: ``day >= now - 7``. The clock has one column and row.

    ``lasting``: where it is true at one time, it is not unknown at any, as a comparison with a point in time.
    """

    child: Relation
    clock: Relation
    predicate: Scalar
    lasting: bool = False

    def __post_init__(self) -> None:
        _require(len(self.clock.columns) == 1, "a clock has one column")
        both = (*self.child.columns, *self.clock.columns)
        _distinct(both, "time filter")
        _require_columns([self.predicate], both, "a time filter")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    def at(self, moment: Scalar) -> Scalar:
        """The condition at a point in time."""
        return self.predicate.substitute({self.clock.columns[0]: moment})


@dataclass(frozen=True, slots=True)
class Project:
    """π, without removal of duplicates."""

    child: Relation
    items: tuple[Named, ...]

    def __post_init__(self) -> None:
        _distinct(self.columns, "project")
        available = set(self.child.columns)
        for item in self.items:
            missing = item.scalar.columns - available
            _require(not missing, f"{item.name} reads {sorted(missing)}, which its input lacks")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)


@dataclass(frozen=True, slots=True)
class Join:
    """⋈ of any number of relations: the rows of their product for which every conjunct is true."""

    inputs: tuple[Relation, ...]
    conjuncts: tuple[Scalar, ...]
    broadcast: tuple[int, ...] | None = None
    """Which inputs are worth broadcasting; ``None``: those that say themselves that they are small."""

    def __post_init__(self) -> None:
        _require(len(self.inputs) >= 2, "a join has two inputs or more")
        _distinct(self.columns, "join")
        _require_columns(self.conjuncts, self.columns, "a join condition")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for child in self.inputs for name in child.columns)


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """⟕: the joined rows, and the rows of the left side that have no partner, with NULLs beside them;
    ``full`` (⟗): those of the right side, too."""

    left: Relation
    right: Relation
    conjuncts: tuple[Scalar, ...]
    full: bool = False
    broadcast: bool = False
    """Whether the right side is known to be small."""

    def __post_init__(self) -> None:
        _distinct(self.columns, "outer join")
        _require_columns(self.conjuncts, self.columns, "an outer join's condition")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.left.columns, *self.right.columns)


@dataclass(frozen=True, slots=True)
class Exists:
    """⋉ under any condition: the rows of the child for which some row of ``among`` makes every conjunct true;
    ``anti`` (▷): the others. With a ``mark`` all rows are kept, and that column tells which they are."""

    child: Relation
    among: Relation
    conjuncts: tuple[Scalar, ...]
    anti: bool = False
    mark: str | None = None
    broadcast: bool = False
    """Whether ``among`` is known to be small."""

    def __post_init__(self) -> None:
        both = (*self.child.columns, *self.among.columns)
        _distinct(both, "exists")
        _distinct(self.columns, "exists")
        _require(not (self.anti and self.mark), "a mark tells both")
        _require_columns(self.conjuncts, both, "the condition of an EXISTS")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns if self.mark is None else (*self.child.columns, self.mark)


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """⋉: the rows of the child whose key occurs among the keys; NULL matches NULL (``<=>``).

    ``anti`` turns it into ▷: the rows whose key does not occur.
    """

    child: Relation
    keys: Relation
    on: tuple[tuple[str, str], ...]
    anti: bool = False
    across: bool = False
    """Whether the keys come from other columns, which a condition sets equal to these: types may differ."""

    def __post_init__(self) -> None:
        for left, right in self.on:
            _require(left in self.child.columns, f"semi join: the child has no {left}")
            _require(right in self.keys.columns, f"semi join: the keys have no {right}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True)
class UnionAll:
    """⊎: bag union of inputs with the same columns in the same order."""

    inputs: tuple[Relation, ...]

    def __post_init__(self) -> None:
        _require(len(self.inputs) >= 1, "a union has an input")
        for child in self.inputs[1:]:
            _require(
                child.columns == self.inputs[0].columns,
                f"union of {self.inputs[0].columns} and {child.columns}",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns


@dataclass(frozen=True, slots=True)
class Distinct:
    """δ: every row once."""

    child: Relation

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function, what it is applied to, and the column it makes; COUNT(*) has no argument.

    ``written`` is the whole call in the user's words, where there is more to it than function and arguments:
    a DISTINCT, a WITHIN GROUP, constants that must stay constants.
    """

    name: str
    function: str
    arguments: tuple[Scalar, ...] = ()
    written: Scalar | None = None

    def __post_init__(self) -> None:
        _require(self.function == self.function.lower(), "aggregate functions are named in lower case")
        _require(self.written is None or not self.arguments, "what is written out has no other arguments")

    @property
    def columns(self) -> frozenset[str]:
        if self.written is not None:
            return self.written.columns
        return frozenset[str]().union(*(argument.columns for argument in self.arguments))

    @property
    def reads(self) -> tuple[Scalar, ...]:
        """The expressions that the call is made of."""
        return self.arguments if self.written is None else (self.written,)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """γ: one row per combination of keys; without keys exactly one row, even of an empty input."""

    child: Relation
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        _distinct(self.columns, "aggregate")
        _require(bool(self.keys or self.calls), "an aggregate has keys or calls")
        missing = set(self.keys) - set(self.child.columns)
        for call in self.calls:
            missing |= call.columns - set(self.child.columns)
        _require(not missing, f"aggregate reads {sorted(missing)}, which its input lacks")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *(call.name for call in self.calls))


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over a window and the column it makes. ``scalar`` is the whole call, with its OVER;
    ``arguments`` is what an aggregate adds up, unless the window fixes the order in which it does."""

    name: str
    scalar: Scalar
    function: str = ""
    arguments: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """Functions over windows: to each row what they say of the rows that have the same keys."""

    child: Relation
    keys: tuple[str, ...]
    calls: tuple[WindowCall, ...]

    def __post_init__(self) -> None:
        _distinct(self.columns, "window")
        read = [column(key) for key in self.keys] + [call.scalar for call in self.calls]
        _require_columns(read, self.child.columns, "a window")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *(call.name for call in self.calls))


@dataclass(frozen=True, slots=True)
class Generate:
    """LATERAL VIEW: each row with every row that a generator makes of it; ``outer``: at least once."""

    child: Relation
    call: Scalar
    names: tuple[str, ...]
    outer: bool = False

    def __post_init__(self) -> None:
        _distinct(self.columns, "generate")
        _require_columns([self.call], self.child.columns, "a generator")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *self.names)


@dataclass(frozen=True, slots=True)
class Expand:
    """Each row of the child as often as its count column says; the count column goes."""

    child: Relation
    count: str

    def __post_init__(self) -> None:
        _require(self.count in self.child.columns, f"expand: no column {self.count}")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.child.columns if name != self.count)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Each row of the child so many times, numbered from 0: once for each grouping set, say."""

    child: Relation
    number: str
    times: int

    def __post_init__(self) -> None:
        _distinct(self.columns, "repeat")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, self.number)


Leaf: TypeAlias = Scan | TableAt | Staged | Nothing | Constant | Moment

Relation: TypeAlias = (
    Scan
    | TableAt
    | Staged
    | Nothing
    | Constant
    | Moment
    | Filter
    | TimeFilter
    | Project
    | Join
    | OuterJoin
    | Exists
    | SemiJoin
    | UnionAll
    | Distinct
    | Aggregate
    | Window
    | Generate
    | Expand
    | Repeat
)

_LEAVES = (Scan, TableAt, Staged, Nothing, Constant, Moment)


def children(relation: Relation) -> tuple[Relation, ...]:
    """The inputs of a relation, left to right."""
    match relation:
        case Scan() | TableAt() | Staged() | Nothing() | Constant() | Moment():
            return ()
        case TimeFilter():
            return (relation.child, relation.clock)
        case Join() | UnionAll():
            return relation.inputs
        case OuterJoin():
            return (relation.left, relation.right)
        case Exists():
            return (relation.child, relation.among)
        case SemiJoin():
            return (relation.child, relation.keys)
        case _:
            return (relation.child,)


def map_children(relation: Relation, replaced: Callable[[Relation], Relation]) -> Relation:
    """The relation over other inputs."""
    match relation:
        case Scan() | TableAt() | Staged() | Nothing() | Constant() | Moment():
            return relation
        case TimeFilter():
            return replace(relation, child=replaced(relation.child), clock=replaced(relation.clock))
        case Join() | UnionAll():
            return replace(relation, inputs=tuple(replaced(each) for each in relation.inputs))
        case OuterJoin():
            return replace(relation, left=replaced(relation.left), right=replaced(relation.right))
        case Exists():
            return replace(relation, child=replaced(relation.child), among=replaced(relation.among))
        case SemiJoin():
            return replace(relation, child=replaced(relation.child), keys=replaced(relation.keys))
        case _:
            return replace(relation, child=replaced(relation.child))


def map_leaves(relation: Relation, replaced: Callable[[Leaf], Relation]) -> Relation:
    """The relation with something else in the place of each leaf."""
    if isinstance(relation, _LEAVES):
        return replaced(relation)
    return map_children(relation, lambda child: map_leaves(child, replaced))


def filled(relation: Relation, place: str, made: Callable[[Staged], Relation]) -> Relation:
    """The relation with something in the place that was kept for it: a staged result of that name, which is
    none."""
    return map_leaves(
        relation, lambda leaf: made(leaf) if isinstance(leaf, Staged) and leaf.name == place else leaf
    )


def leaves(relation: Relation) -> tuple[Leaf, ...]:
    """Every leaf, left to right."""
    if isinstance(relation, _LEAVES):
        return (relation,)
    return tuple(leaf for child in children(relation) for leaf in leaves(child))


def scans(relation: Relation) -> tuple[Scan, ...]:
    """Every scan, left to right; a table that is read twice is there twice."""
    return tuple(leaf for leaf in leaves(relation) if isinstance(leaf, Scan))
