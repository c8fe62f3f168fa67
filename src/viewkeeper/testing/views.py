"""Random views: every shape of query that is kept by deltas, at any depth, and views on views.

Filters, projections and expressions; inner, outer, semi and anti joins, self joins, conditions that are no
equalities, products; UNION, INTERSECT and EXCEPT, DISTINCT, GROUP BY with HAVING; window functions, QUALIFY,
LIMIT, lateral views, time filters; subqueries in FROM, in WITH and in expressions; sources and views
together. Now and then a view that is kept by recomputing, for others to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from viewkeeper.sql.quoting import ident
from viewkeeper.testing.cases import View
from viewkeeper.testing.expressions import KINDS, NUMBERS, Column, Expressions
from viewkeeper.testing.tables import Table

LARGEST = 2_000
"""Estimated rows beyond which a query is thrown away and another one made up."""

_TABLE_ROWS = 12.0


@dataclass(frozen=True, slots=True)
class Query:
    """A query with the names and kinds of its columns, and about how many rows it has.

    A floating-point sum can be kept by deltas only at the top of a view: ``rounded`` says that there is one
    there, ``rounded_inside`` that there is one further down.
    """

    sql: str
    columns: tuple[tuple[str, str], ...]
    rows: float
    rounded: bool = False
    rounded_inside: bool = False

    @property
    def inside(self) -> bool:
        return self.rounded or self.rounded_inside


@dataclass(frozen=True, slots=True)
class _From:
    """A FROM clause: its text, its columns, and what it is made of."""

    text: str
    columns: tuple[Column, ...]
    rows: float
    rounded: bool
    rounded_inside: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    """A form of an aggregate call: the kinds it takes and gives, and whether its last bits are a matter of
    the order of the rows (``adds``: for floating-point numbers)."""

    text: str
    takes: str
    gives: str
    weight: int = 1
    adds: bool = False
    inexact: bool = False


_NUMERIC = " ".join(NUMBERS)
_CALLS = (
    _Shape("count({0}){filter}", "any", "bigint", 4),
    _Shape("min({0}){filter}", "any", "same", 6),
    _Shape("max({0}){filter}", "any", "same", 6),
    _Shape("sum({0}){filter}", _NUMERIC, "sum", 10, adds=True),
    _Shape("avg({0}){filter}", _NUMERIC, "average", 5, adds=True),
    _Shape("count(DISTINCT {0}){filter}", "any", "bigint"),
    _Shape("sum(DISTINCT {0}){filter}", "int decimal", "sum"),
    _Shape("approx_count_distinct({0}){filter}", "any", "bigint"),
    _Shape("bit_and({0}){filter}", "int bigint", "same"),
    _Shape("bit_or({0}){filter}", "int bigint", "same"),
    _Shape("bit_xor({0}){filter}", "int bigint", "same", 2),
    _Shape("count_if({0}){filter}", "boolean", "bigint", 4),
    _Shape("bool_and({0}){filter}", "boolean", "boolean", 4),
    _Shape("bool_or({0}){filter}", "boolean", "boolean", 4),
    _Shape("var_pop({0}){filter}", _NUMERIC, "double", inexact=True),
    _Shape("stddev({0}){filter}", _NUMERIC, "double", inexact=True),
    _Shape("covar_samp({0}, {2}){filter}", "int", "double", inexact=True),
    # No corr: of a column that does not vary, Spark's own raises DIVIDE_BY_ZERO.
    _Shape("median({0}){filter}", "int", "double"),
    _Shape("percentile({0}, 0.25){filter}", "int", "double"),
    _Shape("mode({0}){filter}", "any", "same"),
    _Shape("min_by({0}, {1}){filter}", "any", "same"),
    _Shape("max_by({0}, {1}){filter}", "any", "same"),
    _Shape("size(collect_set({0}){filter})", "any", "int"),
    _Shape("concat_ws(',', collect_list({0}){filter})", "string", "string", 2),
    _Shape("listagg({0}, ';'){filter}", "string", "string", 2),
)


_TIME_FILTERS = (
    "{date} < current_date",
    "{date} >= current_date - INTERVAL 30 DAYS",
    "{date} BETWEEN date_sub(current_date(), 45) AND curdate()",
    "coalesce({date} > current_date, true)",
    "datediff(current_date, {date}) < 20 OR {date} IS NULL",
    "CAST({date} AS TIMESTAMP) <= now()",
)
"""Time passes between the cycles of a case."""


class Views:
    """Makes up views over tables, and over the views that it made up before."""

    def __init__(self, tables: Sequence[Table], random: Random) -> None:
        self._random = random
        self._tables = [
            Query(table.name, tuple((name, _kind(kind)) for name, kind in table.columns), _TABLE_ROWS)
            for table in tables
        ]
        self._views: list[Query] = []
        self._with: list[tuple[str, Query]] = []
        self._aliases = 0

    def view(self, name: str) -> View:
        """Another view."""
        while True:
            self._with, self._aliases = [], 0
            kept = self._random.random() < 0.93
            query = self._query(self._random.choice((0, 1, 1, 2))) if kept else self._recomputed()
            if query.rows <= LARGEST:
                break
        sql = self._with_clause() + query.sql
        columns: tuple[str, ...] = ()
        if self._random.random() < 0.2:
            columns = tuple(f"k{at}" for at in self._random.sample(range(20), len(query.columns)))
            query = replace(
                query,
                columns=tuple((new, kind) for new, (_, kind) in zip(columns, query.columns, strict=True)),
            )
        self._views.append(replace(query, sql=name, rounded=False, rounded_inside=False))
        return View(name, sql, columns, incremental=kept and not query.rounded_inside)

    def _with_clause(self) -> str:
        if not self._with:
            return ""
        return "WITH " + ", ".join(f"{name} AS ({query.sql})" for name, query in self._with) + "\n"

    def _query(self, depth: int) -> Query:
        if depth > 0 and self._random.random() < 0.2:
            return self._union(depth)
        return self._select(depth)

    # FROM

    def _relation(self, depth: int) -> tuple[str, Query]:
        """A table, a view, a subquery or a WITH query: how it stands in FROM, and its columns."""
        choices = ["table"] * 5 + ["view"] * (4 if self._views else 0) + ["again"] * (2 if self._with else 0)
        choices += ["subquery"] * (6 if depth > 0 else 0) + ["with"] * (2 if depth > 0 else 0)
        match self._random.choice(choices):
            case "view":
                query = self._random.choice(self._views)
                return query.sql, query
            case "subquery":
                query = self._query(depth - 1)
                return f"({query.sql})", query
            case "with":
                query = self._query(depth - 1)
                name = f"q{len(self._with) + 1}"
                self._with.append((name, query))
                return name, query
            case "again":
                name, query = self._random.choice(self._with)
                return name, query
            case _:
                query = self._random.choice(self._tables)
                return query.sql, query

    def _from(self, depth: int, count: int) -> _From:
        text, columns, rows = "", list[Column](), 1.0
        rounded = inside = False
        for at in range(count):
            relation, query = self._relation(depth)
            self._aliases += 1
            alias = f"r{self._aliases}"
            own = [Column(f"{alias}.{ident(name)}", kind) for name, kind in query.columns]
            if at == 0:
                text, rounded, inside = f"{relation} AS {alias}", query.rounded, query.rounded_inside
            else:
                joined, share = self._joined(columns, own, f"{relation} AS {alias}")
                text, rows = text + joined, rows * share
                inside = inside or rounded or query.inside
                rounded = False
                if " SEMI JOIN " in joined or " ANTI JOIN " in joined:
                    continue
            columns += own
            rows *= query.rows
        if self._random.random() < 0.06:
            one, other = (self._random.choice(columns) for _ in range(2))
            if one.kind == other.kind:
                self._aliases += 1
                alias = f"g{self._aliases}"
                outer = self._random.choice(("", "OUTER "))
                text += f"\nLATERAL VIEW {outer}explode(array({one.text}, {other.text})) {alias} AS x"
                columns.append(Column(f"{alias}.x", one.kind))
                rows *= 2
        return _From(text, tuple(columns), rows, rounded, inside)

    def _joined(self, left: Sequence[Column], right: Sequence[Column], relation: str) -> tuple[str, float]:
        """`` JOIN … ON …``, and the share of the pairs that it may keep."""
        pairs = [(mine, theirs) for mine in left for theirs in right if mine.kind == theirs.kind]
        pairs = [pair for pair in pairs if pair[0].kind not in ("boolean", "double")]
        if not pairs or self._random.random() < 0.08:
            return self._random.choice((f" CROSS JOIN {relation}", f", {relation}")), 1.0
        mine, theirs = self._random.choice(pairs)
        operator = self._random.choice(("=", "=", "=", "=", "<=>", "<", "<>"))
        on, share = f"{mine.text} {operator} {theirs.text}", 0.3 if "=" in operator else 0.6
        if self._random.random() < 0.3:
            both = Expressions((*left, *right), self._random).condition(1)
            on += f" {self._random.choice(('AND', 'AND', 'OR'))} ({both})"
        kind = self._random.choices(
            (
                "JOIN",
                "INNER JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL OUTER JOIN",
                "LEFT SEMI JOIN",
                "LEFT ANTI JOIN",
            ),
            (6, 3, 3, 1, 2, 1, 1),
        )[0]
        return f" {kind} {relation} ON {on}", max(share, 1.0 if "OUTER" in kind or "LEFT" in kind else share)

    # SELECT

    def _select(self, depth: int) -> Query:
        source = self._from(depth, self._random.choices((1, 2, 3), (6, 4, 1))[0])
        expressions = Expressions(source.columns, self._random)
        where, rows = "", source.rows
        if self._random.random() < 0.35:
            condition, rows = self._condition(source, expressions), rows * 0.6
            where = f"\nWHERE {condition}"
        tail = f"\nFROM {source.text}{where}"
        single = not any(sign in source.text for sign in (" JOIN ", ", ", "LATERAL"))
        form = self._random.choices(
            ("plain", "distinct", "groups", "total", "windows", "limited"), (5, 2, 6, 1, 3, 1)
        )[0]
        if form in ("groups", "total"):
            return self._grouped(source, expressions, tail, rows, keyed=form == "groups")
        if form in ("windows", "limited"):
            return self._ordered(source, expressions, tail, rows, limited=form == "limited")
        items = [(expressions.of(kind), kind) for kind in self._kinds(expressions, 1, 4)]
        if self._random.random() < 0.15 and single and form == "plain":
            names = [(column.text.split(".", 1)[1].strip("`"), column.kind) for column in source.columns]
            return Query(f"SELECT *{tail}", tuple(names), rows, source.rounded, source.rounded_inside)
        columns = self._named(items, source)
        listed = _listed(items, columns)
        inside = source.rounded_inside or (form == "distinct" and source.rounded)
        rounded = source.rounded and form == "plain"
        distinct = "DISTINCT " if form == "distinct" else ""
        return Query(f"SELECT {distinct}{listed}{tail}", columns, rows, rounded, inside)

    def _condition(self, source: _From, expressions: Expressions) -> str:
        """A condition of WHERE; now and then one with a subquery."""
        plain = expressions.condition()
        if self._random.random() < 0.12:
            timed = self._random.choice(_TIME_FILTERS).format(date=expressions.of("date"))
            return f"({timed}) AND ({plain})" if self._random.random() < 0.3 else timed
        relation, query = self._relation(0)
        self._aliases += 1
        alias = f"e{self._aliases}"
        own = [Column(f"{alias}.{ident(name)}", kind) for name, kind in query.columns]
        pairs = [(x, y) for x in source.columns for y in own if x.kind == y.kind]
        pairs = [pair for pair in pairs if pair[0].kind not in ("boolean", "double")]
        if not pairs or query.inside or self._random.random() < 0.6:
            return plain
        outer, inner = self._random.choice(pairs)
        where = Expressions(own, self._random).condition(1)
        value = self._random.choice(own)
        tie = f"{inner.text} {self._random.choice(('=', '=', '=', '<=>', '<'))} {outer.text}"
        tied = f"FROM {relation} AS {alias} WHERE {tie} AND ({where})"
        form = self._random.choice(
            (
                f"EXISTS (SELECT 1 {tied})",
                f"NOT EXISTS (SELECT 1 {tied})",
                f"{outer.text} IN (SELECT {inner.text} FROM {relation} AS {alias} WHERE {where})",
                f"{outer.text} NOT IN (SELECT {inner.text} FROM {relation} AS {alias} WHERE {where})",
                f"{outer.text} <= (SELECT max({inner.text}) FROM {relation} AS {alias})",
                f"(SELECT count({value.text}) {tied}) < 2",
                f"coalesce((SELECT max({inner.text}) {tied}) >= {outer.text}, true)",
            )
        )
        return (
            form
            if self._random.random() < 0.6
            else f"({form}) {self._random.choice(('AND', 'OR'))} ({plain})"
        )

    def _ordered(
        self, source: _From, expressions: Expressions, tail: str, rows: float, *, limited: bool
    ) -> Query:
        """Window functions, top rows of a partition, or LIMIT: what looks at the order of rows."""
        kinds = [kind for kind in expressions.kinds if kind != "double"] or ["int"]
        chosen = [self._random.choice(kinds) for _ in range(self._random.randint(1, 2))]
        items = [(expressions.of(kind, 1), kind) for kind in chosen]
        order = f"{self._random.choice(items)[0]}{self._random.choice(('', ' DESC', ' DESC NULLS FIRST'))}"
        inside = source.rounded_inside or source.rounded
        if limited:
            columns = self._named(items, source)
            listed = _listed(items, columns)
            name = self._random.choice(columns)[0]
            offset = f" OFFSET {self._random.randint(1, 3)}" if self._random.random() < 0.3 else ""
            sql = f"SELECT {listed}{tail}\nORDER BY {name} LIMIT {self._random.randint(1, 6)}{offset}"
            return Query(f"SELECT * FROM ({sql})", columns, 6.0, rounded_inside=inside)
        partition = f"PARTITION BY {expressions.of(self._random.choice(kinds), 1)} "
        if "r" not in partition.removeprefix("PARTITION BY ") or self._random.random() < 0.15:
            partition = ""
        argument, kind = self._random.choice(items)
        number = next((text for text, each in items if each in ("int", "bigint", "decimal")), "1")
        frame = self._random.choice(("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING"))
        calls = (
            ("row_number() OVER ({p}ORDER BY {o})", "int"),
            ("rank() OVER ({p}ORDER BY {o})", "int"),
            ("dense_rank() OVER ({p}ORDER BY {o})", "int"),
            ("count(*) OVER ({p})", "bigint"),
            ("max({a}) OVER ({p})", kind),
            ("lag({a}) OVER ({p}ORDER BY {o})", kind),
            ("first_value({a}) OVER ({p}ORDER BY {o} {f})", kind),
            ("CAST(sum({n}) OVER ({p}ORDER BY {o} {f}) AS DECIMAL(20,2))", "decimal"),
            ("CAST(sum({n}) OVER ({p}) AS DECIMAL(20,2))", "decimal"),
        )
        text, gives = self._random.choice(calls)
        items.append((text.format(p=partition, o=order, a=argument, n=number, f=frame), gives))
        columns = self._named(items, source)
        listed = _listed(items, columns)
        sql = f"SELECT {listed}{tail}"
        if self._random.random() < 0.25:
            sql = f"SELECT * FROM ({sql}) WHERE {columns[-1][0]} IS NOT NULL"
        return Query(sql, columns, rows, rounded_inside=inside)

    def _grouped(
        self, source: _From, expressions: Expressions, tail: str, rows: float, *, keyed: bool
    ) -> Query:
        keys = [(expressions.of(kind, 1), kind) for kind in self._kinds(expressions, 1, 2)] if keyed else []
        keys = [key for key in dict.fromkeys(keys) if "r" in key[0]]
        calls = [self._call(expressions) for _ in range(self._random.randint(0 if keys else 1, 3))]
        shown = [key for key in keys if self._random.random() < 0.9]
        items = [*shown, *((text, kind) for text, kind, _ in calls)]
        if not items:
            items = [("count(*)", "bigint")]
        if self._random.random() < 0.3:
            items.append((f"count(*) + {self._random.choice(('1', '2'))}", "bigint"))
        columns = self._named(items, source)
        listed = _listed(items, columns)
        sql = f"SELECT {listed}{tail}"
        if keys:
            listed_keys = ", ".join(text for text, _ in keys)
            form = self._random.choices(
                ("{0}", "ROLLUP ({0})", "CUBE ({0})", "GROUPING SETS (({0}), ())"), (9, 1, 1, 1)
            )
            sql += "\nGROUP BY " + form[0].format(listed_keys)
        having = self._random.random() < 0.25
        if having:
            text, kind, _ = self._call(expressions)
            shape = "{0} > 1" if kind in NUMBERS else "{0} IS NOT NULL"
            sql += "\nHAVING " + self._random.choice((shape, "count(*) > 1", "count(*) < 3")).format(text)
        rounded = any(is_rounded for _, _, is_rounded in calls)
        # HAVING may hold a floating-point sum as well; whether it does is not worth finding out.
        rounded = rounded or having
        inside = source.rounded_inside or source.rounded
        return Query(sql, columns, min(rows, 8.0 if keys else 1.0), rounded, inside)

    def _call(self, expressions: Expressions) -> tuple[str, str, bool]:
        """An aggregate call, its kind, and whether it adds up floating-point numbers."""
        if self._random.random() < 0.15:
            return "count(*)" + self._filter(expressions), "bigint", False
        kind = self._random.choice(expressions.kinds or KINDS)
        shapes = [shape for shape in _CALLS if shape.takes == "any" or kind in shape.takes.split()]
        shape = self._random.choices(shapes, [shape.weight for shape in shapes])[0]
        arguments = [expressions.of(kind, 1)]
        if "{1}" in shape.text:
            arguments.append(expressions.of(self._random.choice(expressions.kinds or KINDS), 1))
        if "{2}" in shape.text:
            arguments[1:] = [expressions.of("int", 1)] * 2
        text = shape.text.format(*arguments, filter=self._filter(expressions))
        result = {"same": kind, "sum": {"int": "bigint"}.get(kind, kind)}.get(shape.gives, shape.gives)
        if shape.gives == "average":
            result = "decimal" if kind == "decimal" else "double"
        return text, result, shape.inexact or (shape.adds and kind == "double")

    def _filter(self, expressions: Expressions) -> str:
        return f" FILTER (WHERE {expressions.condition(1)})" if self._random.random() < 0.15 else ""

    def _union(self, depth: int) -> Query:
        kinds = [self._random.choice(KINDS) for _ in range(self._random.randint(1, 3))]
        branches = [self._branch(depth, kinds) for _ in range(self._random.choice((2, 2, 3)))]
        word = self._random.choices(
            ("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"), (10, 3, 1, 1, 1, 1)
        )[0]
        word = f"\n{word}\n"
        names = branches[0].columns
        columns = tuple(
            (name, _wider([b.columns[at][1] for b in branches])) for at, (name, _) in enumerate(names)
        )
        return Query(
            word.join(branch.sql for branch in branches),
            columns,
            sum(branch.rows for branch in branches),
            rounded_inside=any(branch.inside for branch in branches),
        )

    def _branch(self, depth: int, kinds: Sequence[str]) -> Query:
        """A SELECT with columns of these kinds; numbers may be of another, for Spark to widen."""
        source = self._from(depth - 1, self._random.choice((1, 1, 2)))
        expressions = Expressions(source.columns, self._random)
        own = [self._random.choice(("int", "decimal", kind)) if kind in NUMBERS else kind for kind in kinds]
        items = [(expressions.of(kind), kind) for kind in own]
        columns = self._named(items, source)
        listed = _listed(items, columns)
        where = f"\nWHERE {expressions.condition()}" if self._random.random() < 0.4 else ""
        sql = f"SELECT {listed}\nFROM {source.text}{where}"
        return Query(sql, columns, source.rows, source.rounded, source.rounded_inside)

    def _recomputed(self) -> Query:
        """A view that has no delta rule."""
        one, other = (self._random.choice(self._tables) for _ in range(2))
        key = one.columns[0][0]
        other_key = other.columns[0][0]
        columns = ((key, "int"), ("n", "bigint"))
        if self._random.random() < 0.5:
            sql = f"SELECT {key}, CAST(try_sum({key}) AS BIGINT) AS n FROM {one.sql} GROUP BY {key}"
        else:
            sql = (
                f"SELECT q.{key}, q.n FROM {one.sql} a JOIN LATERAL (SELECT b.{other_key} AS {key}, "
                f"CAST(a.{key} AS BIGINT) AS n FROM {other.sql} b WHERE b.{other_key} = a.{key}) q"
            )
        return Query(sql, columns, _TABLE_ROWS)

    def _kinds(self, expressions: Expressions, least: int, most: int) -> list[str]:
        """Kinds to select; mostly such as the columns have."""
        count = self._random.randint(least, most)
        return [
            self._random.choice(expressions.kinds if self._random.random() < 0.8 else KINDS)
            for _ in range(count)
        ]

    def _named(self, items: Sequence[tuple[str, str]], source: _From) -> tuple[tuple[str, str], ...]:
        """Names for the items, some of them those of columns that are something else in FROM."""
        names = [f"c{at}" for at in range(len(items))]
        if self._random.random() < 0.4:
            taken = list(dict.fromkeys(c.text.split(".", 1)[1].strip("`") for c in source.columns))
            self._random.shuffle(taken)
            for at, name in zip(range(len(items)), taken, strict=False):
                if name not in names:
                    names[at] = name
        return tuple((name, kind) for name, (_, kind) in zip(names, items, strict=True))


def _listed(items: Sequence[tuple[str, str]], columns: Sequence[tuple[str, str]]) -> str:
    """Expressions with their names, as a select list."""
    return ", ".join(f"{text} AS {name}" for (text, _), (name, _) in zip(items, columns, strict=True))


def _kind(type_name: str) -> str:
    return type_name.split("(", 1)[0]


def _wider(kinds: Sequence[str]) -> str:
    """What Spark makes of columns of these kinds in a union."""
    return max(kinds, key=lambda kind: NUMBERS.index(kind) if kind in NUMBERS else -1)
