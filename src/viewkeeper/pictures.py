"""Drawings of a warehouse: its graph, coloured by freshness, and what its epochs took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from viewkeeper.drawing import Bar, GraphEdge, GraphNode, State, draw_bars, draw_graph
from viewkeeper.sql.quoting import parse_path, show_path

if TYPE_CHECKING:
    from viewkeeper.results import Epoch, ViewStatus

MOST_BARS = 60


def graph_of(views: Iterable[ViewStatus]) -> str:
    """The views and the tables that they read, from left to right."""
    known = {view.view: view for view in views}
    tables = dict.fromkeys(table for view in known.values() for table in view.reads if table not in known)
    sources = [GraphNode(table, last_part(table), "source", State.SOURCE, detail=table) for table in tables]
    drawn = [*sources, *map(_node, known.values())]
    edges = [GraphEdge(table, name) for name, view in known.items() for table in view.reads]
    said = f"{len(known)} views, and the {len(tables)} tables that they read."
    return draw_graph(drawn, edges, "The graph of the views", said)


def _node(view: ViewStatus) -> GraphNode:
    colour = State.FRESH if view.state == "fresh" else State.STALE
    told = ", ".join(filter(None, (view.state, f"epoch {view.epoch}" if view.epoch else "")))
    return GraphNode(view.view, last_part(view.view), told, colour, detail=f"{view.view}: {told}")


def bars_of(epochs: Sequence[Epoch], title: str = "Seconds of each epoch") -> str:
    """What the last epochs took; they come newest first, and are drawn from left to right."""
    shown = epochs[:MOST_BARS][::-1]
    bars = [
        Bar(
            str(epoch.id),
            sum(view.compute_seconds for view in epoch.views),
            sum(view.install_seconds for view in epoch.views),
        )
        for epoch in shown
    ]
    return draw_bars(bars, title, f"Computing and installing in the last {len(bars)} epochs.")


def last_part(name: str) -> str:
    """The name of a table or view without its catalog and namespace."""
    try:
        return show_path(parse_path(name)[-1:])
    except ValueError:
        return name
