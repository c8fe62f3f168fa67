"""Global transactions, for an algorithm that publishes now and then: not while one is here in part."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.integrate.messages import Update


class OpenTransactions:
    """The global transactions of which some parts have arrived, and some have not."""

    def __init__(self) -> None:
        self._missing: dict[str, set[str]] = {}

    def note(self, update: Update) -> None:
        """A part has come, if it is one."""
        transaction = update.transaction
        if transaction is None:
            return
        missing = self._missing.setdefault(transaction.id, set(transaction.sources))
        missing.discard(update.source)
        if not missing:
            del self._missing[transaction.id]

    @property
    def ids(self) -> Sequence[str]:
        return tuple(self._missing)
