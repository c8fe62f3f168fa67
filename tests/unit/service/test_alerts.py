from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from viewkeeper.define.service_settings import AlertSettings
from viewkeeper.service.alerts import Alert, Trouble, Troubles, messengers, run_command

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATE = Trouble("lag", "v")
HOSTILE = "v'; touch pwned; $(touch pwned) `touch pwned`"


def alert(view: str = "v") -> Alert:
    return Alert("broken", "lag", view, "", f"{view} is late", "shop", NOW.isoformat())


def test_told_once_and_once_again_when_it_is_mended():
    troubles = Troubles("shop")
    assert [each.state for each in troubles.now("lag", {LATE: "late"}, NOW)] == ["broken"]
    assert troubles.now("lag", {LATE: "later still"}, NOW) == []
    assert troubles.now("suspended", {}, NOW) == [], "another kind mends nothing"
    (mended,) = troubles.now("lag", {}, NOW)
    assert (mended.state, mended.view, mended.message) == ("mended", "v", "mended: later still")
    assert troubles.now("lag", {}, NOW) == []


def test_what_came_to_nobody_is_still_to_be_told():
    troubles = Troubles("shop")
    broken = troubles.now("lag", {LATE: "late"}, NOW)
    troubles.take_back(broken)
    assert Troubles("shop", troubles.known(), troubles.untold).still(NOW) == broken
    assert troubles.still(NOW) == broken
    assert troubles.still(NOW) == []
    mended = troubles.now("lag", {}, NOW)
    troubles.take_back(mended)
    assert troubles.still(NOW) == []
    assert troubles.now("lag", {}, NOW) == mended
    troubles.take_back([*broken, *mended])
    assert [*troubles.still(NOW), *troubles.now("lag", {}, NOW)] == [*broken, *mended]


def test_a_command_gets_the_facts_and_no_shell_reads_them(tmp_path: Path):
    script = (
        "import json, os, sys; told = [json.load(sys.stdin), os.environ['VIEWKEEPER_ALERT_VIEW']]; "
        "json.dump(told, open('got', 'w'))"
    )
    run_command([sys.executable, "-c", script], alert(HOSTILE), tmp_path, 20)
    told, view = json.loads((tmp_path / "got").read_text())
    assert told["view"] == view == HOSTILE
    assert told["state"] == "broken"
    assert [file.name for file in tmp_path.iterdir()] == ["got"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import time; time.sleep(60)", "took longer than 1 seconds"),
        ("import sys; sys.exit('no mail')", "ended with 1: no mail"),
    ],
)
def test_a_command_that_fails_says_how(tmp_path: Path, script: str, words: str):
    with pytest.raises(OSError, match=words):
        run_command([sys.executable, "-c", script], alert(), tmp_path, 1)


@pytest.fixture
def web() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that takes JSON at /yes, and refuses it elsewhere."""
    taken: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/yes":
                taken.append(json.loads(body))
            self.send_response(200 if self.path == "/yes" else 500)
            self.end_headers()

        def log_message(self, *told: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", taken
    server.shutdown()
    server.server_close()
    thread.join()


def test_one_that_is_down_keeps_nobody_else_from_being_told(web, tmp_path, monkeypatch, caplog):
    url, taken = web
    monkeypatch.setenv("ALERTS_URL", f"{url}/no?token=SECRET")
    settings = [
        AlertSettings.model_validate({"webhook": {"env": "ALERTS_URL"}, "timeout": "5 seconds"}),
        AlertSettings.model_validate({"command": ["/no/such/program"]}),
        AlertSettings.model_validate({"webhook": f"{url}/yes"}),
    ]
    lost: list[int] = []
    told = messengers(settings, tmp_path, lambda: lost.append(1))
    for messenger in told:
        messenger.put(alert())
    for messenger in told:
        messenger.close()
    assert [each["message"] for each in taken] == ["v is late"]
    assert len(lost) == 2
    assert "answered 500" in caplog.text
    assert "SECRET" not in caplog.text
