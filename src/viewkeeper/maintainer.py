"""The warehouse maintainer: what a warehouse does with Spark, under the lease.

Its methods come in the order of the flow: observe, plan, run; then keep house, verify and repair. Definitions
and declarations have places of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from viewkeeper.constraints import Constraint, checks
from viewkeeper.declaring import siblings, with_siblings
from viewkeeper.define.clock import is_clock
from viewkeeper.epochs import StorageRewritten
from viewkeeper.errors import DefinitionError, RefreshError, ViewkeeperError
from viewkeeper.execute.observing import SourceAway
from viewkeeper.hidden_views import chosen
from viewkeeper.integrate.prices import RemotePrice
from viewkeeper.integrate.transport import SweptSource
from viewkeeper.kept_deltas import kept_deltas, plan_of
from viewkeeper.learning import experience, known_rates
from viewkeeper.ledger.ledger import utc_now
from viewkeeper.ledger.records import EpochRecord, Lease, Propagation, SourceObservation
from viewkeeper.library import Library
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Situation
from viewkeeper.plan.steps import EpochPlan, Install
from viewkeeper.reading import no_data
from viewkeeper.remote_views import join_of
from viewkeeper.results import ConstraintCheck, Upkept, Verification
from viewkeeper.situations import observe, stored_views
from viewkeeper.source_declarations import SourceDeclarations
from viewkeeper.verifying import require_history, verified
from viewkeeper.view_definitions import ViewDefinitions
from viewkeeper.workshop import Workshop

logger = logging.getLogger("viewkeeper")


class Maintainer:
    """Refreshes and verifies the views of one warehouse, and defines them."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self.views = ViewDefinitions(shop)
        self.sources = SourceDeclarations(shop, self.views)

    # Observe and plan.

    def look(self) -> dict[str, str | None]:
        """The present versions of the tables that are read in place, remembered as seen."""
        library, seen_at = self.shop.library(), utc_now()
        tables = [
            table
            for table in library.graph.sources(library.views)
            if not is_clock(table) and self.shop.engine.observer.extracted(table) is None
        ]
        versions = self.shop.engine.observer.stand_each(tables)
        known = self.shop.ledger.observations()
        self.shop.ledger.observe(
            {
                table: SourceObservation(version, seen_at, known[table].details if table in known else {})
                for table, version in versions.items()
            }
        )
        return versions

    def plan(self, names: Sequence[str], policy: str | None) -> tuple[EpochPlan, Situation]:
        """What a refresh of these views would do now. Touches nothing."""
        library = self.shop.library()
        closure = with_siblings(library, names)
        try:
            situation = observe(
                self.shop.engine,
                library,
                closure,
                policy=policy,
                options=self.shop.options,
                experience=experience(self.shop.ledger, closure),
            )
        finally:
            self.shop.engine.observer.let_go()
        situation = self.shop.recalled(situation)
        return plan_epoch(situation), situation

    def remote_prices(self, names: Iterable[str]) -> dict[str, RemotePrice]:
        """Of views over remote tables: what it takes to leave the tables there, and to copy them."""
        library = self.shop.library()
        return {
            name: source.price()
            for name in names
            if join_of(library.views[name]) is not None
            and isinstance(source := self.shop.declared(name), SweptSource)
        }

    # Refresh.

    def propagate(self, names: Sequence[str], policy: str | None) -> tuple[EpochPlan, Propagation | None]:
        """Compute now what a refresh of these views would install, and keep it (Mumick et al. 1997, 2.1).

        Propagating again begins anew from where the views stand: what was kept before is replaced."""
        with self.shop.lease() as lease:
            library = self.shop.library()
            situation = self.shop.observe(library, with_siblings(library, names), policy)
            situation = replace(situation, keeps_deltas=True)
            plan = plan_epoch(situation)
            if plan.changes_nothing:
                return plan, None
            return plan, self.shop.runner.propagate(lease, self.shop.work(library, situation, plan))

    def install_propagated(self) -> EpochRecord:
        """Install exactly what was kept; the sources are not looked at."""
        with self.shop.lease() as lease:
            library = self.shop.library()
            kept = self.shop.ledger.propagation()
            plan = None if kept is None else _if_current(library, kept)
            done = None if kept is None or plan is None else self._install_kept(lease, library, kept, plan)
            if done is None:
                raise RefreshError(
                    "nothing that was propagated waits to be installed"
                    if kept is None
                    else "views were refreshed, defined anew or compacted since they were propagated",
                    code="VK-NOTHING-PROPAGATED",
                    hint="Run `viewkeeper propagate` first, or refresh without --propagated.",
                )
            return done

    def _install_kept(
        self, lease: Lease, library: Library, kept: Propagation, plan: EpochPlan
    ) -> EpochRecord | None:
        """``None`` if somebody compacted what it would be built upon."""
        inputs = stored_views(self.shop.engine, library, [view.view for view in plan.views])
        stands = {view.name: view.snapshot for view in inputs}
        if any(isinstance(step, Install) and step.snapshot != stands[step.view] for step in plan.steps):
            return None
        situation = Situation(inputs, dict(plan.versions), {}, rates=known_rates(self.shop.ledger))
        work = replace(self.shop.work(library, situation, plan), kept=kept_deltas(kept))
        try:
            record = self.shop.runner.run(lease, work)
        except StorageRewritten:
            return None
        return self.shop.finished(record, situation)

    def _take_in_propagated(self, lease: Lease, policy: str | None) -> None:
        """Before a refresh: what was propagated is installed, unless it is of no use any more. Views then
        stand where they were propagated to, and only what came since is left to do."""
        kept = self.shop.ledger.propagation()
        if kept is None:
            return
        library = self.shop.library()
        plan = None if policy == "full" else _if_current(library, kept)
        if plan is None or self._install_kept(lease, library, kept, plan) is None:
            self.shop.runner.forget(lease, kept)

    def refresh(
        self, names: Sequence[str], policy: str | None, *, skip_failing: bool = False
    ) -> tuple[EpochRecord | EpochPlan, dict[str, ViewkeeperError]]:
        """Refresh these views and their ancestors; the plan itself when there was nothing to do.
        ``skip_failing``: a view that fails, and those that read it, are left as they are, with the error."""
        skipped: dict[str, ViewkeeperError] = {}
        with self.shop.lease() as lease, self.shop.engine.observer.one_horizon():
            self._take_in_propagated(lease, policy)
            library = self.shop.library()
            wanted = list(with_siblings(library, names))
            while True:
                try:
                    done = self.shop.refresh(lease, library, wanted, policy)
                    more = self.shop.engine.observer.has_more(library.graph.sources(wanted))
                    if not more or isinstance(done, EpochPlan):
                        return done, skipped
                    library = self.shop.library()
                except (RefreshError, SourceAway) as error:
                    failing = self._failing(library, wanted, error, skip_failing=skip_failing)
                    if not failing or failing >= set(wanted):
                        raise
                    skipped.update({name: error for name in wanted if name in failing})
                    wanted = [name for name in wanted if name not in failing]

    @staticmethod
    def _failing(
        library: Library, wanted: Sequence[str], error: RefreshError | SourceAway, *, skip_failing: bool
    ) -> set[str]:
        """The views that cannot be refreshed now, if the others can be without them: those that read a source
        that is away, or one that fails, if that may be skipped; and with a base view all of its source."""
        if isinstance(error, SourceAway):
            first = [name for name in wanted if set(error.tables) & set(library.views[name].analysis.tables)]
        else:
            first = [name for name in wanted if skip_failing and name == error.view]
        together = [sibling for each in first for sibling in siblings(library, each)]
        return {name for each in together for name in (each, *library.graph.descendants(each))}

    def repair(self, name: str) -> EpochRecord:
        """Rebuild a view from the versions that the ledger recorded for it; with a base view all of its
        source, which stand where it stands."""
        with self.shop.lease() as lease:
            library = self.shop.library()
            if library.states[name].snapshot is None:
                raise no_data(name)
            together = siblings(library, name)
            for each in together:
                require_history(self.shop.engine, library, each)
            parents = library.graph.parents(name)
            observed = self.shop.observe(library, [*parents, *together], "full")
            vector = library.states[name].vector
            by_name = {view.name: view for view in observed.views}
            situation = replace(
                observed,
                views=tuple(replace(by_name[each], needs_full="repaired") for each in together),
                # What has no history was read as it is now, not as it was.
                versions={
                    table: observed.versions[table]
                    if self.shop.engine.observer.extracted(table) is not None
                    else vector.get(table)
                    for table in library.graph.sources(together)
                },
                read_only=tuple(replace(by_name[parent], snapshot=vector.get(parent)) for parent in parents),
            )
            return self.shop.run(lease, library, situation, plan_epoch(situation))

    # Keep house.

    def maintain(self, names: Sequence[str], epochs: int | None, days: float | None) -> list[Upkept]:
        """Rewrite what is stored of views where that pays, and forget what no epoch shows any more that is to
        be kept."""
        with self.shop.lease() as lease:
            done = self.shop.housekeeping(lease).maintain(names, epochs, days)
            return [replace(each, hidden_state=self._stated(lease, each.view)) for each in done]

    def _stated(self, lease: Lease, name: str) -> str | None:
        """Keep the inner results of a view, or no longer, if its refreshes make that advisable."""
        library = self.shop.library()
        try:
            change = (
                chosen(self.shop.engine, self.shop.ledger, library, name) if name in library.views else None
            )
            if change is None:
                return None
            wanted, views = change
            self.views.restate(lease, library, views)
        except (DefinitionError, RefreshError) as error:  # it goes on as it was
            logger.warning("%s: its inner results are left as they are: %s", name, error)
            return None
        return wanted.value

    # Verify.

    def verify(self, names: Sequence[str], *, only_possible: bool = False) -> list[Verification]:
        """Each view against its query, recomputed at the recorded versions. ``only_possible``: leaves out
        those whose source has moved on; otherwise they are an error."""
        try:
            return verified(self.shop.engine, self.shop.library(), names, only_possible=only_possible)
        finally:
            self.shop.engine.observer.let_go()

    def check(self, constraints: Sequence[Constraint]) -> list[ConstraintCheck]:
        """Whether the tables, as they are now, are as declared."""
        if not constraints:
            return []
        rows = self.shop.engine.ask(checks(constraints))
        found = {row["at"]: row for row in rows}
        return [
            ConstraintCheck(
                each.text, found[at]["violations"] == 0, found[at]["violations"], found[at]["example"]
            )
            for at, each in enumerate(constraints)
        ]


def _if_current(library: Library, kept: Propagation) -> EpochPlan | None:
    """The plan that installs what was kept, if all its views still stand where they stood."""
    plan = plan_of(kept)
    states = [library.states.get(view.view) for view in plan.views]
    return plan if all(state is not None and state.epoch < kept.id for state in states) else None
