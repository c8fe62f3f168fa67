"""The net changes of a table as signed rows: what is sent to Spark, and the SELECTs over it.

With a key K, and T the touched keys with their last states, S the rows as they were seen, c the condition by
which rows are kept::

    Δ = −(S ⋉ T)  +  σ_c(T, where a row is left; what the log does not hold comes from S)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.errors import SourceError
from viewkeeper.sources.net_changes import NetChanges
from viewkeeper.sources.pgoutput import UNCHANGED
from viewkeeper.sources.postgres_server import Label, quoted
from viewkeeper.sources.postgres_types import PostgresType, array_as_json
from viewkeeper.sql.quoting import quote

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

STAGED = "{staged}"
"""Stands in the SELECTs for the name under which the rows are staged."""
_ALL_ROWS = 1 << 30
"""More than a table has, where nobody counted: an upper bound."""


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table as it was when the source was declared."""

    namespace: str
    name: str
    columns: tuple[tuple[str, str, str, int], ...]
    """Of each that is kept: name, PostgreSQL's type, Spark's type and the type's number."""
    key: tuple[str, ...]
    oid: int = 0
    identity: str = "d"
    where: str | None = None
    """Which rows are kept; all, if nothing is said."""
    layout: tuple[tuple[str, int], ...] = ()
    """Names and numbers of types of all its columns, also of those that are not kept."""
    numbers: tuple[int, ...] = ()
    """Of the columns that are kept: a column that is dropped and added again gets another one."""
    labels: tuple[tuple[Label, ...], ...] = ()
    """Those of the enums of the columns that are kept; of others none."""

    @property
    def sql(self) -> str:
        return quoted(self.namespace, self.name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _, _ in self.columns)

    @property
    def types(self) -> dict[str, PostgresType]:
        return {name: PostgresType(kind, spark) for name, kind, spark, _ in self.columns}

    def to_json(self) -> list[Any]:
        columns = [list(column) for column in self.columns]
        layout = [list(column) for column in self.layout]
        return [
            self.namespace,
            self.name,
            columns,
            list(self.key),
            self.oid,
            self.identity,
            self.where,
            layout,
            list(self.numbers),
            [[list(label) for label in labels] for labels in self.labels],
        ]

    @classmethod
    def of_json(cls, data: Sequence[Any]) -> PinnedTable:
        # Sources that were declared earlier know no numbers, or no labels.
        namespace, name, columns, key, oid, identity, where, layout, *later = data
        numbers, labels = (*later, [], [])[:2]
        kept, every = (tuple(tuple(column) for column in each) for each in (columns, layout))
        return cls(
            namespace,
            name,
            kept,
            tuple(key),
            oid,
            identity,
            where,
            every,
            tuple(numbers),
            tuple(tuple((number, text) for number, text in each) for each in labels),
        )

    def kept(self, query: str) -> str:
        """Those rows of a SELECT of Spark's that are kept."""
        return query if self.where is None else f"SELECT * FROM ({query}) WHERE ({self.where}\n)"


@dataclass(frozen=True, slots=True)
class SignedRows:
    """Rows of texts with their schema, to be staged, and the SELECTs over what is staged."""

    rows: list[tuple[Any, ...]]
    schema: tuple[tuple[str, str], ...]
    selects: tuple[str, ...]
    inserted: int
    deleted: int

    def table(self) -> pyarrow.Table:
        """The rows by column: Spark takes them in as they are, and knows how many there are."""
        import pyarrow

        types = {"string": pyarrow.string(), "boolean": pyarrow.bool_(), "bigint": pyarrow.int64()}
        schema = pyarrow.schema([(name, types[kind]) for name, kind in self.schema])
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(schema)
        return pyarrow.table(
            [pyarrow.array(values, each.type) for values, each in zip(columns, schema, strict=True)],
            schema=schema,
        )


def signed_rows(net: NetChanges, table: PinnedTable, seen: str) -> SignedRows:
    """The delta of a table; ``seen`` is a SELECT of the rows that were seen of it."""
    found = _keyed(net, table, seen) if net.key else _bag(net, table)
    if not net.truncated:
        return found
    everything = f"SELECT *, -1L AS {WEIGHT} FROM ({seen})"
    selects = (everything, found.selects[-1])
    return SignedRows(found.rows, found.schema, selects, found.inserted, _ALL_ROWS)


