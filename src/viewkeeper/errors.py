"""Every error that viewkeeper raises: one tree, a stable code, and the next thing to do.

A code never changes its meaning once it is released; scripts may match on it. The message names the
object concerned, and the hint says what a person can do about it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """Where in a SQL text something stands: 1-based line and column, and 0-based offsets."""

    line: int
    column: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def words_of(error: BaseException) -> str:
    """What an error says; nothing, if it would ask a JVM that is gone."""
    try:
        return str(error)
    except Exception:
        return ""


def position_at(text: str, start: int, end: int | None = None) -> Position:
    """The position of ``text[start:end]``.

    >>> str(position_at("SELECT a\\nFROM t", 14))
    'line 2, column 6'
    """
    before = text[:start]
    line = before.count("\n") + 1
    column = start - (before.rfind("\n") + 1) + 1
    return Position(line, column, start, start if end is None else end)


class ViewkeeperError(Exception):
    """The root of all our errors: ``code`` is stable, ``hint`` is the next thing to do."""

    code = "VK-INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        position: Position | None = None,
    ) -> None:
        if code is not None:
            self.code = code
        self.message = message
        self.hint = hint
        self.position = position
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f" ({self.position})" if self.position else ""
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"[{self.code}] {self.message}{where}{hint}"


class DefinitionError(ViewkeeperError):
    """A view, source or project is not defined well; nothing was changed."""

    code = "VK-DEFINITION"


class NotFoundError(DefinitionError):
    """A name that was given does not exist."""

    code = "VK-NOT-FOUND"


class SourceError(ViewkeeperError):
    """A source cannot be read, or can no longer tell what changed."""

    code = "VK-SOURCE"


class LedgerError(ViewkeeperError):
    """The ledger cannot be read or written."""

    code = "VK-LEDGER"


class LeaseError(LedgerError):
    """Somebody else is refreshing, or our lease was taken over."""

    code = "VK-LEASE-HELD"


class RefreshError(ViewkeeperError):
    """An epoch was given up; every view is as it was. ``view``: the one that it failed for, if known."""

    code = "VK-REFRESH"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, view: str | None = None
    ) -> None:
        self.view = view
        super().__init__(message, code=code, hint=hint)


class SetupError(ViewkeeperError):
    """The machine, the session or the catalog lacks something that is needed."""

    code = "VK-SETUP"
