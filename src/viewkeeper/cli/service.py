"""``viewkeeper run`` and ``viewkeeper resume``.

The first SIGTERM or Ctrl-C lets the running epoch finish within the grace period; a second one, or the end of
the period, interrupts it: it is given up as by Ctrl-C, and every view is as it was.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from viewkeeper.cli.commands import open_warehouse
from viewkeeper.cli.opening import find_place, ledger_url, opened_overview
from viewkeeper.cli.output import Output
from viewkeeper.define.project import find_project, load_project
from viewkeeper.errors import SetupError
from viewkeeper.ledger import Ledger
from viewkeeper.listening import in_url, is_loopback
from viewkeeper.survey import Survey

logger = logging.getLogger("viewkeeper.service")


def run(
    folder: Path | None,
    address: str | None,
    style: str | None,
    *,
    once: bool,
    allow_actions: bool,
    debug: bool,
) -> int:
    """Keep the views of a project fresh until told to stop."""
    try:
        from viewkeeper.service.errands import Errands
        from viewkeeper.service.logs import EventLog, set_up
        from viewkeeper.service.probes import OPEN, Server, listen, routes
        from viewkeeper.service.service import Service
        from viewkeeper.service.state import ServiceState
        from viewkeeper.web import Feed, create_app
        from viewkeeper.web.keeping import LedgerPausing, ServiceActions
        from viewkeeper.web.pages import Leave
        from viewkeeper.web.serving import LEAST_TOKEN
    except ImportError as error:
        raise SetupError(
            f"the service needs the package {error.name}",
            code="VK-SETUP-EXTRA",
            hint="pip install 'viewkeeper[service]'",
        ) from error
    project = load_project(folder or find_project(Path.cwd()))
    settings = project.settings.service
    token = settings.token.resolve() if settings.token else os.environ.get("VIEWKEEPER_TOKEN") or None
    if token is not None and len(token) < LEAST_TOKEN:
        raise SetupError(
            f"the token is too short: {LEAST_TOKEN} characters at least",
            code="VK-WEB-TOKEN",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(32))' makes a good one.",
        )
    listening = listen(address or settings.listen, guarded=token is not None)
    log, state, stop, errands = EventLog(), ServiceState(), threading.Event(), Errands()
    chosen = style or ("text" if sys.stderr.isatty() else "json")
    set_up("json" if chosen == "json" else "text", log, debug=debug)
    host, port = listening.getsockname()[:2]
    loopback = is_loopback(host)
    signals = Signals(stop, settings.grace)
    signals.install()
    server = None
    ledger = Ledger.open(ledger_url(find_place(folder), create=True))
    try:
        survey = Survey(ledger, project.settings)
        feed = Feed(survey)
        service = Service(project.folder, open_warehouse, state, log, stop, errands, feed.publish)
        console = create_app(
            survey,
            feed=feed,
            actions=ServiceActions(errands, lambda: service.warehouse) if allow_actions else None,
            pausing=LedgerPausing(ledger),
            leave=Leave(allow_actions),
            token=token,
            token_everywhere=not loopback,
            hosts=[*settings.hosts, in_url(host)],
            extra_routes=routes(state, token),
            open_paths=OPEN,
            title=project.name,
        )
        server = Server(console, listening)
        server.start()
        logger.info(
            "starts; its console, /health, /ready and /metrics are at http://%s:%s", in_url(host), port
        )
        ended = service.run(once=once, started=signals.install)
    except KeyboardInterrupt:
        logger.warning("interrupted; the running epoch was given up")
        return 0
    finally:
        signals.remove()
        if server is not None:
            server.stop()
        ledger.close()
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
