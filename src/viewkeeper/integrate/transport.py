"""The join behind a view of remote tables, as a source: what it holds is swept, not copied.

Its version says where each database stands. The first content is joined by Spark from one snapshot of each
database, taken exactly where its changes begin; from then on ΔJ is swept::

    current()        how far each database has come, as far as the view is to be taken
    change()         the sweep
    acknowledge()    the epoch is published: the databases may forget what it covers
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.define.sources import SourceDefinition
from viewkeeper.errors import SourceError
from viewkeeper.integrate.joins import RemoteTable, family, first_content
from viewkeeper.integrate.members import COMPLETE, Members, positions_of, version_of
from viewkeeper.integrate.messages import Query
from viewkeeper.integrate.prices import RemotePrice, Swept, price
from viewkeeper.integrate.questions import Question
from viewkeeper.integrate.remote import Reply, Taken
from viewkeeper.integrate.sweeping import Sweeping
from viewkeeper.sources.contract import Capabilities, Description, Shelf, SourceColumn
from viewkeeper.sources.extracted import Extracted, QueriedChange
from viewkeeper.sources.horizons import Horizons
from viewkeeper.sources.net_changes import NetChanges
from viewkeeper.sources.postgres_copy import Copying
from viewkeeper.sources.postgres_delta import STAGED, PinnedTable, signed_rows
from viewkeeper.sources.postgres_drift import require_same_tables, require_untouched
from viewkeeper.sources.postgres_server import Snapshot
from viewkeeper.sql.quoting import parse_path

_SLOTS = "slots"
"""Under this name it is remembered what captures changes for us."""
_SWEEPS = "sweeps"
"""Under this name what the last sweeps took is remembered."""
_REMEMBERED = 10


class SweptSource(Extracted):
    """The join of one view."""

    capabilities = Capabilities(rows_at_version=False, lists_versions=False, acknowledges=True)

    def __init__(
        self,
        spark: SparkSession,
        definition: SourceDefinition,
        shelf: Shelf,
        declared: Mapping[str, SourceDefinition],
    ) -> None:
        self._spark = spark
        self._name = definition.name
        self._shelf = shelf
        (self._table,) = definition.all_tables
        self._members = Members(definition, shelf, declared)
        self._join = self._members.join
        self._seen: str | None = None
        self._snapshots: dict[str, Snapshot] = {}
        self._views: set[str] = set()
        self._batch: dict[str, list[Taken]] = {}
        self._later: dict[str, list[Taken]] = {}
        """What waits behind the batch, and is known to."""
        self._reached: str | None = None
        """The version that was looked at last."""
        self._lock = threading.Lock()
        """A plan may be asked for while a refresh sweeps."""
        self._took: Swept | None = None
        self._horizons: Horizons | None = None
        self._left: dict[str, list[str]] = {}
        """What captures changes for us still, once nothing is remembered of it."""
        self.has_more = False
        """Whether more waits than is taken in: one transaction at a time, if every state is to be seen."""

    # What it is.

    def pinned(self, definition: SourceDefinition) -> SourceDefinition:
        return definition

    def describe(self, table: str) -> Description:
        return Description(tuple(SourceColumn(name, spark) for name, _, spark in self._join.types), None, ())

    def problems(self) -> Sequence[str]:
        """Those of the databases are told by the sources themselves."""
        return ()

    # Where it stands.

    def watch(self, horizons: Horizons) -> None:
        self._horizons = horizons

    def show(self, table: str, rows: str | None, version: str | None) -> None:
        self._seen = None if rows is None else version

    def current(self) -> Mapping[str, str | None]:
        with self._lock:
            self.let_go()
            self._batch, self._later, self.has_more = {}, {}, False
            self._reached = self._found()
            return {self._table: self._reached}

    def _found(self) -> str:
        """The version that the view is to be taken to."""
        start = None if self._seen is None else positions_of(self._seen)
        if self._seen is None or start is None or start.keys() != self._members.remotes.keys():
            return self._copy()
        self._expect(self._seen)
        horizons = self._horizons or Horizons()
        waiting = {source: self._waiting(source, at, horizons) for source, at in start.items()}
        if _any(self._members.truncates, waiting):
            return self._copy()
        self._batch = self._chosen(waiting) if _any(self._members.concerns, waiting) else {}
        self._later = {source: taken[len(self._batch.get(source, ())) :] for source, taken in waiting.items()}
        self.has_more = bool(self._batch) and any(self._later.values())
        reached = {source: taken[-1].position for source, taken in self._batch.items() if taken}
        return version_of({**start, **reached})

    def _expect(self, version: str) -> None:
        """The servers must be those that the version is of."""
        kept = self._shelf.load(version)
        for source, each in self._members.remotes.items():
            each.primary = "" if kept is None else kept["primaries"][source]

    def _waiting(self, source: str, position: str, horizons: Horizons) -> list[Taken]:
        each = self._members.remotes[source]
        return self._members.politely(source, lambda: each.start(position, horizons.of(each.server)))

    def _chosen(self, waiting: Mapping[str, list[Taken]]) -> dict[str, list[Taken]]:
        """What is taken in: all that waits, or the first transaction that concerns the view."""
        if self._members.consistency != COMPLETE:
            return dict(waiting)
        chosen: dict[str, list[Taken]] = {}
        firsts: list[tuple[Any, str]] = []
        for source, taken in waiting.items():
            at = next((at for at, each in enumerate(taken) if self._members.concerns(source, each)), None)
            chosen[source] = taken if at is None else taken[:at]
            if at is not None:
                firsts.append((taken[at].transaction.committed_at, source))
        if firsts:
            _, first = min(firsts)
            chosen[first] = waiting[first][: len(chosen[first]) + 1]
        return chosen

    def holds(self, table: str, version: str) -> bool:
        """Snapshots are taken first: if nothing waits after that, they are the state of the version."""
        self.let_go()
        positions = positions_of(version)
        self._copy()
        self._expect(version)
        now = Horizons()
        waiting = {source: self._waiting(source, at, now) for source, at in positions.items()}
        if _any(self._members.concerns, waiting):
            self.let_go()
            return False
        return True

    # The first content.

    def _copy(self) -> str:
        """A snapshot of each database, and the version that it is of."""
        known = self._known_slots()
        if self._members.slot not in known:
            # Noted first: whatever happens then, it is known what is to be given back.
            self._shelf.save(_SLOTS, {"all": {self._members.slot: list(self._join.sources), **known}})
        for source, each in self._members.remotes.items():
            self._snapshots[source] = self._members.politely(source, each.begin)
        self._members.require_different(self._name)
        return version_of({source: each.position for source, each in self._snapshots.items()})

    def _known_slots(self) -> dict[str, list[str]]:
        """The names of all that may capture changes for us, and at which sources."""
        kept = self._shelf.load(_SLOTS)
        return {} if kept is None else dict(kept["all"])

    def rows(self, table: str, version: str | None) -> str:
        if not self._snapshots:
            raise SourceError(
                f"the databases that {self._name} joins keep no history: version {version} cannot be read",
                code="VK-NO-HISTORY",
            )
        parts = {each.name: self._named(self._copied(each), each.name) for each in self._join.relations}
        return self._named(self._spark.sql(first_content(self._join, parts)), str(version))

    def _copied(self, relation: RemoteTable) -> DataFrame:
        pinned, server = self._members.tables[relation.table], self._members.remotes[relation.source].server
        types = {name: pinned.types[name] for name in relation.stored}
        copying = Copying(self._spark, server, pinned.sql, types, relation.where)
        return copying.rows(self._snapshots[relation.source].name)

    def _named(self, rows: DataFrame, what: str) -> str:
        told = hashlib.sha256(f"{self._name} {what}".encode()).hexdigest()[:20]
        name = f"vk_sweep_{told}"
        rows.createOrReplaceGlobalTempView(name)
        self._views.add(name)
        return f"global_temp.{name}"

    # Changes.

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> QueriedChange | None:
        assert new is not None
        if old == new:
            return None
        with self._lock:
            if new != self._reached:
                raise SourceError(
                    f"somebody else looked at {self._name} meanwhile",
                    code="VK-SOURCE-LIMIT",
                    hint="Nothing was changed; refresh again.",
                )
            if self._snapshots:
                told = "a remote table was emptied: its rows are not told"
                raise SourceError(told, code="VK-SOURCE-EXPIRED")
            return self._swept(table, old, new)

    def _swept(self, table: str, old: str | None, new: str) -> QueriedChange:
        sweeping = Sweeping(self._join, self._members.tables, self._ask)
        batch = {source: [each.transaction for each in taken] for source, taken in self._batch.items()}
        later = {source: [each.transaction for each in taken] for source, taken in self._later.items()}
        found = sweeping.run(batch, later)
        took = sweeping.traffic
        self._took = Swept(took.changed, took.queries, took.rows)
        net = NetChanges(self._join.columns, ())
        net.rows.update(found.rows)  # type: ignore[arg-type]  # texts, as the log has them
        columns = tuple((name, postgres, spark, 0) for name, postgres, spark in self._join.types)
        staged = signed_rows(net, PinnedTable("", self._name, columns, ()), "")
        name = self._named(self._spark.createDataFrame(staged.table()), new)
        selects = tuple(select.replace(STAGED, name) for select in staged.selects)
        return QueriedChange(
            table, old, new, staged.inserted, staged.deleted, _told(batch, sweeping), selects
        )

    def _ask(self, relation: RemoteTable, on: tuple[str, ...], query: Query) -> Reply:
        pinned, source = self._members.tables[relation.table], self._members.remotes[relation.source]
        kinds = tuple(family(pinned.types[name]) or "text" for name in on)
        question = Question(pinned, relation.stored, on, kinds, sorted(query.keys), relation.where)
        return self._members.politely(relation.source, lambda: source.ask(question))

    # After the epoch.

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """What the epoch covers is kept beside its version; what is copied may have changed."""
        for source, snapshot in self._snapshots.items():
            tables, server = self._members.tables_of(source), self._members.remotes[source].server
            require_same_tables(server, tables)
            require_untouched(server, tables, snapshot)
        for reached in version.values():
            if reached is not None and reached == self._reached and reached != self._seen:
                covered = {source: self._covered(source, taken) for source, taken in self._batch.items()}
                took = astuple(self._took or Swept(0, 0, 0))
                told = {
                    "consistency": self._members.consistency,
                    "transactions": covered,
                    "took": took,
                    "primaries": {source: each.primary for source, each in self._members.remotes.items()},
                }
                self._shelf.save(reached, told)
                self._remember_sweep()

    def _remember_sweep(self) -> None:
        if self._took is not None:
            kept = (self._shelf.load(_SWEEPS) or {"last": []})["last"]
            self._shelf.save(_SWEEPS, {"last": [*kept, list(astuple(self._took))][-_REMEMBERED:]})
            self._took = None

    def price(self) -> RemotePrice:
        """What it takes to leave the tables where they are, and what it would take to copy them."""
        rows = size = 0
        for name, table in self._members.tables.items():
            (counted, stored) = self._members.remotes[parse_path(name)[1]].server.one(
                "SELECT greatest(reltuples, 0)::bigint, pg_table_size(oid) FROM pg_class "
                "WHERE oid = %s::regclass",
                table.sql,
            )
            rows, size = rows + counted, size + stored
        kept = (self._shelf.load(_SWEEPS) or {"last": []})["last"]
        names = [".".join(parse_path(name)[1:]) for name in self._members.tables]
        return price(names, rows, size, [Swept(*each) for each in kept])

    def _covered(self, source: str, batch: Sequence[Taken]) -> list[int]:
        ours = [each.transaction for each in batch if self._members.concerns(source, each)]
        return [xid for each in ours for xid in (sorted(each.stands_for) or [each.xid])]

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        self.let_go()
        for reached in version.values():
            for source, position in positions_of(reached or "{}").items():
                self._members.remotes[source].acknowledge(position)
                if not self._batch.get(source):
                    self._members.remotes[source].rest()
        self._release_older()

    def rest(self) -> None:
        if not self._snapshots:
            for each in self._members.remotes.values():
                each.rest()

    def take_leave(self) -> None:
        self._left = self._known_slots()

    def release(self) -> None:
        """It is gone from the ledger already, and what was remembered with it."""
        self.let_go()
        known = self._left or {self._members.slot: list(self._join.sources)}
        for slot, sources in known.items():
            self._members.release(slot, sources)

    def give_up(self) -> None:
        """It was not defined after all: only what captured changes before is left."""
        self.let_go()
        known = self._known_slots()
        if self._members.slot in known:
            self._members.release(self._members.slot, known.pop(self._members.slot))
            self._shelf.save(_SLOTS, {"all": known})

    def _release_older(self) -> None:
        known = self._known_slots()
        for slot in [each for each in known if each != self._members.slot]:
            self._members.release(slot, known.pop(slot))
            self._shelf.save(_SLOTS, {"all": known})

    def let_go(self) -> None:
        while self._views:
            self._spark.catalog.dropGlobalTempView(self._views.pop())
        while self._snapshots:
            self._snapshots.popitem()[1].close()


def _any(holds: Callable[[str, Taken], bool], waiting: Mapping[str, Sequence[Taken]]) -> bool:
    return any(holds(source, each) for source, taken in waiting.items() for each in taken)


def _told(batch: Mapping[str, Sequence[object]], sweeping: Sweeping) -> str:
    took = sweeping.traffic
    which = ", ".join(f"{len(each):,} of {source}" for source, each in batch.items() if each)
    corrected = f", {took.compensated} corrected" if took.compensated else ""
    return (
        f"swept: transactions {which}; {took.queries} questions, {took.keys:,} keys sent, "
        f"{took.rows:,} rows back{corrected}"
    )
