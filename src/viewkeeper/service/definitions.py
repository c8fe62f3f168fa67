"""The views as a project's files define them: applied at the start, and whenever one of the files changes."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from viewkeeper.define.project import load_project
from viewkeeper.errors import DefinitionError, LeaseError, LedgerError, SetupError, ViewkeeperError
from viewkeeper.service.backoff import pause_after
from viewkeeper.service.watching import fingerprint
from viewkeeper.warehouse import Warehouse

logger = logging.getLogger("viewkeeper.service")

_BUSY_SECONDS = 2.0


class Definitions:
    """A project, as it was read last, and when it is to be applied."""

    def __init__(self, folder: Path) -> None:
        self._seen = fingerprint(folder)  # before they are read: what is edited from here on comes later
        self.project = load_project(folder)
        self.wait = False
        """Somebody else has the lease: they are applied when it is free."""
        self.failed = False
        """Whether they could not be applied once, though there is no mistake in them."""
        self._apply_at: float | None = 0.0
        self._failures = 0

    def are_due(self) -> bool:
        """Whether a file changed, or what could not be done is to be tried again."""
        seen = fingerprint(self.project.folder)
        if seen != self._seen:
            self._seen = seen
            self._apply_at = 0.0
        return self._apply_at is not None and time.monotonic() >= self._apply_at

    def apply(self, warehouse: Warehouse, *, at_start: bool = False) -> list[str]:
        """Bring the warehouse to what the files define; what was changed. Files with a mistake in them change
        nothing, and are an error only at the start."""
        self._apply_at, self.wait = None, False
        try:
            return self._applied(warehouse, at_start=at_start)
        except LeaseError:
            self._apply_at, self.wait = time.monotonic() + _BUSY_SECONDS, True
            if at_start:
                logger.info("another refresh is running; the definitions are applied after it")
        except LedgerError:
            self._apply_at = time.monotonic() + _BUSY_SECONDS
            raise
        except (DefinitionError, SetupError) as error:
            if at_start:
                raise
            logger.error("the views are left as they were: %s", error, extra={"code": error.code})
        except ViewkeeperError as error:
            self._failures += 1
            self.failed = True
            pause = pause_after(self._failures, self.project.settings.service.backoff)
            self._apply_at = time.monotonic() + pause
            logger.error("the definitions are applied later: %s", error, extra={"code": error.code})
        return []

    def _applied(self, warehouse: Warehouse, *, at_start: bool) -> list[str]:
        project = self.project if at_start else load_project(self.project.folder)
        for name in ("service", "connection"):
            if getattr(project.settings, name) != getattr(self.project.settings, name):
                logger.warning("%s: changed in viewkeeper.yml; restart the service for it", name)
        changes = warehouse.apply(project)
        self.project = project
        self._failures = 0
        return changes
