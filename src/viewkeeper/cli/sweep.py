"""``viewkeeper sweep trace``: a simulated run of an algorithm, message by message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from viewkeeper.cli.output import Output
from viewkeeper.errors import NotFoundError
from viewkeeper.integrate.algorithms import ALGORITHMS, Algorithm
from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.messages import (
    Answer,
    Compensation,
    Mark,
    Query,
    SumQuery,
    Term,
    Update,
    UpdateId,
    ViewChange,
)
from viewkeeper.integrate.simulate.checker import level_of
from viewkeeper.integrate.simulate.history import Event, History
from viewkeeper.integrate.simulate.lattice import evaluate
from viewkeeper.integrate.simulate.random_worlds import Shape, random_world
from viewkeeper.integrate.simulate.simulation import simulate_algorithm
from viewkeeper.integrate.simulate.worlds import World, figure_5
from viewkeeper.integrate.views import JoinView


def trace(output: Output, algorithm: str, seed: int | None, sources: int, updates: int) -> int:
    """Print a run; 1 if it did not keep what the algorithm promises."""
    chosen = _chosen(algorithm)
    world = _world(chosen, seed, sources, updates)
    history = simulate_algorithm(algorithm, world, seed or 0)
    level = level_of(history)
    narrator = _Narrator(history)
    lines = [*narrator.beginning(), "", *narrator.story(), ""]
    asked = f"{_several(history.queries, 'query', 'queries')} with {_several(history.tuples, 'row')}"
    changed = f"{_several(history.steps, 'change')} of the view, which was {level}"
    closing = f"{algorithm}: {_several(history.updates, 'update')}, {asked}, {changed}."
    document = {
        "algorithm": algorithm,
        "level": str(level),
        "updates": history.updates,
        "queries": history.queries,
        "rows_in_queries": history.tuples,
        "events": [_as_document(event) for event in history.events],
    }
    output.answer(document, "\n".join(lines), closing)
    return 0 if level >= chosen.promises else 1


def _chosen(name: str) -> Algorithm:
    if name not in ALGORITHMS:
        raise NotFoundError(f"there is no algorithm {name}", hint=f"There are {', '.join(ALGORITHMS)}.")
    return ALGORITHMS[name]


def _world(algorithm: Algorithm, seed: int | None, sources: int, updates: int) -> World:
    keyed, one_source = algorithm.needs_keys, algorithm.needs_one_source
    if seed is None:
        return figure_5(keyed=keyed, one_source=one_source)
    return random_world(seed, Shape(sources, updates, keyed=keyed, one_source=one_source))


class _Narrator:
    """Tells a run as the paper does: −(2,3) for a row that goes, (5,6)[2] for one that is there twice.
    Partial results have their columns in the order of the relations, however they were found."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._view = history.view
        self._columns = tuple(
            dict.fromkeys(column for relation in self._view.relations for column in relation.columns)
        )
        self._contents = evaluate(self._view, history.contents)
        self._answer = Bag((), {})

    def beginning(self) -> Iterator[str]:
        yield f"V = {_definition(self._view)}"
        for relation in self._view.relations:
            contents = self._history.contents[relation.name]
            columns = ", ".join(relation.columns)
            yield f"  {relation.name}({columns}) at {relation.source}: {_counted(contents)}"
        yield f"  V: {_counted(self._contents)}"

    def story(self) -> Iterator[str]:
        for at, happening in self._history.events:
            match happening:
                case Update():
                    yield f"{at:6.2f}  {_name(happening.id)} arrives: {_changes(happening)}"
                case Answer(query=number, rows=rows):
                    self._answer = rows
                    yield f"{at:6.2f}  {happening.source} answers query {number}: {self._partial(rows)}"
                case Compensation():
                    yield from self._compensation(happening)
                case Query(number, relation, partial):
                    asked = f"{self._partial(partial)} ⋈ {relation.name}"
                    yield f"{at:6.2f}  query {number} to {relation.source}: {asked}"
                case SumQuery(number, source, terms):
                    yield f"{at:6.2f}  query {number} to {source}:"
                    yield from (f"            {self._term(term)}" for term in terms)
                case ViewChange(updates, rows):
                    self._contents = self._contents.plus(rows)
                    names = ", ".join(map(_name, updates))
                    yield f"{at:6.2f}  V changes by {_signed(rows)}, for {names}"
                    yield f"        V: {_counted(self._contents)}"
                case Mark():
                    pass

    def _compensation(self, done: Compensation) -> Iterator[str]:
        names = ", ".join(map(_name, done.updates))
        error = f"{self._partial(done.partial)} ⋈ {_signed(done.changes)} = {self._partial(done.error)}"
        self._answer = self._answer.minus(done.error)
        yield f"        which has {names} too: {error}"
        yield f"        without that: {self._partial(self._answer)}"

    def _term(self, term: Term) -> str:
        parts = [
            _signed(term.changes[relation.name]) if relation.name in term.changes else relation.name
            for relation in self._view.relations
        ]
        return ("+ " if term.sign > 0 else "− ") + " ⋈ ".join(parts)

    def _partial(self, bag: Bag) -> str:
        return _signed(bag.arranged(tuple(column for column in self._columns if column in bag.columns)))


