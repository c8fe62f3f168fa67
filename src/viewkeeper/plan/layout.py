"""How a view is stored, and how its rows are seen.

A view whose query ends in GROUP BY or DISTINCT is stored as *groups*: the keys and what is kept for each
aggregate, hidden columns among them; the user's columns (an AVG, a HAVING) are worked out when it is read.
Any other view is a *bag*. As DUP every copy is a row. As CNT it is stored as the groups of all its columns,
with the count of each, and each is shown as often as that says (:mod:`viewkeeper.plan.representation`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeeper.algebra.aggregates import GROUP_COUNT, keep_for
from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.first_rows import FirstRows, Order, first_rows
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Expand,
    Field,
    Filter,
    Project,
    Relation,
    Staged,
    TableAt,
    Window,
    filled,
    map_children,
    scans,
)
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, column, compose, keep
from viewkeeper.algebra.summary_delta import ROW, Groups, folded
from viewkeeper.define.sources import SOURCES
from viewkeeper.sql.quoting import parse_path

Types = Callable[[Relation], Mapping[str, str]]
"""Asks Spark for the types of a relation's columns; only analysis, no job."""


INNER = "_vk_inner"
"""Stands for the rows that are stored, in what is made of them."""

_NOT_IN_ICEBERG = re.compile(r"(?:^|[:<,])(?:interval|void)(?:$|[\s>,])")

_COLLATION = re.compile(r" collate \w+")

_MOST_SHOWN = 10_000
"""More rows than that are not kept beyond a LIMIT: they are put in order at every refresh."""
_SPARE = 100
"""So many rows are kept beyond a LIMIT at least, else as many again as it shows."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """Of the first rows in an order so many are shown, and more are kept (:mod:`.algebra.first_rows`)."""

    order: Order
    shown: int
    kept: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The storage of a view. ``fields`` pairs the stored columns with the names that the algebra uses;
    ``present`` and ``visible`` make the user's rows of the stored ones."""

    fields: tuple[Field, ...]
    types: tuple[str, ...]
    rows: Relation | None
    groups: Groups | None
    present: tuple[Named, ...]
    visible: Scalar | None
    counted: bool = False
    """Whether it is a bag stored as CNT."""
    in_parts: bool = False
    """Whether a group may be stored in several rows, to be combined (SDAPPEND)."""
    top: Relation | None = None
    """What is made of the rows when they are read, where that is more than ``present`` and ``visible`` say:
    windows over groups, LIMIT. It reads them under the name of ``INNER``."""
    reserve: Reserve | None = None
    """What is kept of a bag that LIMIT shows the first rows of."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The user's columns."""
        return tuple(item.name for item in self.present) if self.top is None else self.top.columns

    @property
    def has_hidden_rows(self) -> bool:
        return self.visible is not None

    @property
    def is_plain_bag(self) -> bool:
        """Whether it holds the user's rows as they are, every copy a row."""
        return self.groups is None and self.rows is not None and self.top is None

    @property
    def can_be_stored(self) -> bool:
        """Whether Iceberg has the types of all that is stored: it has no intervals."""
        return not any(map(_NOT_IN_ICEBERG.search, self.types))

    @property
    def hashed(self) -> bool:
        """Whether each stored row carries its hash: a bag that is kept by deltas finds rows by it."""
        return self.groups is None and self.rows is not None

    def stored(self, table: str, snapshot: str | None) -> TableAt:
        """The stored rows at a snapshot, under the algebra's names."""
        return TableAt(table, snapshot, self.fields)

    def identified(self, table: str, snapshot: str | None) -> TableAt:
        """The stored rows with Iceberg's identity of each."""
        return TableAt(table, snapshot, (*self.fields, Field("_row_id", ROW)))

    def whole(self, stored: Relation) -> Relation:
        """The stored rows, with the parts of each group combined."""
        if not self.in_parts:
            return stored
        assert self.groups is not None
        return folded(self.groups, stored)

    def shown(self, stored: Relation) -> Relation:
        """The user's rows, made of stored ones."""
        whole = self.whole(stored)
        rows = whole if self.visible is None else Filter(whole, self.visible)
        if self.counted:
            return Expand(Project(rows, (*self.present, *keep([GROUP_COUNT]))), GROUP_COUNT)
        shown = Project(rows, self.present)
        if self.top is None:
            return shown
        return filled(self.top, INNER, lambda _: shown)

    def shown_change(self, stored: Delta) -> Delta:
        """A change of the user's rows, made of one of the stored rows (whole groups): a counted row weighs
        its count."""
        assert self.top is None, "what is made of all rows together is not made of a few"
        rows = stored.relation if self.visible is None else Filter(stored.relation, self.visible)
        weight = column(WEIGHT)
        if self.counted:
            weight = compose(weight, " * ", column(GROUP_COUNT))
        return Delta(Project(rows, (*self.present, Named(WEIGHT, weight))))

    def as_stored(self, rows: Relation) -> Relation:
        """Rows under the algebra's names, as the storage table has them."""
        return Project(rows, tuple(Named(field.stored, column(field.name)) for field in self.fields))

    def stored_name(self, name: str) -> str:
        return next(field.stored for field in self.fields if field.name == name)


