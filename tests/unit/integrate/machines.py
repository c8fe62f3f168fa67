"""Machines by hand: a source that answers from given contents, and what a machine gives out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viewkeeper.integrate.bags import Bag, Row
from viewkeeper.integrate.machine import Machine
from viewkeeper.integrate.messages import Answer, Output, Query, Update, ViewChange
from viewkeeper.integrate.views import JoinView, Relation


def chain(*columns: str, output: str) -> JoinView:
    """Relations r1, r2, … with one letter for each column, each in a source of its own."""
    relations = tuple(
        Relation(f"r{at}", tuple(letters), f"s{at}") for at, letters in enumerate(columns, start=1)
    )
    return JoinView(relations, tuple(output))


def update(view: JoinView, sequence: int, name: str, rows: Mapping[Row, int]) -> Update:
    relation = next(each for each in view.relations if each.name == name)
    return Update(relation.source, sequence, {name: Bag(relation.columns, rows)})


def queries(outputs: Sequence[Output]) -> list[Query]:
    return [output for output in outputs if isinstance(output, Query)]


def changes(outputs: Sequence[Output]) -> list[dict[Row, int]]:
    return [dict(output.rows.rows) for output in outputs if isinstance(output, ViewChange)]


def answer(query: Query, rows: Mapping[Row, int], contains: Sequence[int] | None = None) -> Answer:
    """The query, answered by a relation with these rows."""
    joined = query.partial.join(Bag(query.relation.columns, rows))
    return Answer(query.source, 0, query.number, joined, None if contains is None else frozenset(contains))


def run(
    machine: Machine, outputs: Sequence[Output], contents: Mapping[str, Mapping[Row, int]]
) -> list[Output]:
    """Answer all queries, until none is left; everything that came out."""
    every = list(outputs)
    for output in every:
        if isinstance(output, Query):
            every += machine.receive(answer(output, contents[output.relation.name]))
    return every
