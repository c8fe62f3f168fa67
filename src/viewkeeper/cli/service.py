"""``viewkeeper run`` and ``viewkeeper resume``.

The first SIGTERM or Ctrl-C lets the running epoch finish within the grace period; a second one, or the end of
the period, interrupts it: it is given up as by Ctrl-C, and every view is as it was.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from viewkeeper.cli.commands import open_warehouse
from viewkeeper.cli.opening import opened_overview
from viewkeeper.cli.output import Output
from viewkeeper.define.project import find_project, load_project
from viewkeeper.errors import SetupError

logger = logging.getLogger("viewkeeper.service")


def run(folder: Path | None, address: str | None, style: str | None, *, once: bool, debug: bool) -> int:
    """Keep the views of a project fresh until told to stop."""
    try:
        from viewkeeper.service.logs import EventLog, set_up
        from viewkeeper.service.probes import Server, application, is_loopback, listen
        from viewkeeper.service.service import Service
        from viewkeeper.service.state import ServiceState
    except ImportError as error:
        raise SetupError(
            f"the service needs the package {error.name}",
            code="VK-SETUP-EXTRA",
            hint="pip install 'viewkeeper[service]'",
        ) from error
    project = load_project(folder or find_project(Path.cwd()))
    settings = project.settings.service
    token = settings.token.resolve() if settings.token else None
    where = address or settings.listen
    listening = listen(where, guarded=token is not None)
    log, state, stop = EventLog(), ServiceState(), threading.Event()
    chosen = style or ("text" if sys.stderr.isatty() else "json")
    set_up("json" if chosen == "json" else "text", log, debug=debug)
    loopback = is_loopback(listening.getsockname()[0])
    server = Server(application(state, token, loopback=loopback), listening)
    server.start()
    signals = Signals(stop, settings.grace)
    signals.install()
    try:
        service = Service(project.folder, open_warehouse, state, log, stop)
        host, port = listening.getsockname()[:2]
        logger.info("starts; /health, /ready and /metrics are at http://%s:%s", host, port)
        ended = service.run(once=once, started=signals.install)
    except KeyboardInterrupt:
        logger.warning("interrupted; the running epoch was given up")
        return 0
    finally:
        signals.remove()
        server.stop()
    logger.info("ended")
    return 0 if ended.ok else 1


class Signals:
    """Turns signals into a wish to stop, and in the end into an interruption."""

    def __init__(self, stop: threading.Event, grace: float) -> None:
        self._stop = stop
        self._grace = grace

    def install(self) -> None:
        """Again once Spark runs: it puts a handler of its own in the place of the one for Ctrl-C."""
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, self._asked)
        signal.signal(signal.SIGALRM, self._grace_is_over)

    def remove(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt
        self._stop.set()
        signal.setitimer(signal.ITIMER_REAL, self._grace)

    def _grace_is_over(self, number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt


def resume(output: Output, folder: Path | None, view: str) -> int:
    """Let the service try a view again."""
    with opened_overview(folder) as (_, overview):
        name = overview.full_name(view)
        was_held = overview.resume(view)
    told = f"{name} is tried again." if was_held else f"{name} was neither failing nor suspended."
    output.answer({"view": name, "resumed": was_held}, told)
    return 0