def _definition(view: JoinView) -> str:
    joined = " ⋈ ".join(relation.name for relation in view.relations)
    where = " and ".join(map(str, view.where))
    return f"π[{', '.join(view.output)}] " + (f"σ[{where}] " if where else "") + f"({joined})"


def _several(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _name(update: UpdateId) -> str:
    source, sequence = update
    return f"{source} #{sequence}"


def _counted(bag: Bag) -> str:
    return ", ".join(f"{_row(row)}[{count}]" for row, count in sorted(bag.rows.items(), key=str)) or "∅"


def _changes(update: Update) -> str:
    changes = "; ".join(f"Δ{name} = {_signed(rows)}" for name, rows in update.changes.items())
    part = f", part of transaction {update.transaction.id}" if update.transaction else ""
    return (changes or "nothing that the view reads") + part


def _signed(bag: Bag) -> str:
    return (
        "{" + ", ".join(_signed_row(row, count) for row, count in bag.rows.items()) + "}" if bag.rows else "∅"
    )


def _signed_row(row: Iterable[object], count: int) -> str:
    times = f"[{abs(count)}]" if abs(count) > 1 else ""
    return ("+" if count > 0 else "−") + _row(row) + times


def _row(row: Iterable[object]) -> str:
    return "(" + ",".join("NULL" if value is None else str(value) for value in row) + ")"


def _as_document(event: Event) -> dict[str, Any]:
    at, happening = event
    document: dict[str, Any] = {"at": at, "kind": type(happening).__name__}
    match happening:
        case Update():
            changes = {name: _rows(rows) for name, rows in happening.changes.items()}
            document |= {"update": _name(happening.id), "changes": changes}
        case Answer():
            document |= {"source": happening.source, "query": happening.query, "rows": _rows(happening.rows)}
        case Query():
            document |= {"query": happening.number, "source": happening.source}
            document |= {"relation": happening.relation.name, "partial": _rows(happening.partial)}
        case SumQuery():
            terms = [
                {"sign": term.sign, "changes": {name: _rows(rows) for name, rows in term.changes.items()}}
                for term in happening.terms
            ]
            document |= {"query": happening.number, "source": happening.source, "terms": terms}
        case Compensation():
            document |= {"query": happening.query, "updates": list(map(_name, happening.updates))}
            document |= {"changes": _rows(happening.changes), "error": _rows(happening.error)}
        case ViewChange():
            document |= {"updates": list(map(_name, happening.updates)), "rows": _rows(happening.rows)}
        case Mark():
            document |= {"source": happening.source, "sent": happening.sequence}
    return document


def _rows(bag: Bag) -> list[dict[str, Any]]:
    """Each row with its columns, and how often it comes or goes."""
    return [
        {"row": dict(zip(bag.columns, row, strict=True)), "count": count} for row, count in bag.rows.items()
    ]