def bag_layout(columns: Sequence[tuple[str, str]], rows: Relation | None) -> Layout:
    """Every copy a row; ``rows`` is ``None`` for a view that is known by its text alone."""
    names = tuple(name for name, _ in columns)
    return Layout(
        fields=tuple(Field(name, name) for name in names),
        types=tuple(stored_type(kind) for _, kind in columns),
        rows=rows,
        groups=None,
        present=tuple(_as_declared(item, kind) for item, (_, kind) in zip(keep(names), columns, strict=True)),
        visible=None,
    )


def counted_layout(relation: Relation, columns: Sequence[tuple[str, str]], types: Types) -> Layout:
    """Every row once, with the number of its copies."""
    every_row = Aggregate(relation, relation.columns, ())
    values = {name: column(name) for name in relation.columns}
    return replace(_groups_layout(every_row, values, None, dict(columns), types), counted=True)


def stored_type(kind: str) -> str:
    """The type that Iceberg has for a column of this type.

    >>> [stored_type(kind) for kind in ("smallint", "varchar(10)", "bigint", "string collate UTF8_LCASE")]
    ['int', 'string', 'bigint', 'string']
    """
    kind = _COLLATION.sub("", kind)
    if kind in ("tinyint", "smallint"):
        return "int"
    return "string" if kind.startswith(("char(", "varchar(")) else kind


def _as_declared(item: Named, kind: str) -> Named:
    """The user's column with the type that the query gives it, where the stored one is wider."""
    if stored_type(kind) == kind or kind.startswith(("char(", "varchar(")):
        return item
    return Named(item.name, compose("CAST(", item.scalar, f" AS {kind})"))


def layout_of(
    relation: Relation, columns: Sequence[tuple[str, str]], types: Types, *, as_shown: bool = False
) -> Layout:
    """The layout for a query in normal form whose columns have these types. ``as_shown``: the columns that
    are shown must be stored, for the storage is partitioned or ordered by some of them."""
    core, values, visible = _peel(relation)
    if isinstance(core, Aggregate):
        return _groups_layout(core, values, visible, dict(columns), types)
    below = None if as_shown else _groups_below_windows(relation)
    if below is not None:
        return replace(layout_of(below, list(types(below).items()), types), top=_over(relation, below, below))
    limit = None if as_shown else _innermost_limit(relation)
    if limit is not None:
        rows = Project(limit.child, keep(dict.fromkeys(name for name, _ in limit.order)))
        return replace(
            bag_layout(list(types(rows).items()), rows),
            top=_over(relation, limit.child, rows),
            reserve=Reserve(limit.order, limit.shown, limit.shown + max(limit.shown, _SPARE)),
        )
    return bag_layout(columns, relation)


