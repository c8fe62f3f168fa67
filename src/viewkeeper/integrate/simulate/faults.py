"""What breaks the assumptions of the algorithms, on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import TypeAlias


class Mishap(Enum):
    """What can happen to a message."""

    LOST = "lost"
    DOUBLED = "doubled"
    REORDERED = "reordered"


@dataclass(frozen=True, slots=True)
class ChannelFault:
    """It happens to the n-th message from a source to the warehouse, or ``to_source``."""

    mishap: Mishap
    source: str
    nth: int
    to_source: bool = False


@dataclass(frozen=True, slots=True)
class Death:
    """A source is down from a moment to another; what it is asked meanwhile is lost, and what it would have
    committed is committed afterwards. ``forgets``: so many of its last commits are gone when it is back."""

    source: str
    at: float
    until: float
    forgets: int = 0


Fault: TypeAlias = ChannelFault | Death


def random_fault(random: Random, sources: tuple[str, ...]) -> Fault:
    """Any of them."""
    source = random.choice(sources)
    if random.random() < 0.4:
        at = random.random() * 6
        return Death(source, at, at + random.random() * 3, random.randrange(3))
    return ChannelFault(
        random.choice(list(Mishap)), source, random.randint(1, 8), to_source=random.random() < 0.3
    )
