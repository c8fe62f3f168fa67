"""The lease of a process that died: of this machine it can be known, and need not be waited for."""

from __future__ import annotations

import logging
import os
import re
import socket

from viewkeeper.ledger import Ledger

logger = logging.getLogger("viewkeeper.service")

_HOLDER = re.compile(r".*@(?P<host>.+) pid (?P<pid>\d+)")


def evict_the_dead(ledger: Ledger, *, just_started: bool = False) -> None:
    """Take the lease from a process of this machine that is no more. It could have published nothing since:
    whoever holds the lease next has a larger token. ``just_started``: this process holds no lease, so one in
    its name is of another that had its number, as in a container."""
    held = ledger.holder()
    found = _HOLDER.fullmatch(held.holder) if held is not None else None
    if held is None or found is None or found["host"] != socket.gethostname():
        return
    pid = int(found["pid"])
    if (just_started and pid == os.getpid()) or not _is_alive(pid):
        logger.info("takes over from %s, which is gone", held.holder)
        ledger.release(held)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
