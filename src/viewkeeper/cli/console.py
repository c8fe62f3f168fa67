"""``viewkeeper serve``: the console in the browser."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.cli.commands import open_warehouse
from viewkeeper.cli.opening import find_place, ledger_url
from viewkeeper.cli.output import Output
from viewkeeper.define.place import find_project
from viewkeeper.define.project import load_project
from viewkeeper.errors import SetupError
from viewkeeper.ledger import Ledger
from viewkeeper.listening import in_url
from viewkeeper.survey import Survey


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says."""

    listen: str
    allow_actions: bool = False
    allow_sql: bool = False
    preview: bool = False
    hosts: Sequence[str] = ()
    open_browser: bool = False


def serve(output: Output, folder: Path | None, wanted: Wanted) -> int:
    """Serve until interrupted."""
    project = load_project(folder or find_project(Path.cwd()))
    try:
        from viewkeeper.web import Feed, create_app, serving
        from viewkeeper.web.doing import WarehouseActions
        from viewkeeper.web.pages import Leave
    except ImportError as error:
        raise SetupError(
            f"the console needs a package that is missing: {error.name}",
            code="VK-SETUP-WEB",
            hint="pip install 'viewkeeper[web]'",
        ) from error
    listen = serving.Listen.of(wanted.listen)
    needed = wanted.allow_actions or wanted.allow_sql
    token, made = serving.checked_token(listen, os.environ.get("VIEWKEEPER_TOKEN") or None, needed=needed)
    listening = serving.bound(listen)
    survey = Survey(Ledger.open(ledger_url(find_place(folder), create=True)), project.settings)
    feed = Feed(survey)
    actions = WarehouseActions(lambda: open_warehouse(project, feed.publish))
    url = listen.url(listening.getsockname()[1])
    app = create_app(
        survey,
        feed=feed,
        actions=actions if needed or wanted.preview else None,
        leave=Leave(wanted.allow_actions, wanted.preview, wanted.allow_sql),
        token=token,
        token_everywhere=not listen.is_loopback,
        hosts=(*wanted.hosts, *(() if listen.is_loopback else [in_url(listen.host)])),
        title=project.name,
    )

    def ready() -> None:
        output.note(f"The console of {project.name}: {url}")
        if made:
            output.note(f"To refresh and verify, log in with this token, which is shown only here: {token}")
        output.note("Ctrl-C stops it.")
        if wanted.open_browser:
            webbrowser.open(url)

    try:
        serving.serve(app, listening, ready)
    finally:
        actions.close()
    return 0
