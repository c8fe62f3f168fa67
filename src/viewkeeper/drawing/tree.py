"""Trees, root on top: delta propagation trees as Lee et al. (2001) draw them in Figure 1, and others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from viewkeeper.drawing.svg import (
    ACCENT,
    BOLD,
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

_MARGIN, _GAP, _BETWEEN = 14.0, 18.0, 40.0
_LINE_HEIGHT = 16.0
_LABEL = 40


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of a tree: a label, a few lines under it, and a figure at its upper left corner."""

    label: str
    lines: tuple[str, ...] = ()
    children: tuple[TreeNode, ...] = ()
    corner: str = ""
    state: State = State.PLAIN
    marked: bool = False
    detail: str = ""
    href: str | None = None


@dataclass(frozen=True, slots=True)
class DeltaNode:
    """Δ(R₁ ⋈ … ⋈ Rₙ): the relations, and how many rows it was estimated to hold, and held. A node without
    parts is the delta of a relation, or a relation that did not change."""

    relations: tuple[str, ...]
    estimated: int | None = None
    actual: int | None = None
    changed: bool = True
    shared: bool = False
    parts: tuple[DeltaNode, ...] = ()


@dataclass(frozen=True, slots=True)
class _Placed:
    node: TreeNode
    x: float
    """Its middle."""
    y: float
    parts: tuple[_Placed, ...]


def draw_delta_tree(root: DeltaNode, title: str, description: str = "") -> str:
    """A delta propagation tree. The figure at a node is how many changed siblings it has: so often the
    relations below it are read for them (Section 3.2)."""
    said = description or f"The delta of {' ⋈ '.join(root.relations)}, made from the deltas of its parts."
    return draw_tree(_delta(root, None), title, said, name="delta-tree")


def draw_tree(root: TreeNode, title: str, description: str = "", *, name: str = "tree") -> str:
    """A tree as SVG."""
    tops = _tops(root)
    placed = _placed(root, _MARGIN, 0, tops)
    boxes = list(_all(placed))
    size = (_wide(root) + 2 * _MARGIN, max(box.y + _height(box.node) for box in boxes) + _MARGIN)
    body = [
        element(
            "g",
            *(_edge(above, below) for above in boxes for below in above.parts),
            fill="none", stroke=LINE, stroke_width=1.5,
        ),
        *(_box(box) for box in boxes),
    ]  # fmt: skip
    return drawing(name, title, description or f"{len(boxes)} nodes.", size, body)


def _delta(node: DeltaNode, siblings: int | None) -> TreeNode:
    joined = " ⋈ ".join(node.relations)
    label = joined if not node.changed else f"Δ({joined})" if len(node.relations) > 1 else f"Δ{joined}"
    lines = tuple(_sizes(node))
    terms = sum(part.changed for part in node.parts)
    return TreeNode(
        label,
        lines,
        tuple(_delta(part, terms - part.changed) for part in node.parts),
        "" if siblings is None else str(siblings),
        State.PLAIN,
        marked=node.shared,
        detail=", ".join(
            (f"{label}: {', '.join(lines)}", *(["computed once for several views"] * node.shared))
        ),
    )


def _sizes(node: DeltaNode) -> Iterator[str]:
    if not node.changed:
        yield "unchanged"
        return
    if node.estimated is not None:
        yield f"≈ {node.estimated:,} estimated"
    if node.actual is not None:
        yield f"= {node.actual:,} actual"
    if node.shared:
        yield "shared"


def _width(node: TreeNode) -> float:
    lines = (text_width(shortened(line, _LABEL), 11) for line in node.lines)
    return max(64.0, 26 + max(text_width(shortened(node.label, _LABEL)) * BOLD, *lines, 0.0))


def _height(node: TreeNode) -> float:
    return 20.0 + _LINE_HEIGHT * (1 + len(node.lines))


def _wide(node: TreeNode) -> float:
    """The room that a node takes with all that is below it."""
    below = sum(_wide(each) for each in node.children) + _GAP * max(0, len(node.children) - 1)
    return max(_width(node), below)


def _tops(root: TreeNode) -> list[float]:
    """Where each level begins."""
    tops, level, start = [], [root], _MARGIN
    while level:
        tops.append(start)
        start += max(map(_height, level)) + _BETWEEN
        level = [child for node in level for child in node.children]
    return tops


def _placed(node: TreeNode, left: float, depth: int, tops: list[float]) -> _Placed:
    room = _wide(node)
    below = sum(_wide(each) for each in node.children) + _GAP * max(0, len(node.children) - 1)
    start = left + (room - below) / 2
    parts = []
    for child in node.children:
        parts.append(_placed(child, start, depth + 1, tops))
        start += _wide(child) + _GAP
    middle = (parts[0].x + parts[-1].x) / 2 if parts else left + room / 2
    least, most = left + _width(node) / 2, left + room - _width(node) / 2
    return _Placed(node, min(max(middle, least), most), tops[depth], tuple(parts))


def _all(placed: _Placed) -> Iterator[_Placed]:
    yield placed
    for part in placed.parts:
        yield from _all(part)


def _edge(above: _Placed, below: _Placed) -> str:
    start = above.y + _height(above.node)
    half = (start + below.y) / 2
    curve = f"C{above.x:.1f} {half:.1f} {below.x:.1f} {half:.1f} {below.x:.1f} {below.y:.1f}"
    return element("path", d=f"M{above.x:.1f} {start:.1f} {curve}")


def _box(placed: _Placed) -> str:
    node = placed.node
    width, left = _width(node), placed.x - _width(node) / 2
    colour = ACCENT if node.marked else node.state.colour
    said = node.detail or ": ".join(filter(None, (node.label, ", ".join(node.lines))))
    corner = [
        element("circle", cx=left, cy=placed.y, r=9, fill=SURFACE, stroke=LINE),
        element(
            "text", text=node.corner, x=left, y=placed.y + 4, text_anchor="middle", font_size=11, fill=INK
        ),
    ]
    return linked(
        node.href,
        said,
        element("title", text=said),
        element(
            "rect", x=left, y=placed.y, width=width, height=_height(node), rx=8,
            fill=SURFACE, stroke=colour, stroke_width=2.5 if node.marked else 1.5,
        ),
        element(
            "text", text=shortened(node.label, _LABEL), x=placed.x, y=placed.y + 22,
            text_anchor="middle", font_weight=600, fill=INK,
        ),
        *(
            element(
                "text", text=shortened(line, _LABEL), x=placed.x, y=placed.y + 23 + _LINE_HEIGHT * at,
                text_anchor="middle", font_size=11, fill=MUTED,
            )
            for at, line in enumerate(node.lines, 1)
        ),
        *(corner if node.corner else ()),
    )  # fmt: skip
