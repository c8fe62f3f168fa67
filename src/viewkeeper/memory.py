"""How much memory the embedded Spark gets, and how much there is."""

from __future__ import annotations

import os
import re

from viewkeeper.errors import SetupError

_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def driver_memory() -> str:
    """``VIEWKEEPER_DRIVER_MEMORY``, else half of the machine's memory and at most 8 GiB."""
    asked = os.environ.get("VIEWKEEPER_DRIVER_MEMORY")
    if asked:
        if not re.fullmatch(r"\d+[kmgt]b?", asked, re.IGNORECASE):
            raise SetupError(
                f"VIEWKEEPER_DRIVER_MEMORY is {asked!r}, which is not an amount of memory",
                code="VK-SETUP-MEMORY",
                hint="Write a number and a unit, such as 2g or 900m.",
            )
        return asked
    total = machine_memory()
    return "2g" if total is None else f"{min(8 * 1024, max(1024, total // 2**21))}m"


def machine_memory() -> int | None:
    """The bytes of memory that this machine has; ``None`` where it cannot be asked."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def in_bytes(amount: str) -> int:
    """An amount as Spark writes it.

    >>> in_bytes("900m"), in_bytes("2GB")
    (943718400, 2147483648)
    """
    number, unit = amount.lower().removesuffix("b")[:-1], amount.lower().removesuffix("b")[-1]
    return int(number) * _UNITS[unit]
