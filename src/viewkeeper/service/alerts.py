"""Somebody is told when something breaks, once; and once again when it is mended.

A command gets the facts as JSON on its standard input and in environment variables, never as part of a
command line that a shell would read; a webhook gets the same JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from viewkeeper.define.fields import Reference
from viewkeeper.define.service_settings import AlertSettings
from viewkeeper.ledger import Trouble
from viewkeeper.service.outbox import Outbox
from viewkeeper.service.posting import post_json

_SAID = 500
_MENDED = "mended: "


@dataclass(frozen=True, slots=True)
class Alert:
    """What somebody is told."""

    state: str
    """``broken`` or ``mended``."""
    kind: str
    view: str
    what: str
    message: str
    project: str
    at: str

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    def to_environment(self) -> dict[str, str]:
        """``VIEWKEEPER_ALERT_STATE`` and so on."""
        told = {f"VIEWKEEPER_ALERT_{name.upper()}": value for name, value in asdict(self).items()}
        return {name: value.replace("\0", "\ufffd") for name, value in told.items()}


class Troubles:
    """What is broken now, beginning with what was known before. Pure: it only says what is to be told."""

    def __init__(
        self, project: str, known: Mapping[Trouble, str] | None = None, untold: Iterable[Trouble] = ()
    ) -> None:
        self._project = project
        self._known: dict[Trouble, str] = dict(known or {})
        self.untold = set(untold)
        """What is known, and could not be told."""

    def now(self, kind: str, broken: Mapping[Trouble, str], at: datetime) -> list[Alert]:
        """All that is broken of a kind, with a message each: what is new in it, and what is mended."""
        known = self.known(kind)
        fresh = [
            self._alert("broken", trouble, said, at)
            for trouble, said in broken.items()
            if trouble not in known
        ]
        mended = [
            self._alert("mended", trouble, f"{_MENDED}{said}", at)
            for trouble, said in known.items()
            if trouble not in broken
        ]
        for trouble in known.keys() - broken.keys():
            del self._known[trouble]
        self._known.update(broken)
        return fresh + mended

    def known(self, kind: str | None = None) -> dict[Trouble, str]:
        """What is broken, all or of a kind, as far as was told."""
        return {trouble: said for trouble, said in self._known.items() if kind in (None, trouble.kind)}

    def still(self, at: datetime) -> list[Alert]:
        """What could not be told before."""
        found = [self._alert("broken", trouble, self._known[trouble], at) for trouble in self.untold]
        self.untold.clear()
        return found

    def take_back(self, alerts: Sequence[Alert]) -> None:
        """These came to nobody, in the order in which they were to be told: they are still to be told."""
        for alert in reversed(alerts):
            trouble = Trouble(alert.kind, alert.view, alert.what)
            if alert.state == "broken":
                self.untold.add(trouble)
            self._known.setdefault(trouble, alert.message.removeprefix(_MENDED))

    def _alert(self, state: str, trouble: Trouble, said: str, at: datetime) -> Alert:
        return Alert(
            state,
            trouble.kind,
            trouble.view,
            trouble.what,
            said,
            self._project,
            at.isoformat(timespec="seconds"),
        )


def messengers(
    settings: Sequence[AlertSettings], folder: Path, lost: Callable[[], None]
) -> list[Outbox[Alert]]:
    """Whoever is to be told, each with a queue of its own: one that hangs keeps nobody else waiting."""
    return [Outbox("alert", _way(each, folder), lost, size=100, patience=each.timeout) for each in settings]


def _way(settings: AlertSettings, folder: Path) -> Callable[[Alert], None]:
    if settings.command is not None:
        command = settings.command
        return lambda alert: run_command(command, alert, folder, settings.timeout)
    assert settings.webhook is not None
    webhook = settings.webhook
    url = webhook.resolve() if isinstance(webhook, Reference) else webhook
    return lambda alert: post_json(url, alert.to_json(), settings.timeout)


def run_command(command: Sequence[str], alert: Alert, folder: Path, timeout: float) -> None:
    """Run it in the project's folder; an ``OSError`` that says how it failed."""
    try:
        done = subprocess.run(
            list(command),
            input=alert.to_json(),
            env={**os.environ, **alert.to_environment()},
            cwd=folder,
            timeout=timeout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{command[0]} took longer than {timeout} seconds, and was ended") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-_SAID:]
        raise OSError(f"{command[0]} ended with {done.returncode}: {said}")
