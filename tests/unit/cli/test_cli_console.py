"""``viewkeeper serve``: what it serves, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from viewkeeper.cli.console import Wanted, serve
from viewkeeper.cli.output import Output
from viewkeeper.define.template import init_project
from viewkeeper.listening import listen_at
from viewkeeper.web import serving


@pytest.mark.parametrize(
    ("listen", "host"),
    [("[2001:0db8::1]:8787", "[2001:db8::1]:8787"), ("10.0.0.1:8787", "10.0.0.1:8787")],
)
def test_it_answers_to_the_address_that_it_listens_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listen: str, host: str
) -> None:
    monkeypatch.setenv("VIEWKEEPER_TOKEN", "a token of some length")
    init_project(tmp_path / "shop", "shop")
    answers: list[int] = []

    def asked(app: Starlette, listening: object, ready: Callable[[], None]) -> None:
        client = TestClient(app, base_url=f"http://{host}", follow_redirects=False)
        answers.append(client.get("/login").status_code)
        answers.append(client.get("/login", headers={"Host": "elsewhere"}).status_code)

    with listen_at("127.0.0.1", 0) as listening:
        monkeypatch.setattr(serving, "bound", lambda wanted: listening)
        monkeypatch.setattr(serving, "serve", asked)
        serve(Output(), tmp_path / "shop", Wanted(listen))
    assert answers[0] == 200
    assert answers[1] >= 400
