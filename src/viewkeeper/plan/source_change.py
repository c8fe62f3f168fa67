"""A source's change as the planner sees it: sizes, and a SQL text on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class SourceChange(Protocol):
    """What the planner asks of a change; every source's change answers it."""

    @property
    def inserted(self) -> int: ...
    @property
    def deleted(self) -> int: ...
    @property
    def passed_over(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    def statements(self, columns: Sequence[str]) -> tuple[str, ...]: ...
