"""An algorithm behind channels that are watched.

The algorithms are right if nothing is lost, doubled or reordered between a source and here, and no source
goes back in time (Section 2). That is not hoped for but checked: every source numbers its messages, and what
does not fit halts the integrator with a message. The view stays as it was last published.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.integrate.errors import IntegrationError
from viewkeeper.integrate.machine import Machine
from viewkeeper.integrate.messages import Answer, Mark, Message, Output, Update
from viewkeeper.integrate.views import JoinView

_AGAIN = "Create the view again: it is then filled from the sources as they are."


class Integrator:
    """Checks each message, and hands it to the machine. ``received``: the last number of each source that the
    machine knows of."""

    def __init__(self, view: JoinView, machine: Machine) -> None:
        self._machine = machine
        self._relations = {relation.name: relation for relation in view.relations}
        self.received: dict[str, int] = dict.fromkeys(view.sources, 0)

    def receive(self, message: Message) -> Sequence[Output]:
        """Take the next message of a source; what is to be sent and published, in order."""
        if message.source not in self.received:
            raise IntegrationError(
                f"a message of {message.source}, which the view does not read", code="VK-SWEEP-UNKNOWN"
            )
        if isinstance(message, Mark):
            self._check_mark(message)
            return ()
        self._check_sequence(message)
        if isinstance(message, Answer):
            self._check_answer(message)
        else:
            self._check_update(message)
        self.received[message.source] = message.sequence
        return self._machine.receive(message)

    def check_quiet(self) -> None:
        """When nothing is under way any more, nothing may be owed."""
        if self._machine.asked:
            raise IntegrationError(
                f"query {min(self._machine.asked)} was never answered",
                code="VK-SWEEP-UNANSWERED",
                hint="A source did not get the query, or does not answer. " + _AGAIN,
            )
        if self._machine.incomplete:
            raise IntegrationError(
                f"transaction {min(self._machine.incomplete)} came in part only",
                code="VK-SWEEP-INCOMPLETE",
                hint="A source that takes part in it did not commit it, or has not sent it yet.",
            )

    def _check_sequence(self, message: Update | Answer) -> None:
        last = self.received[message.source]
        if message.sequence > last + 1:
            raise _gap(message.source, last + 1, message.sequence)
        if message.sequence <= last:
            raise IntegrationError(
                f"message {message.sequence} of {message.source} came again after {last}: it was doubled, or "
                f"{message.source} came back with an older state",
                code="VK-SWEEP-REPEATED",
                hint=_AGAIN,
            )

    def _check_mark(self, mark: Mark) -> None:
        last = self.received[mark.source]
        if mark.sequence > last:
            raise _gap(mark.source, last + 1, mark.sequence)
        if mark.sequence < last:
            raise IntegrationError(
                f"{mark.source} says that it has sent {mark.sequence} messages, but {last} were received: "
                "it came back with an older state",
                code="VK-SWEEP-OLDER",
                hint=_AGAIN,
            )

    def _check_update(self, update: Update) -> None:
        for name in update.changes:
            if name not in self._relations or self._relations[name].source != update.source:
                raise IntegrationError(
                    f"{update.source} tells of changes of {name}, which the view does not read there",
                    code="VK-SWEEP-UNKNOWN",
                )

    def _check_answer(self, answer: Answer) -> None:
        if answer.query not in self._machine.asked:
            raise IntegrationError(
                f"{answer.source} answers query {answer.query}, which is not open: the query was doubled",
                code="VK-SWEEP-UNASKED",
                hint=_AGAIN,
            )
        if answer.contains and max(answer.contains) >= answer.sequence:
            raise IntegrationError(
                f"an answer of {answer.source} contains update {max(answer.contains)}, which has not arrived",
                code="VK-SWEEP-UNKNOWN",
                hint="Hold the answer back until the updates that it contains have been handed in.",
            )


def _gap(source: str, expected: int, found: int) -> IntegrationError:
    return IntegrationError(
        f"message {expected} of {source} is missing; it is at {found}",
        code="VK-SWEEP-GAP",
        hint=_AGAIN,
    )
