"""What the ledger knows of a warehouse: definitions, freshness, history, plans. Needs no Spark.

A :class:`~viewkeeper.warehouse.Warehouse` is an overview that can also act. Alone it loads in a fraction of
the time, which is what `viewkeeper status` and its like are made of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.codec import Codec
from viewkeeper.define.clock import has_turned, is_clock
from viewkeeper.define.sources import SOURCES, SWEEP, SourceDefinition
from viewkeeper.errors import LedgerError, NotFoundError, ViewkeeperError
from viewkeeper.ledger import FailingView, FailureRecord, Ledger, SourceObservation, ViewState, sqlite_url
from viewkeeper.markup import block, html, moment
from viewkeeper.outlines import Outline, find_view, is_hidden
from viewkeeper.outlooks import Outlook, outlook
from viewkeeper.results import History, SourceStatus, Status, SweptState, ViewStatus, epoch_of
from viewkeeper.sources.lag import Lag
from viewkeeper.sql.quoting import parse_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from viewkeeper.define.place import Place
    from viewkeeper.define.project import Project
    from viewkeeper.explain import Explanation
    from viewkeeper.extending import Extension
    from viewkeeper.lattices import ViewLattice
    from viewkeeper.learning import Estimate
    from viewkeeper.library import Library

_SOURCES = Codec([SourceDefinition])
_ASKED = ("postgres", SWEEP)
"""Kinds of sources that can be asked how far they are ahead."""


class Overview:
    """A warehouse as its ledger tells of it."""

    def __init__(self, ledger: Ledger, default: tuple[str, ...]) -> None:
        self._ledger = ledger
        self._default = default

    def views(self) -> list[str]:
        """The full names of the views, in the order of their creation."""
        return [name for name in self._ledger.view_names() if not is_hidden(name)]

    def outlines(self) -> dict[str, Outline]:
        """Each view as it was defined, what it reads, and whether it is kept by deltas; also hidden ones."""
        return {record.name: Outline.of(record) for record in self._ledger.views()}

    def full_name(self, view: str) -> str:
        """The full name of a view, given by its last part, say."""
        return self._find(view)

    def query_of(self, view: str) -> str:
        """The query of a view, letter for letter."""
        return self.outlines()[self._find(view)].query

    def status(self) -> Status:
        """How fresh each view is: against the sources as they were last looked at."""
        outlines, states = self.outlines(), self._ledger.states()
        seen, last = self._ledger.observations(), self._ledger.last_refreshes()
        behind, failing = whats_behind(outlines, states, seen), self._ledger.failing()
        return Status(
            ViewStatus(
                name,
                states[name].epoch,
                last[name].published_at if name in last else None,
                last[name].refresh.strategy if name in last else None,
                outline.incremental,
                str(outline.reason) if outline.reason else None,
                states[name].snapshot is None or bool(behind[name]),
                dict(states[name].vector),
                shown_reads(outline, outlines),
                outline.consistency,
                str(outline.timing) if outline.timing else None,
                *_trouble(failing.get(name)),
            )
            for name, outline in outlines.items()
            if not outline.hidden
        )

    def sources(self, *, ask: bool = True) -> list[SourceStatus]:
        """The declared sources: where their base views stand, and how far each is ahead of them, as far as it
        can be asked without reading it. ``ask=False``: as far as the ledger knows."""
        declared = [_SOURCES.decode(record.definition) for record in self._ledger.sources().values()]
        if not declared:
            return []
        outlines, states, seen = self.outlines(), self._ledger.states(), self._ledger.observations()
        held = {
            source: held_version(source, _base_views(source.name, outlines), states) for source in declared
        }
        waiting: Mapping[str, Lag | ViewkeeperError | None] = {}
        if ask and any(source.kind in _ASKED for source in declared):
            from viewkeeper.lagging import lags  # speaks to databases: only who has one waits for it

            waiting = lags(held, self._ledger)
        return [
            self._source(source, outlines, held[source], seen, waiting.get(source.name))
            for source in declared
        ]

    def source_names(self) -> list[str]:
        """The names of the declared sources; not of those that stand behind views over remote tables."""
        declared = self._ledger.sources().items()
        return [name for name, record in declared if record.definition["kind"] != SWEEP]

    def _source(
        self,
        source: SourceDefinition,
        outlines: Mapping[str, Outline],
        version: str | None,
        seen: Mapping[str, SourceObservation],
        lag: Lag | ViewkeeperError | None,
    ) -> SourceStatus:
        observed = seen.get(next(iter(source.all_tables), ""))
        remembered = None if version is None else self._ledger.source_version(source.name, version)
        return SourceStatus(
            source.name,
            source.kind,
            dict(source.options),
            list(_base_views(source.name, outlines).values()),
            version,
            None if observed is None else observed.version,
            None if observed is None else observed.observed_at,
            None if remembered is None else remembered.get("bad_rows"),
            lag.transactions if isinstance(lag, Lag) else None,
            lag.seconds if isinstance(lag, Lag) else None,
            lag.message if isinstance(lag, ViewkeeperError) else None,
        )

    def resume(self, view: str) -> bool:
        """Let the service try a view again that it left alone; ``False`` if it did not."""
        name = self._find(view)
        found = self._ledger.failing().get(name)
        self._ledger.forgive([name])
        return found is not None

    def swept(self, view: str, epoch: int | None = None) -> SweptState | None:
        """What brought a view over remote tables to the state that it shows in an epoch (none given: the
        latest); ``None`` for other views."""
        name = self._find(view)
        state = self._ledger.states(epoch).get(name)
        for version in () if state is None else state.vector.values():
            kept = self._ledger.source_version(name, version) if version else None
            if kept is not None and "transactions" in kept:
                return SweptState(kept["consistency"], kept["transactions"], *kept["took"])
        return None

    def history(self, view: str | None = None, *, limit: int | None = None) -> History:
        """The epochs, newest first."""
        name = self._find(view) if view else None
        epochs = [epoch_of(record) for record in self._ledger.epochs(view=name, limit=limit, plans=False)]
        return History(epochs, self._session())

    def failures(self, *, limit: int | None = None) -> list[FailureRecord]:
        """Epochs that were begun and given up, or whose process died; newest first."""
        return list(self._ledger.failures(limit=limit))

    def estimates(self, view: str | None = None, *, limit: int | None = None) -> list[Estimate]:
        """What the deltas of joins were estimated to hold, and what they held, newest epoch first; ``limit``
        many refreshes are looked at."""
        from viewkeeper.learning import estimates  # knows prices and plans, which nobody else here needs

        return estimates(self._ledger, self._find(view) if view else None, limit)

    def outlook(self, *views: str) -> Outlook:
        """What awaits the views (none named: all of them), the sources being as they were last seen."""
        outlines, states, seen = self.outlines(), self._ledger.states(), self._ledger.observations()
        shown = [name for name, outline in outlines.items() if not outline.hidden]
        wanted = [find_view(view, outlines, self._where()) for view in views] or shown
        return outlook(outlines, wanted, states, whats_behind(outlines, states, seen), seen)

    def explain_last(self, view: str) -> Explanation:
        """How a view was kept in the last epoch that changed it, by the plan that was carried out."""
        from viewkeeper.explain import explain_stored  # knows every step there is: only who explains waits

        name = self._find(view)
        record = self._ledger.last_planned(name)
        if record is None:
            raise NotFoundError(
                f"no plan of view {view} is stored",
                code="VK-NO-PLAN",
                hint=f"`viewkeeper explain {view}` makes one; a refresh stores what it does.",
            )
        return explain_stored(name, record, self.outlines()[name].reason)

    def lattice(self, project: Project | Place | None = None) -> ViewLattice:
        """Which view's summary-delta can be made from which (Mumick et al. 1997, Section 5). A project may
        declare foreign keys."""
        from viewkeeper.lattices import declared, lattice_of_views  # needs the algebra of every view

        library = self._library()
        foreign_keys = declared(project.settings, library) if project is not None else ()
        return lattice_of_views(library, foreign_keys)

    def lattice_extensions(self, project: Project) -> list[Extension]:
        """Columns that, added to a view, would let others be derived from it (Section 5.2), as far as the
        project declares what determines what."""
        from viewkeeper.extending import extensions

        return extensions(self._library(), project.settings)

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _repr_html_(self) -> str:
        last = next(iter(self.history(limit=1)), None)
        said = "no epoch yet" if last is None else f"epoch {last.id}, published {moment(last.published_at)}"
        return block(f"<p><b>Warehouse</b> {html('.'.join(self._default))}: {html(said)}</p>") + (
            self.status()._repr_html_()
        )

    def _library(self, epoch: int | None = None) -> Library:
        """The views with all that is known of them, as of an epoch (None: now)."""
        from viewkeeper.library import Library  # with the classes of all that a view can be made of

        return Library.of(*self._ledger.defined(epoch))

    def _session(self) -> SparkSession | None:
        """The session in which a history becomes a DataFrame, if one was started."""
        return None

    def _where(self) -> tuple[str, ...]:
        """The catalog and namespace in which a view's last name is looked up."""
        return self._default

    def _find(self, name: str) -> str:
        return find_view(name, self._ledger.view_names(), self._where())