def _groups_below_windows(relation: Relation) -> Relation | None:
    """The groups that window functions look at, where nothing but filters and projections is around those:
    they are stored, and what the functions say of them is found when they are read."""
    below: Relation | None = None
    while isinstance(relation, (Project, Filter, Window)):
        below = relation.child if isinstance(relation, Window) else below
        relation = relation.child
    return below if below is not None and isinstance(_peel(below)[0], Aggregate) else None


def _innermost_limit(relation: Relation) -> FirstRows | None:
    """The LIMIT over rows around which there is nothing but filters, projections and windows: what these make
    of few rows is found when they are read. Rows of a source that cannot be read again are not kept so: there
    may be too few one day."""
    found: FirstRows | None = None
    while isinstance(relation, (Project, Filter, Window)):
        found = first_rows(relation) or found
        relation = relation.child
    if found is None or found.shown > _MOST_SHOWN:
        return None
    return None if any(parse_path(scan.table)[0] == SOURCES for scan in scans(relation)) else found


def _over(relation: Relation, below: Relation, stored: Relation) -> Relation:
    """The relation over stored rows in the place of ``below``."""
    if relation is below:
        return Staged(INNER, tuple(Field(name, name) for name in stored.columns))
    return map_children(relation, lambda child: _over(child, below, stored))


def _peel(relation: Relation) -> tuple[Relation, Mapping[str, Scalar], Scalar | None]:
    """The aggregate below the last filters and projections, and those as expressions over it."""
    match relation:
        case Project(child, items):
            core, values, visible = _peel(child)
            return core, {item.name: item.scalar.substitute(values) for item in items}, visible
        case Filter(child, predicate):
            core, values, visible = _peel(child)
            condition = predicate.substitute(values)
            return core, values, condition if visible is None else compose(visible, " AND ", condition)
        case Distinct(child):
            core = Aggregate(child, child.columns, ())
            return core, {name: column(name) for name in core.columns}, None
        case _:
            return relation, {name: column(name) for name in relation.columns}, None


def _groups_layout(
    core: Aggregate,
    values: Mapping[str, Scalar],
    visible: Scalar | None,
    declared: Mapping[str, str],
    types: Types,
) -> Layout:
    arguments = dict.fromkeys(argument for call in core.calls for argument in call.arguments)
    named = {argument: f"_vk_argument_{at}" for at, argument in enumerate(arguments)}
    asked = Project(core.child, tuple(Named(name, argument) for argument, name in named.items()))
    argument_types = types(asked) if arguments else {}
    kept, call_values = keep_for(core.calls, lambda argument: argument_types[named[argument]])

    rows = Groups(core.child, core.keys, kept, ()).rows
    row_types = {name: stored_type(kind) for name, kind in types(rows).items()}
    groups = Groups(core.child, core.keys, kept, tuple(row_types.items()))
    present = tuple(Named(name, scalar.substitute(call_values)) for name, scalar in values.items())
    return Layout(
        fields=_stored_under_user_names(rows.columns, present),
        types=tuple(row_types[name] for name in rows.columns),
        rows=rows,
        groups=groups,
        present=tuple(_as_declared(item, declared[item.name]) for item in present),
        visible=None if visible is None else visible.substitute(call_values),
    )


def _stored_under_user_names(columns: Sequence[str], present: Sequence[Named]) -> tuple[Field, ...]:
    """A column that the user sees as it is stored carries the user's name, so that other engines can read
    the storage table; the rest is hidden behind ``_vk_``."""
    user_names: dict[str, str] = {}
    for item in present:
        if item.is_rename:
            user_names.setdefault(next(iter(item.scalar.columns)), item.name)
    hidden = 0
    fields = []
    for name in columns:
        stored = user_names.get(name)
        if stored is None:
            hidden += 1
            stored = name if name.startswith("_vk_") else f"_vk_key_{hidden}"
        fields.append(Field(stored, name))
    return tuple(fields)


def group_count_column(layout: Layout) -> str:
    """The stored column that holds COUNT(*) of each group."""
    return layout.stored_name(GROUP_COUNT)
