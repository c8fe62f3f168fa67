"""A data cube, spelt out as the views of its nodes (Mumick et al. 1997, Section 3.3).

A cube is one aggregate query whose GROUP BY names several sets of keys, by CUBE, ROLLUP or GROUPING SETS.
Where a view would hold all of them in one table, a cube is a view for each set: the query with the keys of
that set alone, in the user's words. ::

    SELECT city, date, COUNT(*) AS n FROM pos … GROUP BY GROUPING SETS ((city, date), (city), ())

    SELECT city, date, COUNT(*) AS n FROM pos … GROUP BY city, date
    SELECT city, COUNT(*) AS n FROM pos … GROUP BY city
    SELECT COUNT(*) AS n FROM pos …
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from viewkeeper.analyse.clauses import Clauses, clauses_of
from viewkeeper.analyse.grouping_sets import has_sets, spelt_out
from viewkeeper.analyse.parsing import NotParsed, SqlText, parse, span, tokenize
from viewkeeper.analyse.refusals import closing
from viewkeeper.errors import DefinitionError

_NUMBERING = frozenset({"GROUPING", "GROUPING_ID", "GROUPING__ID"})


@dataclass(frozen=True, slots=True)
class CubeNode:
    """One set of keys, by the names that the query gives them, and the query for it."""

    keys: tuple[str, ...]
    query: str

    def name(self, cube: str) -> str:
        """What its view is called.

        >>> CubeNode(("city", "date"), "…").name("sales"), CubeNode((), "…").name("sales")
        ('sales_city_date', 'sales_all')
        """
        return "_".join((cube, *(self.keys or ("all",))))


def nodes_of(query: str) -> list[CubeNode]:
    """The nodes of the cube that a query defines, each once."""
    try:
        text = tokenize(query)
        tree = parse(text)
    except NotParsed as error:
        raise _error(f"the query of a cube cannot be read: {error}") from error
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    clauses = clauses_of(text)
    if group is None or clauses is None or not has_sets(group):
        raise _error("the query of a cube groups by CUBE, ROLLUP or GROUPING SETS")
    reading = _Reading(text, group, clauses)
    nodes: dict[tuple[int, ...], CubeNode] = {}
    for places, node in reading.nodes():
        nodes.setdefault(places, node)
    return list(nodes.values())


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of the SELECT list: its text, the expression and the name in it, and the expression in the form
    in which it is compared with keys."""

    text: str
    expression: str
    name: str | None
    folded: str


@dataclass(frozen=True)
class _Reading:
    text: SqlText
    group: exp.Group
    clauses: Clauses

    def nodes(self) -> Iterator[tuple[tuple[int, ...], CubeNode]]:
        """Each set of keys, and their places in the SELECT list."""
        sets = [self._keys(nodes) for nodes in spelt_out(self.group)]
        dimensions = {at for keys in sets for at in keys}
        for keys in sets:
            chosen = [item for at, item in enumerate(self.items) if at in keys or at not in dimensions]
            if not chosen:
                raise _error("a cube selects at least one aggregate")
            places = tuple(sorted(keys))
            names = tuple(self._name(self.items[at]) for at in places)
            yield (
                places,
                CubeNode(names, self._query([item.text for item in chosen], ", ".join(keys.values()))),
            )

    def _query(self, items: Sequence[str], by: str) -> str:
        at, end = self.clauses, len(self.text.tokens)
        parts = [self.text.raw(0, at.select + 1), ", ".join(items), self.text.raw(at.source, at.group)]
        parts += [f"GROUP BY {by}"] if by else []
        parts += [self.text.raw(at.end, end)] if at.end < end else []
        return "\n".join(parts)

    def _keys(self, nodes: Sequence[exp.Expr]) -> dict[int, str]:
        """Which item of the SELECT list each key is, and the words to group by."""
        keys: dict[int, str] = {}
        for node in nodes:
            where = span(node)
            words = self.text.raw(*where) if where else ""
            at = self._item_of(node, where)
            if at is None:
                raise _error(f"{words} is a key of the cube, but the query does not select it")
            # A number would count among other items.
            keys.setdefault(at, self.items[at].expression if node.is_int else words)
        return keys

    def _item_of(self, node: exp.Expr, where: tuple[int, int] | None) -> int | None:
        if node.is_int:
            at = int(node.name) - 1
            return at if 0 <= at < len(self.items) else None
        same = _folded(self.text, *where) if where else ""
        names = [item.name.casefold() if item.name else None for item in self.items]
        for at, item in enumerate(self.items):
            if item.folded == same:
                return at
        # Spark groups by a column first and by an alias second.
        return names.index(same) if same in names else None

    @staticmethod
    def _name(item: _Item) -> str:
        if item.name is None:
            raise _error(f"the key {item.text} needs a name: write AS after it")
        return item.name

    @cached_property
    def items(self) -> tuple[_Item, ...]:
        first, end = self.clauses.select + 1, self.clauses.source
        if any(self.text.word(at) in _NUMBERING for at in range(first, end)):
            raise _error(
                "GROUPING tells the sets of one view apart; the nodes of a cube are views of their own"
            )
        items, start, at = [], first, first
        while at <= end:
            if self.text.word(at) == "(":
                at = closing(self.text, at)
            elif at == end or self.text.word(at) == ",":
                items.append(self._item(start, at))
                start = at + 1
            at += 1
        return tuple(items)

    def _item(self, first: int, end: int) -> _Item:
        aliased = end - first > 2 and self.text.word(end - 2) == "AS"
        plain = all(self.text.is_name(at) == ((at - first) % 2 == 0) for at in range(first, end))
        named = aliased or (plain and (end - first) % 2 == 1)
        expression, name = end - 2 if aliased else end, self._token(end - 1) if named else None
        folded = _folded(self.text, first, expression)
        return _Item(self.text.raw(first, end), self.text.raw(first, expression), name, folded)

    def _token(self, at: int) -> str:
        return self.text.tokens[at].text


def _folded(text: SqlText, first: int, end: int) -> str:
    return " ".join(token.text.casefold() for token in text.tokens[first:end])


def _error(message: str) -> DefinitionError:
    return DefinitionError(
        message,
        code="VK-CUBE",
        hint="A cube is SELECT keys, aggregates FROM … GROUP BY CUBE (…), ROLLUP (…) or GROUPING SETS (…).",
    )
