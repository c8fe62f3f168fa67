"""Installs what was computed for one view, on the epoch's branch of its storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from viewkeeper.define.definitions import SessionPins
from viewkeeper.events import Event, PointPassed
from viewkeeper.execute.sessions import Sessions
from viewkeeper.execute.tuning import METADATA, Tuning, tuning_for
from viewkeeper.install import bags, groups, overwrite, replacing, storage
from viewkeeper.install.counts import Counts
from viewkeeper.plan.methods import OF_GROUPS, Method
from viewkeeper.plan.prices import Rates, cheapest_install
from viewkeeper.plan.pricing import stored_width
from viewkeeper.plan.steps import ComputeBag, ComputeGroups, ComputeReplacement, ComputeRows, Install


@dataclass(frozen=True, slots=True)
class InstallContext:
    """What installing needs to know beside the steps."""

    epoch: int
    branch: str
    properties: Mapping[str, Mapping[str, str]]
    storage_rows: Mapping[str, int | None]
    rates: Rates
    corrected: Mapping[str, Mapping[Method, float]]
    """Of each view and method, by which factor its price was corrected."""


@dataclass(frozen=True, slots=True)
class Installed:
    """How a view was installed: the method, its variant, and the statements that did it."""

    method: Method
    variant: str
    statements: tuple[str, ...]
    tried: int | None = None
    """So many rows must have gone: they were deleted by what should tell them from others, and it is not yet
    known whether it does. ``None``: nothing was tried."""


@dataclass(frozen=True, slots=True)
class Installing:
    """One view's installation."""

    step: Install
    counts: Counts
    context: InstallContext
    sessions: Sessions
    pins: SessionPins
    emit: Callable[[Event], None]

    def run(self, find_victims: Callable[[ComputeBag], None], *, by_value: bool = False) -> Installed:
        """Install. ``find_victims`` looks up the rows that a bag loses; that is done where nothing else tells
        them from others, or ``by_value`` says so."""
        source = self.step.source
        if isinstance(source, ComputeBag) and self.counts.deleted:
            if self._goes_by_key(source) and not by_value:
                return self._by_key()
            if not self.step.has_copies and not by_value:
                return self._by_hash()
            find_victims(source)
        if isinstance(source, ComputeReplacement):
            return self._by_replacing()
        statements = self._statements()
        self._commit(statements)
        return Installed(self._method, self._variant(), statements)

    def _by_key(self) -> Installed:
        """KEYINSTALL; right unless more rows had the key than were to go."""
        statements = bags.statements_by_key(self.step, self.counts)
        for statement in statements:
            self._commit([statement])
        return Installed(Method.KEYINSTALL, "apply bag by key", statements, tried=self.counts.deleted)

    def _by_replacing(self) -> Installed:
        statements = self._statements()
        for statement in statements:
            self._commit([statement])
        return Installed(Method.KEYREPLACE, self.step.installer.value, statements)

    def _by_hash(self) -> Installed:
        """Right unless rows that were to stay have the hash of one that went."""
        statements = bags.statements_by_hash(self.step, self.counts)
        self._commit(statements)
        return Installed(Method.GENINSTALL, "apply bag by hash", statements, tried=self.counts.deleted)

    def take_back(self) -> None:
        """Undo what was tried."""
        session = self.sessions.pinned(self.pins, METADATA)
        session.sql(storage.drop_branch(self.step.storage, self.context.branch))
        self.emit(PointPassed(f"trial for {self.step.view} taken back"))

    def _variant(self) -> str:
        match self.step.source:
            case ComputeGroups():
                return groups.variant(self.counts, self._method).value
            case ComputeBag():
                return bags.BY_VALUE if self.counts.deleted else "insert rows"
            case ComputeReplacement() | ComputeRows():
                return self.step.installer.value

    @property
    def _method(self) -> Method:
        """The one that is asked for, or the cheapest for what was counted."""
        if isinstance(self.step.source, ComputeRows):
            return self.step.expected or Method.FULLRECOMP  # or parts are folded
        if isinstance(self.step.source, ComputeBag):
            return Method.GENINSTALL
        if self.step.method is not None:
            return self.step.method
        return self._cheapest(OF_GROUPS)

    def _goes_by_key(self, source: ComputeBag) -> bool:
        """Whether the rows of a bag are deleted by their key: as it is asked for, or where that is cheaper.
        Where equal rows were in the way before, there is none."""
        if not source.key or self.step.method is Method.GENINSTALL:
            return False
        if self.step.method is Method.KEYINSTALL:
            return True
        ways = (Method.GENINSTALL, Method.KEYINSTALL)
        return not self.step.has_copies and self._cheapest(ways) is Method.KEYINSTALL

    def _cheapest(self, methods: Sequence[Method]) -> Method:
        counts = self.counts
        return cheapest_install(
            methods,
            self.context.rates,
            self._storage_rows or 0,
            stored_width(self.step.layout),
            (counts.inserted, counts.deleted, counts.updated),
            self.context.corrected.get(self.step.view, {}),
        )

    @property
    def _storage_rows(self) -> int | None:
        return self.context.storage_rows.get(self.step.view)

    @property
    def _tuning(self) -> Tuning:
        if isinstance(self.step.source, ComputeRows):
            return tuning_for(None)
        return tuning_for(self.counts.total, self._storage_rows)

    def _statements(self) -> tuple[str, ...]:
        match self.step.source:
            case ComputeGroups():
                return groups.statements(self.step, self.counts, self._method)
            case ComputeBag():
                return bags.statements(self.step, self.counts)
            case ComputeReplacement():
                return replacing.statements(self.step, self.counts)
            case ComputeRows() as source:
                return overwrite.statements(self.step, source.rows)

    def _commit(self, statements: Sequence[str]) -> None:
        """Run them beside each other: one deletes stored rows and the other inserts new ones, so that neither
        minds which of the two commits first."""
        with ThreadPoolExecutor(max(1, len(statements)), "viewkeeper") as pool:
            list(pool.map(self._write, statements))

    def _write(self, statement: str) -> None:
        properties = self.context.properties[self.step.view]
        with self.sessions.writing(self.pins, self.context.branch, properties, self._tuning) as session:
            session.sql(statement)
        self.emit(PointPassed(f"statement for {self.step.view} committed"))
