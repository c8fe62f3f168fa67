"""The graph of views: from sources to views, in layers, with what flowed along the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

from viewkeeper.drawing.layers import Bend, Layers, layered
from viewkeeper.drawing.svg import (
    ACCENT,
    BOLD,
    HALO,
    INK,
    LINE,
    MUTED,
    SURFACE,
    State,
    drawing,
    element,
    linked,
    shortened,
    text_width,
)

_HEIGHT = 50.0
_LEAST, _MOST = 104.0, 260.0
_MARGIN = 12.0
_LABEL, _SUBLABEL = 26, 34
"""Characters that a node has room for; the whole text is its tooltip."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A source or a view. ``sublabel``: say, the last strategy and the age; ``state`` gives the colour."""

    id: str
    label: str
    sublabel: str = ""
    state: State = State.PLAIN
    href: str | None = None
    detail: str = ""
    """What is told of it beside its label, to those who point at it or listen."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """What a node reads. ``label``: say, the rows of a delta; ``shared``: several read the same delta."""

    source: str
    target: str
    label: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True)
class _Box:
    """Where a node is drawn."""

    x: float
    y: float
    width: float
    height: float = _HEIGHT


Direction = Literal["right", "down"]
_Point: TypeAlias = tuple[float, float]


def draw_graph(
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    title: str,
    description: str = "",
    *,
    direction: Direction = "right",
    name: str = "graph",
) -> str:
    """The graph as SVG. Edges between nodes that are not there are left out; cycles are an error."""
    known = {node.id for node in nodes}
    drawn = [edge for edge in edges if edge.source in known and edge.target in known]
    widths = {node.id: _width(node) for node in nodes}
    pairs = list(dict.fromkeys((edge.source, edge.target) for edge in drawn))
    across = widths if direction == "down" else dict.fromkeys(widths, _HEIGHT)
    layers = layered(across, pairs, gap=22.0 if direction == "right" else 28.0)
    boxes, bends = _boxes(layers, widths, direction, _between(drawn, direction))
    size = (
        max((box.x + box.width for box in boxes.values()), default=0.0) + _MARGIN,
        max((box.y + box.height for box in boxes.values()), default=0.0) + _MARGIN,
    )
    ways = _ways(drawn, boxes, bends, direction)
    body = [
        element("g", *map(_path, ways), fill="none", stroke=LINE, stroke_width=1.5, class_="vk-edges"),
        element("g", *map(_label, ways), class_="vk-edge-labels", font_size=11),
        element("g", *(_node(node, boxes[node.id]) for node in nodes), class_="vk-nodes"),
    ]
    said = description or f"{len(nodes)} nodes and {len(drawn)} edges."
    return drawing(name, title, said, size, body)


def _width(node: GraphNode) -> float:
    label = text_width(shortened(node.label, _LABEL)) * BOLD
    return min(_MOST, max(_LEAST, 30 + max(label, text_width(shortened(node.sublabel, _SUBLABEL), 11))))


def _between(edges: Sequence[GraphEdge], direction: Direction) -> float:
    """The room between layers: enough for the labels of the edges."""
    if direction == "down":
        return 64.0 if any(edge.label for edge in edges) else 44.0
    return max(72.0, 60 + max((text_width(edge.label, 11) for edge in edges), default=0.0))


@dataclass(frozen=True, slots=True)
class _Way:
    """An edge from the border of one box to that of another, through the layers between: for each of those
    where it enters, where it leaves, and how far to the side."""

    edge: GraphEdge
    first: _Point
    bends: tuple[tuple[float, float, float], ...]
    last: _Point
    right: bool

    @property
    def stops(self) -> list[_Point]:
        return [
            (at, side) if self.right else (side, at)
            for enters, leaves, side in self.bends
            for at in (enters, leaves)
        ]


_Bends = dict[tuple[str, str], list[tuple[float, float, float]]]


def _boxes(
    layers: Layers, widths: Mapping[str, float], direction: Direction, between: float
) -> tuple[dict[str, _Box], _Bends]:
    boxes: dict[str, _Box] = {}
    bends: _Bends = {}
    start = _MARGIN
    for layer in layers.layers:
        named = [point for point in layer if isinstance(point, str)]
        thick = max((widths[each] for each in named), default=0.0) if direction == "right" else _HEIGHT
        for point in layer:
            middle = layers.middle[point] + _MARGIN
            if isinstance(point, Bend):
                bends.setdefault((point.upper, point.lower), []).append((start, start + thick, middle))
            elif direction == "right":
                boxes[point] = _Box(start, middle - _HEIGHT / 2, widths[point])
            else:
                boxes[point] = _Box(middle - widths[point] / 2, start, widths[point])
        start += thick + between
    return boxes, bends


def _ways(
    edges: Sequence[GraphEdge], boxes: Mapping[str, _Box], bends: _Bends, direction: Direction
) -> list[_Way]:
    """The edges; those that end at one box arrive side by side, in the order in which they come."""
    right = direction == "right"
    found: list[_Way] = []
    for target, box in boxes.items():
        ways = []
        for edge in (each for each in edges if each.target == target):
            upper, passed = boxes[edge.source], tuple(bends.get((edge.source, target), ()))
            first = (
                (upper.x + upper.width, upper.y + upper.height / 2)
                if right
                else (upper.x + upper.width / 2, upper.y + upper.height)
            )
            ways.append(_Way(edge, first, passed, first, right))
        ways.sort(key=lambda way: way.bends[-1][2] if way.bends else way.first[right])
        length = box.height if right else box.width
        step = min(14.0 if right else 40.0, (length - 16) / max(1, len(ways) - 1))
        for at, way in enumerate(ways):
            side = (at - (len(ways) - 1) / 2) * step
            last = (
                (box.x - 7, box.y + box.height / 2 + side)
                if right
                else (box.x + box.width / 2 + side, box.y - 7)
            )
            found.append(replace(way, last=last))
    return found


def _path(way: _Way) -> str:
    """The curve, with an arrow head at its end."""
    edge, right = way.edge, way.right
    line = f"M{_at(way.first)}"
    for at, (begin, end) in enumerate(pairwise((way.first, *way.stops, way.last))):
        ahead, behind = _handles(begin, end, right=right)
        line += f" L{_at(end)}" if at % 2 else f" C{_at(ahead)} {_at(behind)} {_at(end)}"
    x, y = way.last
    head = f"M{_at((x, y - 4))} l7 4 l-7 4 z" if right else f"M{_at((x - 4, y))} l4 7 l4 -7 z"
    colour = ACCENT if edge.shared else LINE
    return element(
        "g",
        element("title", text=f"{edge.source} to {edge.target}" + (f": {edge.label}" if edge.label else "")),
        element("path", d=line, stroke=colour, stroke_width=2.5 if edge.shared else 1.5),
        element("path", d=head, fill=colour, stroke="none"),
        class_="vk-edge vk-shared" if edge.shared else "vk-edge",
    )


def _label(way: _Way) -> str:
    """What an edge says: above its end, where it has come near to its box; or halfway down."""
    if not way.edge.label:
        return ""
    if way.right:
        (x, y), anchor = (way.last[0] + 2, way.last[1] - 4), "end"
    else:
        (x, y), anchor = _halfway((way.first, *way.stops)[-1], way.last), "middle"
    colour = ACCENT if way.edge.shared else MUTED
    halo = {"paint_order": "stroke", "stroke": HALO, "stroke_width": 4, "stroke_linejoin": "round"}
    return element(
        "text", text=way.edge.label, x=x, y=y, text_anchor=anchor, fill=colour, aria_hidden="true", **halo
    )


def _halfway(begin: _Point, end: _Point) -> _Point:
    return ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2 + 4)


def _handles(begin: _Point, end: _Point, *, right: bool) -> tuple[_Point, _Point]:
    """Where a curve that leaves and arrives along the direction of the drawing heads to, and comes from."""
    half = (end[0] - begin[0] if right else end[1] - begin[1]) / 2
    if right:
        return (begin[0] + half, begin[1]), (end[0] - half, end[1])
    return (begin[0], begin[1] + half), (end[0], end[1] - half)


def _at(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _node(node: GraphNode, box: _Box) -> str:
    """A box with a coloured edge; a source is rounder, and what is not well has a sign, too."""
    plain = node.state in (State.PLAIN, State.SOURCE)
    label, below = shortened(node.label, _LABEL), shortened(node.sublabel, _SUBLABEL)
    # What is heard begins with what is seen, so that people can speak of the same thing.
    whole = "" if label == node.label else node.label
    said = "; ".join(
        filter(None, (f"{label} {below}".strip(), whole, node.detail or ("" if plain else node.state.value)))
    )
    middle = box.y + (20.0 if node.sublabel else 30.0)
    left = box.x + 16
    return linked(
        node.href,
        said,
        element("title", text=said),
        element(
            "rect", x=box.x, y=box.y, width=box.width, height=box.height,
            rx=box.height / 2 if node.state is State.SOURCE else 8,
            fill=SURFACE, stroke=node.state.colour, stroke_width=1.5, class_=f"vk-node vk-{node.state.value}",
        ),
        *(() if plain else [
            element("rect", x=box.x, y=box.y + 8, width=4, height=box.height - 16, fill=node.state.colour)
        ]),
        element("text", text=label, x=left, y=middle, font_weight=600, fill=INK),
        " ",
        element("text", text=below, x=left, y=middle + 17, font_size=11, fill=MUTED),
        _sign(node.state, box),
    )  # fmt: skip


def _sign(state: State, box: _Box) -> str:
    """What colour alone would tell: a clock for what is stale, a cross for what failed."""
    x, y = box.x + box.width, box.y
    if state is State.STALE:
        return element(
            "g",
            element("circle", cx=x, cy=y, r=7, fill=SURFACE, stroke=state.colour, stroke_width=1.5),
            element(
                "path", d=f"M{_at((x, y - 4))} v4 h3", stroke=state.colour, stroke_width=1.5, fill="none"
            ),
        )
    if state is State.FAILED:
        cross = f"M{_at((x - 3, y - 3))} l6 6 m0 -6 l-6 6"
        return element(
            "g",
            element("circle", cx=x, cy=y, r=7, fill=state.colour),
            element("path", d=cross, stroke="#fff", stroke_width=1.6, fill="none"),
        )
    return ""
