"""ECA (Zhuge et al., SIGMOD 1995; Section 3): one source has all the relations. Strongly consistent.

A query is a sum of terms, which the source evaluates in one state. The queries that wait for an answer will
see the new update too; the next query takes that out again. With Q⟨ΔR⟩ for the terms of Q that read R, with
ΔR in its place, and UQS for the unanswered queries:

    Qₖ = V⟨ΔR⟩ − Σ {Q⟨ΔR⟩ : Q ∈ UQS}

Answers are collected, and published when no query is left open. Every open query has terms to be taken out
again, and so do those that do so: queries grow with the square of the updates that interfere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.messages import Answer, Output, SumQuery, Term, Update, UpdateId, ViewChange
from viewkeeper.integrate.views import JoinView


class Eca:
    """The state machine: every update is a query at once."""

    incomplete: Sequence[str] = ()  # with one source, no transaction has a part elsewhere

    def __init__(self, view: JoinView) -> None:
        if len(view.sources) != 1:
            raise DefinitionError(
                f"ECA needs all relations in one source; they are in {', '.join(view.sources)}",
                code="VK-SWEEP-ONE-SOURCE",
                hint="SWEEP and Nested SWEEP work with any number of sources.",
            )
        self._view = view
        self._unanswered: dict[int, SumQuery] = {}
        self._covered: list[UpdateId] = []
        self._collected = Bag(view.output, {})
        self._queries = 0

    @property
    def asked(self) -> Collection[int]:
        return self._unanswered.keys()

    def receive(self, message: Update | Answer) -> list[Output]:
        """Take an update or an answer, and go on as far as that leads."""
        outputs: list[Output] = []
        if isinstance(message, Update):
            self._covered.append(message.id)
            if message.changes:
                outputs.append(self._ask(message))
        else:
            del self._unanswered[message.query]
            self._collected = self._collected.plus(self._view.finish(message.rows))
        if self._covered and not self._unanswered:
            outputs.append(ViewChange(tuple(self._covered), self._collected))
            self._covered, self._collected = [], Bag(self._view.output, {})
        return outputs

    def _ask(self, update: Update) -> SumQuery:
        open_terms = [term for query in self._unanswered.values() for term in query.terms]
        terms: list[Term] = []
        for relation, rows in update.changes.items():
            # The changes of one transaction come one after the other: the first is already being asked about.
            errors = [
                Term(-term.sign, {**term.changes, relation: rows})
                for term in (*open_terms, *terms)
                if relation not in term.changes
            ]
            terms += [Term(1, {relation: rows}), *errors]
        self._queries += 1
        query = SumQuery(self._queries, update.source, tuple(terms))
        self._unanswered[query.number] = query
        return query