def folder_ledger(folder: Path, *, create: bool) -> str:
    """The URL of the ledger of an embedded warehouse; ``create``: its folder may be made."""
    if not folder.is_dir():
        if not create:
            raise LedgerError(
                f"there is no warehouse in {folder}",
                code="VK-WAREHOUSE-MISSING",
                hint="Check the path; `viewkeeper init` begins a new project.",
            )
        folder.mkdir(parents=True)
    return sqlite_url(folder / "ledger.db")


def whats_behind(
    views: Collection[str], states: Mapping[str, ViewState], seen: Mapping[str, SourceObservation]
) -> dict[str, tuple[str, ...]]:
    """Of each view, the tables and views that it reads and that moved on since: tables were seen at another
    version, views hold other rows or are behind themselves."""
    found: dict[str, tuple[str, ...]] = {}

    def moved(table: str, version: str | None) -> bool:
        if table in views:
            return states[table].snapshot != version or bool(behind(table))
        if is_clock(table):
            return has_turned(table, version)
        return table in seen and seen[table].version != version

    def behind(view: str) -> tuple[str, ...]:
        if view not in found:
            vector = states[view].vector
            found[view] = tuple(table for table, version in vector.items() if moved(table, version))
        return found[view]

    return {view: behind(view) for view in views}


