"""What all algorithms have in common: they are told a message, and say what follows from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from viewkeeper.integrate.messages import Answer, Output, Update


class Machine(Protocol):
    """A state machine without I/O: it never waits, and depends on nothing but its messages."""

    def receive(self, message: Update | Answer) -> Sequence[Output]:
        """Take one message, in the order of arrival; what is to be sent and published, in order."""
        ...

    @property
    def asked(self) -> Collection[int]:
        """The queries that wait for an answer."""
        ...

    @property
    def incomplete(self) -> Collection[str]:
        """The global transactions of which a part has not arrived."""
        ...
