"""A relation under other column names: two queries that say the same are then the same value.

A column has one name wherever it stands in a relation, so one substitution serves all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from typing_extensions import assert_never

from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Constant,
    Distinct,
    Exists,
    Expand,
    Field,
    Filter,
    Generate,
    Join,
    Moment,
    Nothing,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    SemiJoin,
    Staged,
    TableAt,
    TimeFilter,
    UnionAll,
    Window,
    WindowCall,
    children,
)
from viewkeeper.algebra.scalars import Named, Scalar, column


def canonical(relation: Relation) -> tuple[Relation, dict[str, str]]:
    """The relation with its columns named after what they are, and the new name of each."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for name, after in _introduced(relation):
        if name in names:
            continue
        plain = names.get(after, after).casefold()
        wanted, number = plain, 2
        while wanted in taken:
            wanted, number = f"{plain}_{number}", number + 1
        taken.add(wanted)
        names[name] = wanted
    return renamed(relation, names), names


def _introduced(relation: Relation) -> Iterator[tuple[str, str]]:
    """Every column with what it is called after (a column that is named before, a stored column, a function),
    in an order in which names play no part."""
    for child in children(relation):
        yield from _introduced(child)
    match relation:
        case Scan() | TableAt() | Staged():
            yield from ((field.name, field.stored) for field in relation.fields)
        case Project():
            for item in relation.items:
                yield item.name, next(iter(item.scalar.columns)) if item.is_rename else "value"
        case Aggregate():
            yield from ((call.name, call.function) for call in relation.calls)
        case _:
            yield from ((name, "value") for name in relation.columns)


def renamed(relation: Relation, names: Mapping[str, str]) -> Relation:
    """The relation with these columns under other names, wherever they stand."""
    return _Renaming(names).relation(relation)


class _Renaming:
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._columns = {old: column(new) for old, new in names.items()}

    def name(self, old: str) -> str:
        return self._names.get(old, old)

    def all(self, old: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.name, old))

    def scalar(self, old: Scalar) -> Scalar:
        return old.substitute(self._columns)

    def scalars(self, old: Iterable[Scalar]) -> tuple[Scalar, ...]:
        return tuple(map(self.scalar, old))

    def fields(self, old: Iterable[Field]) -> tuple[Field, ...]:
        return tuple(Field(each.stored, self.name(each.name)) for each in old)

    def relations(self, old: Iterable[Relation]) -> tuple[Relation, ...]:
        return tuple(map(self.relation, old))

    def call(self, old: AggregateCall) -> AggregateCall:
        written = None if old.written is None else self.scalar(old.written)
        return AggregateCall(self.name(old.name), old.function, self.scalars(old.arguments), written)

    def windowed(self, old: WindowCall) -> WindowCall:
        arguments = self.scalars(old.arguments)
        return WindowCall(self.name(old.name), self.scalar(old.scalar), old.function, arguments)

    def relation(self, old: Relation) -> Relation:
        """Each operator is made anew at once: it refuses to be half renamed."""
        match old:
            case Scan() | TableAt() | Staged():
                return replace(old, fields=self.fields(old.fields))
            case Nothing() | Constant():
                return replace(old, columns=self.all(old.columns))
            case Moment():
                return replace(old, name=self.name(old.name))
            case Filter():
                return Filter(self.relation(old.child), self.scalar(old.predicate))
            case TimeFilter():
                child, clock = self.relations((old.child, old.clock))
                return replace(old, child=child, clock=clock, predicate=self.scalar(old.predicate))
            case Project():
                items = tuple(Named(self.name(item.name), self.scalar(item.scalar)) for item in old.items)
                return Project(self.relation(old.child), items)
            case Join():
                conjuncts = self.scalars(old.conjuncts)
                return replace(old, inputs=self.relations(old.inputs), conjuncts=conjuncts)
            case OuterJoin():
                left, right = self.relations((old.left, old.right))
                return replace(old, left=left, right=right, conjuncts=self.scalars(old.conjuncts))
            case Exists():
                child, among = self.relations((old.child, old.among))
                mark = None if old.mark is None else self.name(old.mark)
                conjuncts = self.scalars(old.conjuncts)
                return replace(old, child=child, among=among, conjuncts=conjuncts, mark=mark)
            case SemiJoin():
                child, keys = self.relations((old.child, old.keys))
                on = tuple((self.name(mine), self.name(theirs)) for mine, theirs in old.on)
                return replace(old, child=child, keys=keys, on=on)
            case UnionAll():
                return UnionAll(self.relations(old.inputs))
            case Distinct():
                return Distinct(self.relation(old.child))
            case Aggregate():
                calls = tuple(map(self.call, old.calls))
                return Aggregate(self.relation(old.child), self.all(old.keys), calls)
            case Window():
                windowed = tuple(map(self.windowed, old.calls))
                return Window(self.relation(old.child), self.all(old.keys), windowed)
            case Generate():
                call, names = self.scalar(old.call), self.all(old.names)
                return Generate(self.relation(old.child), call, names, old.outer)
            case Expand():
                return Expand(self.relation(old.child), self.name(old.count))
            case Repeat():
                return Repeat(self.relation(old.child), self.name(old.number), old.times)
            case _:
                assert_never(old)
