"""One run: events in the order of time, until nothing is under way any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import TypeAlias

from viewkeeper.integrate.algorithms import ALGORITHMS
from viewkeeper.integrate.bags import Bag, add_to
from viewkeeper.integrate.errors import IntegrationError
from viewkeeper.integrate.integrator import Integrator
from viewkeeper.integrate.machine import Machine
from viewkeeper.integrate.messages import (
    Answer,
    Mark,
    Message,
    Output,
    Query,
    SumQuery,
    Update,
    UpdateId,
    ViewChange,
)
from viewkeeper.integrate.simulate.channels import Channel
from viewkeeper.integrate.simulate.faults import ChannelFault, Death, Fault
from viewkeeper.integrate.simulate.history import History
from viewkeeper.integrate.simulate.lattice import evaluate
from viewkeeper.integrate.simulate.sources import Source
from viewkeeper.integrate.simulate.worlds import Commit, World

_RETAKE = 0.1
"""A source that does not show yet what was published when it was asked is asked again after so long."""


def simulate(
    world: World, machine: Machine, seed: int = 0, faults: Sequence[Fault] = (), *, keep: bool = True
) -> History:
    """Run a machine in a world. ``keep``: what happened is kept for the checker, else only counted."""
    return _Simulation(world, machine, Random(seed), faults, keep=keep).run()


def simulate_algorithm(name: str, world: World, seed: int = 0, faults: Sequence[Fault] = ()) -> History:
    """Run an algorithm, with its default options, by its name."""
    machine = ALGORITHMS[name].make(world.view, evaluate(world.view, world.contents))
    return simulate(world, machine, seed, faults)


@dataclass(frozen=True, slots=True)
class _Revival:
    death: Death


@dataclass(frozen=True, slots=True)
class _Shown:
    update: Update


_Happening: TypeAlias = Commit | Death | _Revival | _Shown | Message | Query | SumQuery


class _Simulation:
    def __init__(
        self, world: World, machine: Machine, random: Random, faults: Sequence[Fault], *, keep: bool
    ) -> None:
        self._world = world
        self._random = random
        self._keep = keep
        self._integrator = Integrator(world.view, machine)
        names = world.view.sources
        self._sources = {
            name: Source(world.view, name, world.contents, shows_later=world.hidden > 0) for name in names
        }
        self._to_warehouse = {name: self._channel(name, faults, to_source=False) for name in names}
        self._to_source = {name: self._channel(name, faults, to_source=True) for name in names}
        self._down: dict[str, float] = {}
        self._commits: Iterator[Commit] = iter(world.commits)
        self._committed: dict[UpdateId, float] = {}
        self._published: dict[str, set[int]] = {name: set() for name in names}
        self._owed: dict[int, frozenset[int]] = {}
        self._agenda: list[tuple[float, int, _Happening]] = []
        self._entries = 0
        self._now = 0.0
        self._history = History(world.view, world.contents, logs={name: [] for name in names})
        for fault in faults:
            if isinstance(fault, Death):
                self._enter(fault.at, fault)
                self._enter(fault.until, _Revival(fault))

    def run(self) -> History:
        try:
            self._run_until_quiet()
            for source in self._sources.values():
                self._send(self._to_warehouse[source.name], Mark(source.name, source.sequence))
            self._run_until_quiet()
            self._integrator.check_quiet()
        except IntegrationError as error:
            self._history.halted = error
        self._history.ended = self._now
        for source in self._sources.values():
            for name, table in source.tables.items():
                self._history.final[name] = Bag(table.relation.columns, table.rows)
        return self._history

    def _run_until_quiet(self) -> None:
        commit = next(self._commits, None)
        while commit is not None or self._agenda:
            if commit is not None and (not self._agenda or commit.at <= self._agenda[0][0]):
                self._now, happening = commit.at, commit
                commit = next(self._commits, None)
                self._commit(happening)
            else:
                self._now, _, due = heappop(self._agenda)
                self._let_happen(due)

    def _let_happen(self, due: _Happening) -> None:
        match due:
            case Update() | Answer() | Mark():
                self._arrive(due)
            case Query() | SumQuery():
                self._ask(due)
            case Commit():
                self._commit(due)
            case _Shown(update):
                self._sources[update.source].show(update)
            case Death():
                self._down[due.source] = due.until
            case _Revival(death):
                self._revive(death)

    def _commit(self, commit: Commit) -> None:
        if commit.source in self._down:
            self._enter(self._down[commit.source], commit)
            return
        update = self._sources[commit.source].commit(commit)
        self._committed[update.id] = self._now
        self._history.updates += 1
        if self._keep:
            self._history.logs[update.source].append(update)
        if self._world.hidden:
            self._enter(self._now + self._random.random() * self._world.hidden, _Shown(update))
        self._send(self._to_warehouse[update.source], update)

    def _ask(self, query: Query | SumQuery) -> None:
        source = self._sources[query.source]
        if source.name in self._down:
            return
        if not source.shows(self._owed.get(query.number, ())):
            self._enter(self._now + _RETAKE, query)
            return
        self._send(self._to_warehouse[source.name], source.answer(query))

    def _arrive(self, message: Message) -> None:
        if self._keep:
            self._history.events.append((self._now, message))
            if isinstance(message, Update):
                self._history.delivered.append(message)
        for output in self._integrator.receive(message):
            self._put_out(output)

    def _put_out(self, output: Output) -> None:
        history = self._history
        if isinstance(output, (Query, SumQuery)):
            history.queries += 1
            history.tuples += output.tuples
            history.largest = max(history.largest, output.tuples)
            if self._world.hidden:
                self._owed[output.number] = frozenset(self._published[output.source])
            self._send(self._to_source[output.source], output)
        elif isinstance(output, ViewChange):
            history.steps += 1
            add_to(history.rows, output.rows.rows)
            for update in output.updates:
                history.waited += self._now - self._committed.pop(update)
                if self._world.hidden:
                    self._published[update[0]].add(update[1])
            if self._keep:
                history.changes.append(output)
        if self._keep:
            history.events.append((self._now, output))

    def _revive(self, death: Death) -> None:
        del self._down[death.source]
        log = self._history.logs[death.source]
        kept = max(0, len(log) - death.forgets)
        self._sources[death.source].forget(log[kept:])
        del log[kept:]

    def _send(self, channel: Channel, message: Message | Query | SumQuery) -> None:
        self._history.messages += 1
        for arrival in channel.arrivals(self._now):
            self._enter(arrival, message)

    def _enter(self, at: float, happening: _Happening) -> None:
        self._entries += 1
        heappush(self._agenda, (at, self._entries, happening))

    def _channel(self, name: str, faults: Sequence[Fault], *, to_source: bool) -> Channel:
        mishaps = {
            fault.nth: fault.mishap
            for fault in faults
            if isinstance(fault, ChannelFault) and fault.source == name and fault.to_source is to_source
        }
        return Channel(self._random, self._world.fastest, self._world.slowest, mishaps)
