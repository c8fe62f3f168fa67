"""A simulated source: the update and query server of Figure 3, on tables with indexes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from viewkeeper.integrate.bags import Bag, Row, add_to, match, picker
from viewkeeper.integrate.messages import Answer, Query, SumQuery, Term, Update
from viewkeeper.integrate.routes import Routes
from viewkeeper.integrate.simulate.worlds import Commit
from viewkeeper.integrate.views import JoinView, Relation


class Table:
    """A relation, which is found by the columns that it was once asked by."""

    def __init__(self, relation: Relation, contents: Bag) -> None:
        self.relation = relation
        self.rows = dict(contents.rows)
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def change(self, changes: Bag) -> None:
        """Rows come and go."""
        add_to(self.rows, changes.rows)
        for index in self._indexes.values():
            index.add(changes.rows)

    def join(self, partial: Bag) -> Bag:
        """The partial result ⋈ this relation."""
        matching = match(partial.columns, self.relation.columns)
        if matching.shared not in self._indexes:
            self._indexes[matching.shared] = _Index(self.relation.columns, matching.shared)
            self._indexes[matching.shared].add(self.rows)
        partners = self._indexes[matching.shared].partners
        found: dict[Row, int] = {}
        for row, count in partial.rows.items():
            key = matching.left_key(row)
            if key in partners and None not in key:
                for extra, times in partners[key].items():
                    found[row + extra] = count * times
        return Bag(matching.columns, found)


class _Index:
    """Of the values of some columns: what the others have beside them."""

    def __init__(self, columns: tuple[str, ...], key: tuple[str, ...]) -> None:
        self._key = picker(columns, key)
        self._rest = picker(columns, tuple(column for column in columns if column not in key))
        self.partners: dict[Row, dict[Row, int]] = {}

    def add(self, rows: Mapping[Row, int]) -> None:
        for row, count in rows.items():
            key = self._key(row)
            partners = self.partners.setdefault(key, {})
            add_to(partners, {self._rest(row): count})
            if not partners:
                del self.partners[key]


class Source:
    """Commits, answers, and numbers what it sends.

    ``shows_later``: a commit is told of at once, but answers have it from :meth:`show` on only, and say which
    commits they have: PostgreSQL does so when a commit waits for a standby.
    """

    def __init__(
        self, view: JoinView, name: str, contents: Mapping[str, Bag], *, shows_later: bool = False
    ) -> None:
        self.name = name
        self.tables = {
            relation.name: Table(relation, contents[relation.name])
            for relation in view.relations
            if relation.source == name
        }
        self.sequence = 0
        self._routes = Routes(view)
        self._shown: set[int] | None = set() if shows_later else None

    def commit(self, commit: Commit) -> Update:
        """Carry out a transaction, and tell of it."""
        self.sequence += 1
        update = Update(self.name, self.sequence, commit.changes, commit.transaction)
        if self._shown is None:
            self._change(update, 1)
        return update

    def show(self, update: Update) -> None:
        """From now on answers have this update."""
        assert self._shown is not None
        self._shown.add(update.sequence)
        self._change(update, 1)

    def shows(self, updates: Collection[int]) -> bool:
        """Whether an answer would have all of these."""
        return self._shown is None or self._shown.issuperset(updates)

    def answer(self, query: Query | SumQuery) -> Answer:
        """Evaluate a query in the present state."""
        if isinstance(query, Query):
            rows = self.tables[query.relation.name].join(query.partial)
        else:
            rows = self._sum(query.terms)
        self.sequence += 1
        contains = None if self._shown is None else frozenset(self._shown)
        return Answer(self.name, self.sequence, query.number, rows, contains)

    def forget(self, updates: Sequence[Update]) -> None:
        """Be as before these last updates, as after restoring an old backup."""
        for update in reversed(updates):
            self._change(update, -1)
            self.sequence = update.sequence - 1

    def _change(self, update: Update, sign: int) -> None:
        for name, changes in update.changes.items():
            self.tables[name].change(changes.times(sign))

    def _sum(self, terms: tuple[Term, ...]) -> Bag:
        total: Bag | None = None
        for term in terms:
            start, *_ = term.changes
            rows = term.changes[start].times(term.sign)
            for name in self._routes.from_(start):
                change = term.changes.get(name)
                rows = self.tables[name].join(rows) if change is None else rows.join(change)
            total = rows if total is None else total.plus(rows)
        assert total is not None
        return total