def shown_reads(outline: Outline, outlines: Mapping[str, Outline]) -> tuple[str, ...]:
    """What a view reads, hidden views left out: what those read stands in their place."""
    found: dict[str, None] = {}
    for table in outline.reads:
        read = outlines.get(table)
        is_shown = read is None or not read.hidden
        found |= dict.fromkeys((table,) if read is None or is_shown else shown_reads(read, outlines))
    return tuple(found)


def _trouble(failing: FailingView | None) -> tuple[int, bool, str | None]:
    """How often a view failed in a row, whether it is suspended, and why it failed last."""
    return (0, False, None) if failing is None else (failing.failures, failing.suspended, failing.reason)


def _base_views(source: str, outlines: Mapping[str, Outline]) -> dict[str, str]:
    """The tables of a source, and the view that holds each."""
    alone = {outline.tables[0]: name for name, outline in outlines.items() if len(outline.tables) == 1}
    return {table: name for table, name in alone.items() if parse_path(table)[:2] == (SOURCES, source)}


def held_version(
    source: SourceDefinition, held_by: Mapping[str, str], states: Mapping[str, ViewState]
) -> str | None:
    """The version of a source that its base views hold."""
    first = next(iter(source.all_tables), "")
    state = states.get(held_by.get(first, ""))
    return None if state is None else state.vector.get(first)