def _bag(net: NetChanges, table: PinnedTable) -> SignedRows:
    rows = [(*_texts(table, row), weight) for row, weight in net.rows.items() if weight]
    weights = [weight for weight in net.rows.values() if weight]
    select = table.kept(f"SELECT {_values(table, '')}, {WEIGHT} FROM {STAGED}")
    schema = (*((name, "string") for name in _text_names(table)), (WEIGHT, "bigint"))
    return SignedRows(
        rows,
        schema,
        (select,),
        sum(weight for weight in weights if weight > 0),
        -sum(weight for weight in weights if weight < 0),
    )


def _keyed(net: NetChanges, table: PinnedTable, seen: str) -> SignedRows:
    nothing = (None,) * len(table.columns)
    rows = [
        (
            *_texts(table, state.row or nothing),
            *(value is UNCHANGED for value in state.row or nothing),
            *key,
            *state.was,
            state.row is not None,
        )
        for key, state in net.keys.items()
    ]
    places = range(len(table.key))
    schema = (
        *((name, "string") for name in _text_names(table)),
        *((f"_vk_u{at}", "boolean") for at in range(len(table.columns))),
        *((f"_vk_key_{at}", "string") for at in places),
        *((f"_vk_was_{at}", "string") for at in places),
        ("_vk_is", "boolean"),
    )
    has_gaps = any(UNCHANGED in (state.row or ()) for state in net.keys.values())
    gone = (
        f"SELECT s.*, -1L AS {WEIGHT} FROM ({seen}) AS s "
        f"LEFT SEMI JOIN {STAGED} AS t ON {_matching(table, '_vk_key_')}"
    )
    values, origin = _values(table, "t."), ""
    if has_gaps:
        values, origin = _filled(table), f" LEFT JOIN ({seen}) AS s ON {_matching(table, '_vk_was_')}"
    came = table.kept(f"SELECT {values}, 1L AS {WEIGHT} FROM {STAGED} AS t{origin} WHERE t._vk_is")
    alive = sum(state.row is not None for state in net.keys.values())
    return SignedRows(rows, schema, (gone, came), alive, len(net.keys))


def _matching(table: PinnedTable, prefix: str) -> str:
    types = table.types
    return " AND ".join(
        f"s.{quote(column)} <=> {types[column].value(f't.{prefix}{at}')}"
        for at, column in enumerate(table.key)
    )


def _text_names(table: PinnedTable) -> list[str]:
    return [f"_vk_c{at}" for at in range(len(table.columns))]


def _texts(table: PinnedTable, row: Sequence[Any]) -> list[str | None]:
    """The texts of a row's values; those of arrays as JSON."""
    return [
        None if value is None or value is UNCHANGED else _text(table, name, kind, value)
        for value, (name, kind) in zip(row, table.types.items(), strict=True)
    ]


def _text(table: PinnedTable, column: str, kind: PostgresType, value: str) -> str:
    try:
        return array_as_json(value) if kind.is_array else value
    except ValueError as error:
        raise SourceError(
            f"column {column} of {table.namespace}.{table.name}: {error}",
            code="VK-SOURCE-TYPE",
            hint="Spark's arrays have one dimension, and begin at one. Mend the row, or leave the table out.",
        ) from None


def _values(table: PinnedTable, prefix: str) -> str:
    return ", ".join(
        f"{kind.value(f'{prefix}_vk_c{at}')} AS {quote(name)}"
        for at, (name, kind) in enumerate(table.types.items())
    )


def _filled(table: PinnedTable) -> str:
    """A value that the log does not hold is that of the row as it was seen, which must be there."""
    key = quote(table.key[0])
    told = "'a value that the log does not hold is not in the base view either'"
    return ", ".join(
        f"CASE WHEN NOT t._vk_u{at} THEN {kind.value(f't._vk_c{at}')} "
        f"WHEN s.{key} IS NULL THEN raise_error({told}) ELSE s.{quote(name)} END AS {quote(name)}"
        for at, (name, kind) in enumerate(table.types.items())
    )
