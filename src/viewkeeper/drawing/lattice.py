"""The lattice of views, the most detailed on top, as Mumick et al. (1997) draw it in Figures 8 and 9."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.drawing.graph import GraphEdge, GraphNode, draw_graph
from viewkeeper.drawing.svg import State


@dataclass(frozen=True, slots=True)
class LatticeNode:
    """A view, and the columns that it groups by."""

    id: str
    label: str
    keys: tuple[str, ...] = ()
    state: State = State.PLAIN
    href: str | None = None


@dataclass(frozen=True, slots=True)
class LatticeEdge:
    """The lower view can be made from the upper one: by joining these tables, if any. ``used``: it was, in
    the last epoch."""

    upper: str
    lower: str
    joins: tuple[str, ...] = ()
    used: bool = False


def draw_lattice(
    nodes: Sequence[LatticeNode], edges: Sequence[LatticeEdge], title: str, description: str = ""
) -> str:
    """The lattice as SVG. An edge says what has to be joined; one that was used is strong."""
    said = description or "Each view can be made from those above it that an edge leads from."
    return draw_graph(
        [
            GraphNode(
                node.id,
                node.label,
                f"({', '.join(node.keys)})" if node.keys else "",
                node.state,
                node.href,
                f"groups by {', '.join(node.keys)}" if node.keys else "one group of all rows",
            )
            for node in nodes
        ],
        [GraphEdge(e.upper, e.lower, f"⋈ {', '.join(e.joins)}" if e.joins else "", e.used) for e in edges],
        title,
        said,
        direction="down",
        name="lattice",
    )
