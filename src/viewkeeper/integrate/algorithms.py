"""The algorithms by name: how each is made, what it needs, and what it promises (Table 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.c_strobe import CStrobe
from viewkeeper.integrate.eca import Eca
from viewkeeper.integrate.levels import Level
from viewkeeper.integrate.machine import Machine
from viewkeeper.integrate.naive import Naive
from viewkeeper.integrate.nested_sweep import NestedSweep
from viewkeeper.integrate.strobe import Strobe
from viewkeeper.integrate.sweep import Sweep
from viewkeeper.integrate.views import JoinView


@dataclass(frozen=True, slots=True)
class Algorithm:
    """``make`` takes the view and what it holds in the beginning."""

    make: Callable[[JoinView, Bag], Machine]
    promises: Level
    needs_keys: bool = False
    needs_one_source: bool = False


ALGORITHMS: Mapping[str, Algorithm] = {
    "sweep": Algorithm(lambda view, _: Sweep(view), Level.COMPLETE),
    "nested-sweep": Algorithm(lambda view, _: NestedSweep(view), Level.STRONG),
    "eca": Algorithm(lambda view, _: Eca(view), Level.STRONG, needs_one_source=True),
    "strobe": Algorithm(Strobe, Level.STRONG, needs_keys=True),
    "c-strobe": Algorithm(CStrobe, Level.COMPLETE, needs_keys=True),
    "naive": Algorithm(lambda view, _: Naive(view), Level.NONE),
}
