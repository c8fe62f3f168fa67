"""Drawings as SVG text: the graph of views, trees, lattices and charts. Values in, text out.

Nothing here reads or knows anything else of viewkeeper: the console, notebooks and reports hand over small
values and get text that can stand in an HTML page. Every drawing has a title and a description for those who
do not see it, no script and no style of its own: colours are CSS variables (``--vk-…``), with values for
pages that define none, which are readable on light and dark alike.
"""

from __future__ import annotations

from viewkeeper.drawing.charts import Bar, Span, draw_bars, draw_waterfall
from viewkeeper.drawing.graph import GraphEdge, GraphNode, draw_graph
from viewkeeper.drawing.lattice import LatticeEdge, LatticeNode, draw_lattice
from viewkeeper.drawing.svg import State
from viewkeeper.drawing.tree import DeltaNode, TreeNode, draw_delta_tree, draw_tree

__all__ = [
    "Bar",
    "DeltaNode",
    "GraphEdge",
    "GraphNode",
    "LatticeEdge",
    "LatticeNode",
    "Span",
    "State",
    "TreeNode",
    "draw_bars",
    "draw_delta_tree",
    "draw_graph",
    "draw_lattice",
    "draw_tree",
    "draw_waterfall",
]
