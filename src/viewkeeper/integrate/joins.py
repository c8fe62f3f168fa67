"""A view's query over remote tables, taken apart: the join that is swept, and what Spark does with its rows.

    V = π_items(σ_rest(J)),      J = R₁ ⋈ … ⋈ Rₙ on the columns that are set equal

J is swept, for it is a matter of equal values; whatever else the query says is one of Spark's expressions
over a row of J, and distributes over its changes: ΔV = π_items(σ_rest(ΔJ)).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.join_sizes import equal_columns
from viewkeeper.algebra.relations import Field, Filter, Join, Project, Relation, Scan
from viewkeeper.algebra.scalars import Named, Scalar, column
from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.views import JoinView
from viewkeeper.integrate.views import Relation as JoinedRelation
from viewkeeper.sources.conditions import pushed
from viewkeeper.sources.postgres_types import PostgresType
from viewkeeper.sql.quoting import parse_path, quote

_MIRROR = "Copy one of them into the warehouse: list it in the source's tables, not under remote."
_SENT = ("date", "uuid", "boolean", "timestamp without time zone", "timestamp with time zone")
"""Types of which equal values have equal texts, beside whole numbers and texts."""


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """A relation of the join: a table of a database, and what its columns are called in the join."""

    name: str
    """Another one for each time that the query names the table."""
    table: str
    columns: tuple[tuple[str, str], ...]
    """The table's column and the join's, of each that is needed."""
    where: str = ""
    """What the database can tell of the rows that are wanted."""

    @property
    def source(self) -> str:
        return parse_path(self.table)[1]

    @property
    def stored(self) -> tuple[str, ...]:
        return tuple(stored for stored, _ in self.columns)

    @property
    def joined(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.columns)


@dataclass(frozen=True, slots=True)
class SweptJoin:
    """J: its relations, and the columns that it has, with PostgreSQL's type and Spark's."""

    relations: tuple[RemoteTable, ...]
    types: tuple[tuple[str, str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.types)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(relation.source for relation in self.relations))

    @property
    def view(self) -> JoinView:
        """As the algorithms know it."""
        return JoinView(
            tuple(JoinedRelation(each.name, each.joined, each.source) for each in self.relations),
            self.columns,
        )

    def to_json(self) -> str:
        relations = [[each.name, each.table, each.columns, each.where] for each in self.relations]
        return json.dumps([relations, self.types])

    @classmethod
    def of_json(cls, text: str) -> SweptJoin:
        relations, types = json.loads(text)
        return cls(
            tuple(
                RemoteTable(name, table, tuple((stored, joined) for stored, joined in columns), where)
                for name, table, columns, where in relations
            ),
            tuple((name, postgres, spark) for name, postgres, spark in types),
        )


def family(kind: PostgresType) -> str | None:
    """The type in which keys of a type are sent. Columns of one family can be set equal by their texts.

    >>> [family(PostgresType(name, "")) for name in ("smallint", "character varying(9)", "numeric(3,1)")]
    ['bigint', 'text', None]
    """
    if kind.is_whole:
        return "bigint"
    if kind.is_text:
        return "text"
    return kind.name if kind.name in _SENT else None


def taken_apart(
    view: str, relation: Relation, types: Mapping[str, Mapping[str, PostgresType]], swept: str
) -> tuple[SweptJoin, Relation]:
    """The join to sweep, and the view over the table ``swept`` of its rows. ``types``: those of the
    tables' columns."""
    parts = _Parts(view)
    outputs = parts.take(relation)
    scans = parts.scans
    kinds = {field.name: types[scan.table][field.stored] for scan in scans for field in scan.fields}
    names = _Names(scans, kinds)
    rest = [conjunct for conjunct in parts.conjuncts if not names.equate(conjunct)]
    relations = tuple(
        RemoteTable(
            f"r{at}",
            scan.table,
            tuple((field.stored, names.of(field.name)) for field in scan.fields),
            _decided_there(scan, rest, types[scan.table]),
        )
        for at, scan in enumerate(scans, 1)
    )
    columns = dict.fromkeys(name for each in relations for name in each.joined)
    join = SweptJoin(relations, tuple((name, kinds[name].name, kinds[name].spark) for name in columns))
    _require_joined(view, join)
    known = {name: names.scalar(name) for scan in scans for name in scan.columns}
    joined: Relation = Scan(swept, tuple(Field(name, name) for name in join.columns))
    for conjunct in rest:
        joined = Filter(joined, conjunct.substitute(known))
    return join, Project(joined, tuple(Named(each.name, each.scalar.substitute(known)) for each in outputs))


def _decided_there(scan: Scan, conjuncts: Sequence[Scalar], types: Mapping[str, PostgresType]) -> str:
    """What a database can tell of the conditions on one of its tables."""
    stored = {field.name: field.stored for field in scan.fields}
    written = [
        "".join(part if isinstance(part, str) else quote(stored[part.name]) for part in each.parts)
        for each in conjuncts
        if each.columns and each.columns <= stored.keys()
    ]
    return " AND ".join(filter(None, (pushed(each, types) for each in written)))


