"""The views a warehouse has, read back from its ledger. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from viewkeeper.analyse.analysis import Analysis
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.define.vdag import Vdag
from viewkeeper.ledger.records import ViewRecord, ViewState
from viewkeeper.outlines import find_view, is_hidden, lookup_view
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.hidden_state import Trial
from viewkeeper.plan.layout import Layout
from viewkeeper.plan.methods import Method, pinned
from viewkeeper.plan.representation import Representation, can_be_counted
from viewkeeper.plan.view_keys import key_of_view


@dataclass(frozen=True, slots=True)
class KnownView:
    """A view with its definition, its analysis and its layout."""

    name: str
    definition_id: str
    definition: ViewDefinition
    analysis: Analysis
    layout: Layout
    sources: dict[str, Any]
    """For each source: its identity and the columns that were there when the view was defined."""
    trial: Trial | None = None
    """What is known of keeping its inner results, if that was tried."""

    @classmethod
    def of(cls, record: ViewRecord) -> KnownView:
        """From the ledger's record."""
        content = record.analysis
        return cls(
            record.name,
            record.definition_id,
            CODEC.decode(record.definition),
            CODEC.decode(content["analysis"]),
            CODEC.decode(content["layout"]),
            content.get("sources", {}),
            CODEC.decode(content.get("trial")),
        )

    @property
    def hidden(self) -> bool:
        """Whether it was made by us, to keep an inner result of others."""
        return is_hidden(self.name)

    @property
    def method(self) -> Method | None:
        """How its definition says that it is to be installed, if it does."""
        return pinned(dict(self.definition.properties))

    @property
    def representation(self) -> Representation | None:
        """How copies of its rows are stored; ``None`` if there is no choice."""
        if self.layout.counted:
            return Representation.CNT
        is_bag = self.layout.is_plain_bag and can_be_counted(self.layout.types)
        return Representation.DUP if is_bag else None

    def record(self, epoch: int) -> ViewRecord:
        """For the ledger, as defined in that epoch."""
        definition = CODEC.encode(self.definition)
        assert isinstance(definition, dict)
        analysis = {
            "analysis": CODEC.encode(self.analysis),
            "layout": CODEC.encode(self.layout),
            "sources": self.sources,
            "trial": CODEC.encode(self.trial),
        }
        return ViewRecord(self.name, definition, analysis, self.definition_id, epoch)


@dataclass(frozen=True, slots=True)
class Library:
    """The views as of one epoch, and where their rows are."""

    views: dict[str, KnownView]
    states: dict[str, ViewState]

    @classmethod
    def of(cls, records: Iterable[ViewRecord], states: dict[str, ViewState]) -> Library:
        return cls({record.name: KnownView.of(record) for record in records}, states)

    @property
    def graph(self) -> Vdag:
        return Vdag({name: view.analysis.tables for name, view in self.views.items()})

    def hidden_parents(self, name: str) -> tuple[str, ...]:
        """The hidden views that a view reads, those that they read first."""
        found: dict[str, None] = {}
        for parent in self.graph.parents(name):
            if self.views[parent].hidden:
                found |= dict.fromkeys((*self.hidden_parents(parent), parent))
        return tuple(found)

    def keys(self) -> dict[str, tuple[str, ...]]:
        """A key of each table and view that one is known of."""
        found: dict[str, tuple[str, ...]] = {}
        for view in self.views.values():
            found.update((table, tuple(facts.get("key", ()))) for table, facts in view.sources.items())
        for name in self.graph.order():
            view = self.views[name]
            found[name] = key_of_view(view.analysis, view.layout, found)
        return found

    def with_views(self, *views: KnownView) -> Library:
        """The library with these views added, or put in the place of those of the same name."""
        return Library({**self.views, **{view.name: view for view in views}}, self.states)

    def find(self, name: str, default: tuple[str, ...]) -> str:
        """The full name of a view, given by its full name or by its last parts; ``default`` is the catalog
        and namespace that go before."""
        return find_view(name, self.views, default)

    def lookup(self, name: str, default: tuple[str, ...]) -> str | None:
        """Like :meth:`find`, but ``None`` when there is no such view."""
        return lookup_view(name, self.views, default)
