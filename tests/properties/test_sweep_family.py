"""Every algorithm keeps its promise, in worlds that nobody thought of: seeded runs with 2 to 8 sources.

Two thousand runs in all, and a hundred thousand with the long ones. In a third of the worlds of SWEEP and
Nested SWEEP commits show late in answers, which then say what they contain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from viewkeeper.integrate.algorithms import ALGORITHMS
from viewkeeper.integrate.levels import Level
from viewkeeper.integrate.machine import Machine
from viewkeeper.integrate.nested_sweep import NestedSweep
from viewkeeper.integrate.simulate.checker import is_in_order, level_of
from viewkeeper.integrate.simulate.faults import Death, random_fault
from viewkeeper.integrate.simulate.history import History
from viewkeeper.integrate.simulate.random_worlds import Shape, random_world
from viewkeeper.integrate.simulate.simulation import simulate, simulate_algorithm
from viewkeeper.integrate.simulate.worlds import World
from viewkeeper.integrate.sweep import Sweep
from viewkeeper.integrate.views import JoinView

TIMES_LONG = 49
"""So many times the runs of `make test` are made in addition by `make test-long`."""

OPTIONS = list(product([False, True], [1, 3], [False, True]))
"""Of SWEEP: parallel, how many sweeps at a time, merge."""

lengths = pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])


def seeds(count: int, *, long: bool) -> range:
    return range(count, count * (1 + TIMES_LONG)) if long else range(count)


def world_of(seed: int, name: str = "sweep") -> World:
    needs = ALGORITHMS[name]
    shape = Shape(
        sources=2 + seed % 7, updates=4 + seed % 9, keyed=needs.needs_keys, one_source=needs.needs_one_source
    )
    return random_world(seed, shape)


def hiding(world: World, seed: int) -> World:
    return replace(world, hidden=6.0) if seed % 3 == 0 else world


def check(make: Callable[[JoinView], Machine], seed: int) -> tuple[History, Level]:
    world = hiding(world_of(seed), seed)
    history = simulate(world, make(world.view), seed)
    assert history.halted is None
    return history, level_of(history)


@lengths
@pytest.mark.parametrize("options", OPTIONS)
def test_sweep_is_complete(options: tuple[bool, int, bool], long: bool) -> None:
    parallel, pipeline, merge = options

    def make(view: JoinView) -> Machine:
        return Sweep(view, parallel=parallel, pipeline=pipeline, merge=merge)

    for number in seeds(100, long=long):
        seed = len(OPTIONS) * number + OPTIONS.index(options)  # other worlds for each
        history, level = check(make, seed)
        assert level is Level.COMPLETE, f"seed {seed}"
        deltas = sum(len(update.changes) for update in history.delivered)
        others = len(history.view.relations) - 1
        assert history.queries == deltas * others, f"seed {seed}: one query for each other relation"


@lengths
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_nested_sweep_is_strongly_consistent(limit: int, long: bool) -> None:
    for seed in seeds(120, long=long):
        _, level = check(lambda view: NestedSweep(view, limit=limit), seed)
        assert level >= Level.STRONG, f"seed {seed}"


@lengths
@pytest.mark.parametrize(("name", "runs"), [("eca", 220), ("strobe", 260), ("c-strobe", 260)])
def test_the_others_keep_their_promises(name: str, runs: int, long: bool) -> None:
    for seed in seeds(runs, long=long):
        history = simulate_algorithm(name, world_of(seed, name), seed)
        assert history.halted is None
        assert level_of(history) >= ALGORITHMS[name].promises, f"seed {seed}"


@lengths
def test_the_naive_algorithm_is_caught(long: bool) -> None:
    runs = seeds(100, long=long)
    levels = [level_of(simulate_algorithm("naive", world_of(seed), seed)) for seed in runs]
    assert levels.count(Level.NONE) > len(levels) / 2


def test_under_load_nested_sweep_asks_less_than_sweep() -> None:
    asked = {"sweep": 0, "nested-sweep": 0}
    tuples = {"sweep": 0, "nested-sweep": 0}
    for seed in range(30):
        shape = Shape(sources=5, updates=30, global_transactions=False, pace=0.3)
        for name in asked:
            history = simulate_algorithm(name, random_world(seed, shape), seed)
            asked[name] += history.queries
            tuples[name] += history.tuples
    assert asked["nested-sweep"] < 0.7 * asked["sweep"]
    assert tuples["nested-sweep"] < tuples["sweep"]


@lengths
@pytest.mark.parametrize("name", ["sweep", "nested-sweep", "eca", "strobe", "c-strobe"])
def test_what_goes_wrong_is_noticed_or_does_no_harm(name: str, long: bool) -> None:
    noticed = 0
    for seed in seeds(60, long=long):
        world = world_of(seed, name)
        fault = random_fault(Random(seed), world.view.sources)
        history = simulate_algorithm(name, world, seed, [fault])
        if history.halted is None:
            assert level_of(history) >= ALGORITHMS[name].promises, f"seed {seed}: {fault}"
        else:
            noticed += 1
            assert history.halted.code.startswith("VK-SWEEP-")
            forgot = isinstance(fault, Death) and fault.forgets  # what was published is true no longer
            assert forgot or is_in_order(history), f"seed {seed}: {fault}"
    assert noticed > 20


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_depends_on_nothing_but_its_seed(name: str) -> None:
    one, two = (simulate_algorithm(name, world_of(5, name), 5) for _ in range(2))
    assert one.events == two.events
