"""Drawings: well-formed, escaped, with names for those who do not see them, and without overlaps."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree

import pytest

from viewkeeper.drawing import (
    Bar,
    DeltaNode,
    GraphEdge,
    GraphNode,
    LatticeEdge,
    LatticeNode,
    Span,
    State,
    TreeNode,
    draw_bars,
    draw_delta_tree,
    draw_graph,
    draw_lattice,
    draw_tree,
    draw_waterfall,
)
from viewkeeper.drawing.layers import _crossings, _neighbours, layered

SVG = "{http://www.w3.org/2000/svg}"
MARKUP = "<img src=x onerror=\"alert('1')\">&\x00\x1f"


def drawings(text: str = "orders") -> dict[str, str]:
    nodes = [GraphNode("a", text, text, State.SOURCE, "/a?b=1&c=2"), GraphNode("b", text, "", State.FAILED)]
    tree = TreeNode(text, (text,), (TreeNode(text, corner="1", detail=text),), href=text)
    delta = DeltaNode((text, "b"), 1, 2, parts=(DeltaNode((text,), 1), DeltaNode(("b",), changed=False)))
    upper, lower = LatticeNode("u", text, (text,)), LatticeNode("l", text)
    return {
        "graph": draw_graph(nodes, [GraphEdge("a", "b", text, shared=True)], text, text),
        "tree": draw_tree(tree, text),
        "delta tree": draw_delta_tree(delta, text),
        "lattice": draw_lattice([upper, lower], [LatticeEdge("u", "l", (text,))], text),
        "bars": draw_bars([Bar(text, 1.0, 0.5, detail=text), Bar("2", 0.0, 0.0)], text),
        "waterfall": draw_waterfall([Span(text, text, 0.0, 1.0), Span("b", "install", 1.0, 0.0)], text),
        "nothing": draw_graph([], [], text) + "",
    }


@pytest.mark.parametrize("name", drawings())
def test_is_well_formed_and_tells_what_it_shows(name: str) -> None:
    root = ElementTree.fromstring(drawings()[name])
    assert root.find(f"{SVG}title") is not None and root.findtext(f"{SVG}title") == "orders"
    assert root.findtext(f"{SVG}desc")
    assert "<style" not in drawings()[name] and "style=" not in drawings()[name]


@pytest.mark.parametrize("name", drawings())
def test_escapes_what_it_is_given(name: str) -> None:
    text = drawings(MARKUP)[name]
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{SVG}title", "").startswith("<img src=x")
    assert "<img" not in text
    assert not [key for each in root.iter() for key in each.attrib if key.startswith("on")]


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    found = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return [
        tuple(float(box.get(key, "0")) for key in ("x", "y", "width", "height"))  # type: ignore[misc]
        for box in found
        if "vk-node" in box.get("class", "")
    ]


@pytest.mark.parametrize("direction", ["right", "down"])
def test_nodes_do_not_overlap_and_lie_within(direction: str) -> None:
    nodes = [GraphNode(str(at), f"view number {at}" * (1 + at % 2)) for at in range(40)]
    edges = [GraphEdge(str(at // 3), str(at), "+1") for at in range(1, 40)]
    edges += [GraphEdge("0", str(at)) for at in range(20, 40, 5)]
    svg = draw_graph(nodes, edges, "many", direction=direction)  # type: ignore[arg-type]
    drawn = boxes(svg)
    assert len(drawn) == 40
    width, height = (float(each) for each in ElementTree.fromstring(svg).get("viewBox", "").split()[2:])
    for x, y, wide, high in drawn:
        assert x >= 0 and y >= 0 and x + wide <= width and y + high <= height
    for (x, y, wide, high), (u, v, broad, tall) in itertools.combinations(drawn, 2):
        assert x + wide <= u or u + broad <= x or y + high <= v or v + tall <= y


def test_sources_come_first_and_edges_lead_on() -> None:
    layers = layered({"s": 1, "t": 1, "a": 1, "b": 1}, [("s", "a"), ("a", "b"), ("t", "b")], 1).layers
    assert [[point for point in layer if isinstance(point, str)] for layer in layers] == [
        ["s", "t"],
        ["a"],
        ["b"],
    ]


def test_crossings_that_need_not_be_are_gone() -> None:
    edges = [(f"s{at}", f"v{(at * 3) % 7}") for at in range(7)]
    names = [name for pair in edges for name in pair]
    found = layered(dict.fromkeys(sorted(names), 1.0), edges, 1)
    assert _crossings(found.layers, _neighbours(edges)[1]) == 0
    assert _crossings([sorted(x for x, _ in edges), sorted(y for _, y in edges)], _neighbours(edges)[1]) > 0


def test_a_cycle_is_an_error() -> None:
    with pytest.raises(ValueError, match="leads to itself"):
        draw_graph(
            [GraphNode("a", "a"), GraphNode("b", "b")], [GraphEdge("a", "b"), GraphEdge("b", "a")], "t"
        )


def test_the_figure_at_a_node_counts_its_changed_siblings() -> None:
    """Figure 1 (a) of Lee et al. 2001: accesses are the sums of the figures on the way to the root."""
    r = [DeltaNode((f"R{at}",), at) for at in range(1, 7)]
    pair = DeltaNode(("R1", "R2"), 5, parts=(r[0], r[1]))
    other = DeltaNode(("R4", "R5"), 5, parts=(r[3], r[4]))
    five = DeltaNode(("R1", "R2", "R3", "R4", "R5"), 9, parts=(pair, r[2], other))
    svg = draw_delta_tree(
        DeltaNode(tuple(f"R{at}" for at in range(1, 7)), 12, 11, parts=(five, r[5])), "tree"
    )
    texts = [each.text for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert texts.count("1") == 2 + 4 and texts.count("2") == 3
    assert "= 11 actual" in texts and "Δ(R1 ⋈ R2)" in texts
