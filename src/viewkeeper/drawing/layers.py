"""Where the nodes of a layered drawing go (Sugiyama, Tagawa and Toda 1981, in three steps).

1. layer: one more than the deepest of those it follows; edges over several layers get a *bend* in each
2. order: sweeps that put each node at the barycenter of its neighbours; the order with fewest crossings stays
3. place: each node as near to its neighbours as the order and the gaps let it be (isotonic regression)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TypeAlias

_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Bend:
    """A place where an edge passes through a layer."""

    upper: str
    lower: str
    layer: int


Point: TypeAlias = str | Bend
"""A node, or a bend of an edge."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers, each from first to last, and where in its layer each point has its middle."""

    layers: tuple[tuple[Point, ...], ...]
    middle: Mapping[Point, float]


def layered(
    sizes: Mapping[str, float], edges: Sequence[tuple[str, str]], gap: float, bend_size: float = 6.0
) -> Layers:
    """The layers of an acyclic graph; ``sizes``: how much room each node takes in its layer."""
    depth = _depths(sizes, edges)
    layers: list[list[Point]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, at in depth.items():
        layers[at].append(name)
    links: list[tuple[Point, Point]] = []
    for upper, lower in edges:
        bends = [Bend(upper, lower, at) for at in range(depth[upper] + 1, depth[lower])]
        for bend in bends:
            layers[bend.layer].append(bend)
        path: list[Point] = [upper, *bends, lower]
        links += pairwise(path)
    room = {
        point: sizes[point] if isinstance(point, str) else bend_size for layer in layers for point in layer
    }
    ordered = _ordered(layers, links)
    return Layers(tuple(tuple(layer) for layer in ordered), _placed(ordered, links, room, gap))


def _depths(names: Iterable[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    before: dict[str, list[str]] = {name: [] for name in names}
    for upper, lower in edges:
        before[lower].append(upper)
    depth: dict[str, int] = {}

    def find(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise ValueError(f"a layered drawing has no cycles, and {name} leads to itself")
        if name not in depth:
            depth[name] = 1 + max((find(each, (*above, name)) for each in before[name]), default=-1)
        return depth[name]

    return {name: find(name, ()) for name in before}


def _neighbours(
    links: Iterable[tuple[Point, Point]],
) -> tuple[dict[Point, list[Point]], dict[Point, list[Point]]]:
    above: dict[Point, list[Point]] = {}
    below: dict[Point, list[Point]] = {}
    for upper, lower in links:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    return above, below


def _ordered(layers: Sequence[Sequence[Point]], links: Sequence[tuple[Point, Point]]) -> list[list[Point]]:
    above, below = _neighbours(links)
    best = present = [list(layer) for layer in layers]
    fewest = _crossings(best, below)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        beside, towards = (
            (above, range(1, len(present))) if down else (below, range(len(present) - 2, -1, -1))
        )
        present = [list(layer) for layer in present]
        for at in towards:
            fixed = {point: place for place, point in enumerate(present[at - 1 if down else at + 1])}
            own = {point: place for place, point in enumerate(present[at])}
            present[at].sort(key=lambda point: _barycenter(beside.get(point, ()), fixed, own[point]))
        crossings = _crossings(present, below)
        if crossings < fewest:
            best, fewest = present, crossings
    return best


def _barycenter(neighbours: Sequence[Point], places: Mapping[Point, int], own: float) -> float:
    return fmean(places[each] for each in neighbours) if neighbours else own


def _crossings(layers: Sequence[Sequence[Point]], below: Mapping[Point, Sequence[Point]]) -> int:
    """Inversions among the lower ends, the links taken in the order of their upper ends."""
    total = 0
    for upper, lower in pairwise(layers):
        places = {point: place for place, point in enumerate(lower)}
        ends = [place for point in upper for place in sorted(places[each] for each in below.get(point, ()))]
        tree = [0] * (len(lower) + 1)  # how many ends so far lie at or before a place, as a Fenwick tree
        for seen, end in enumerate(ends):
            total += seen - _sum(tree, end + 1)
            _add(tree, end + 1)
    return total


def _sum(tree: Sequence[int], at: int) -> int:
    total = 0
    while at:
        total += tree[at]
        at -= at & -at
    return total


def _add(tree: list[int], at: int) -> None:
    while at < len(tree):
        tree[at] += 1
        at += at & -at


def _placed(
    layers: Sequence[Sequence[Point]],
    links: Sequence[tuple[Point, Point]],
    room: Mapping[Point, float],
    gap: float,
) -> dict[Point, float]:
    above, below = _neighbours(links)
    middle: dict[Point, float] = {}
    widest = max((sum(room[each] + gap for each in layer) for layer in layers), default=0.0)
    for layer in layers:
        start = (widest - sum(room[each] + gap for each in layer)) / 2
        for each in layer:
            middle[each] = start + (room[each] + gap) / 2
            start += room[each] + gap
    for sweep in range(_SWEEPS):
        beside = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wished = [
                fmean(middle[near] for near in beside[each]) if each in beside else middle[each]
                for each in layer
            ]
            middle.update(zip(layer, _apart(wished, [room[each] for each in layer], gap), strict=True))
    least = min((middle[each] - room[each] / 2 for layer in layers for each in layer), default=0.0)
    return {point: at - least for point, at in middle.items()}


def _apart(wished: Sequence[float], room: Sequence[float], gap: float) -> list[float]:
    """The places nearest to the wished ones that keep the order and the gaps: isotonic regression, by pooling
    neighbours that want to overtake each other.

    >>> _apart([5, 5], [10, 10], 2)
    [-1.0, 11.0]
    """
    offsets = [0.0]
    for left, right in pairwise(room):
        offsets.append(offsets[-1] + (left + right) / 2 + gap)
    pools: list[tuple[float, int]] = []  # the mean of some neighbours, and how many they are
    for wish, offset in zip(wished, offsets, strict=False):
        mean, count = wish - offset, 1
        while pools and pools[-1][0] > mean:
            other, more = pools.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