def _require_joined(view: str, join: SweptJoin) -> None:
    if any(not relation.columns for relation in join.relations):
        raise unsuited(view, "it names a table of which it reads no column")
    try:
        _ = join.view
    except DefinitionError as error:
        raise unsuited(view, error.message) from None


def unsuited(view: str, why: str) -> DefinitionError:
    """Why a view of remote tables cannot be kept."""
    return DefinitionError(
        f"view {view} reads remote tables, and cannot be swept over them: {why}",
        code="VK-SWEEP-UNSUITED",
        hint=_MIRROR,
    )


_CALLED = {
    "OuterJoin": "a LEFT OUTER or FULL OUTER join",
    "Exists": "EXISTS, IN, a SEMI or an ANTI join",
    "Aggregate": "an aggregate",
    "Window": "a window function or LIMIT",
    "Generate": "a generator",
    "UnionAll": "UNION ALL",
    "Constant": "rows that stand in the query",
}
"""Operators, as people call them."""


class _Parts:
    """Takes select, project and join apart; whatever else there is, is refused."""

    def __init__(self, view: str) -> None:
        self._view = view
        self.scans: list[Scan] = []
        self.conjuncts: list[Scalar] = []

    def take(self, relation: Relation) -> tuple[Named, ...]:
        """What the columns of the relation are, over the columns of the tables."""
        match relation:
            case Scan():
                self.scans.append(relation)
                return tuple(Named(name, column(name)) for name in relation.columns)
            case Filter():
                below = self.take(relation.child)
                self.conjuncts.append(relation.predicate.substitute(_by_name(below)))
                return below
            case Project():
                known = _by_name(self.take(relation.child))
                return tuple(Named(each.name, each.scalar.substitute(known)) for each in relation.items)
            case Join():
                every = tuple(each for child in relation.inputs for each in self.take(child))
                self.conjuncts += [each.substitute(_by_name(every)) for each in relation.conjuncts]
                return every
            case _:
                what = _CALLED.get(type(relation).__name__, type(relation).__name__.lower())
                raise DefinitionError(
                    f"view {self._view} reads remote tables, and is more than select, project and join: "
                    f"{what}",
                    code="VK-SWEEP-UNSUITED",
                    hint="Let one view join the remote tables, and another one, over it, do the rest; or "
                    "copy the tables: list them in the source's tables, not under remote.",
                )


def _by_name(columns: Sequence[Named]) -> dict[str, Scalar]:
    return {each.name: each.scalar for each in columns}


class _Names:
    """Which columns are set equal: they have one name in the join."""

    def __init__(self, scans: Sequence[Scan], kinds: Mapping[str, PostgresType]) -> None:
        self._kinds = kinds
        self._home = {name: at for at, scan in enumerate(scans) for name in scan.columns}
        self._class: dict[str, list[str]] = {name: [name] for name in self._home}

    def equate(self, conjunct: Scalar) -> bool:
        """Whether the join takes care of this condition."""
        pair = equal_columns(conjunct)
        if pair is None or "<" in "".join(part for part in conjunct.parts if isinstance(part, str)):
            return False  # no equality, or one by which NULL equals NULL
        one, other = (self._class[name] for name in pair)
        if one is other:
            return True
        sent = family(self._kinds[pair[0]])
        homes = [self._home[name] for name in (*one, *other)]
        # A table has a name once: two columns of it that are equal are compared by Spark.
        if sent is None or sent != family(self._kinds[pair[1]]) or len(set(homes)) < len(homes):
            return False
        merged = sorted((*one, *other))
        self._class.update(dict.fromkeys(merged, merged))
        return True

    def of(self, name: str) -> str:
        return self._class[name][0]

    def scalar(self, name: str) -> Scalar:
        """A column of a table, from the join; of its own type."""
        there = self.of(name)
        kind = self._kinds[name].spark
        if self._kinds[there].spark == kind:
            return column(there)
        return Scalar(("CAST(", *column(there).parts, f" AS {kind})"))


def first_content(join: SweptJoin, relations: Mapping[str, str]) -> str:
    """A SELECT of J over what stands for each relation, whose columns are the table's."""
    seen: dict[str, str] = {}
    source = ""
    for relation in _connected(join):
        on = []
        for stored, joined in relation.columns:
            here = f"{relation.name}.{quote(stored)}"
            if joined in seen:
                on.append(f"{seen[joined]} = {here}")
            else:
                seen[joined] = here
        named = f"{relations[relation.name]} AS {relation.name}"
        source += f" JOIN {named} ON {' AND '.join(on)}" if source else named
    columns = ", ".join(f"CAST({seen[name]} AS {kind}) AS {quote(name)}" for name, _, kind in join.types)
    return f"SELECT {columns} FROM {source}"


def _connected(join: SweptJoin) -> list[RemoteTable]:
    """The relations, each sharing a column with one before it."""
    found, left = [join.relations[0]], list(join.relations[1:])
    while left:
        known = {name for relation in found for name in relation.joined}
        at = next(at for at, each in enumerate(left) if known & set(each.joined))
        found.append(left.pop(at))
    return found
