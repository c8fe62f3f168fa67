"""Who may see what, and do what: hosts, origins, tokens, forms."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Sequence

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from viewkeeper.results import Verification
from viewkeeper.web.doing import Rows
from viewkeeper.web.errors import WebError
from viewkeeper.web.pages import Leave
from viewkeeper.web.serving import Listen, bound, checked_token

from .conftest import HERE

Make = Callable[..., TestClient]
TOKEN = "a-token-that-is-long-enough"
OURS = {"Origin": HERE}
VIEW = "/views/lake.default.SID_sales"


class Recorded:
    """Stands where Spark would be: remembers what it was asked."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []

    def refresh(self, views: Sequence[str], policy: str | None) -> str:
        self.done.append(("refresh", *views, policy or ""))
        return "nothing had changed"

    def verify(self, view: str) -> Verification:
        self.done.append(("verify", view))
        return Verification(view, ok=True, missing=0, extra=0, epoch=2)

    def preview(self, view: str, limit: int) -> Rows:
        self.done.append(("preview", view))
        return Rows(("a",), (("<i>1</i>",), (None,)), more=False)

    def query(self, sql: str, limit: int, seconds: float) -> Rows:
        self.done.append(("query", sql))
        return Rows(("a",), (("1",),), more=False)


def acting(console: Make, recorded: Recorded, **leave: bool) -> TestClient:
    return console(actions=recorded, leave=Leave(**leave), token=TOKEN)


def logged_in(client: TestClient) -> str:
    """Log in; the word that forms carry."""
    assert (
        client.post("/login", data={"token": TOKEN, "next": VIEW}, headers=OURS).headers["location"] == VIEW
    )
    found = re.search(r'name="word" value="([0-9a-f]+)"', client.get(VIEW).text)
    assert found is not None
    return found[1]


def until_done(client: TestClient, actions: Recorded) -> None:
    for _ in range(100):
        if actions.done and "is under way" not in client.get(VIEW).text:
            return
        time.sleep(0.02)
    raise AssertionError("it was not done")


def test_every_answer_forbids_what_is_not_ours(console: Make) -> None:
    client = console()
    for path in ("/", "/nowhere", "/static/console.js"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert (
            "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    page = client.get(VIEW).text
    assert (
        not re.search(r"<script(?![^>]* src=)", page) and " style=" not in page and "javascript:" not in page
    )


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8787", "", "localhost@evil.example"]
)
def test_another_host_is_refused(console: Make, host: str) -> None:
    answer = console().get("/", headers={"Host": host})
    assert answer.status_code == 400 and "VK-WEB-HOST" in answer.text and "SID_sales" not in answer.text


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8787", "Console.Lan:80"])
def test_names_of_loopback_and_those_allowed_are_answered(console: Make, host: str) -> None:
    assert console(hosts=["console.lan"]).get("/", headers={"Host": host}).status_code == 200


def test_nothing_can_be_done_unless_it_is_allowed(console: Make) -> None:
    client = console()
    for path in (f"{VIEW}/do", "/do", "/sql"):
        assert client.post(path, data={"what": "refresh"}, headers=OURS).status_code == 403
    assert client.get(f"{VIEW}/rows").status_code == 403
    assert "<form" not in client.get(VIEW).text


def test_an_action_needs_leave_login_origin_and_our_form(console: Make) -> None:
    actions = Recorded()
    client = acting(console, actions, actions=True)
    ask = {"what": "refresh"}
    assert client.post(f"{VIEW}/do", data=ask, headers=OURS).status_code == 403, "not logged in"
    word = logged_in(client)
    assert client.post(f"{VIEW}/do", data=ask, headers=OURS).status_code == 403, "no word"
    wrong = {**ask, "word": "0" * len(word)}
    assert client.post(f"{VIEW}/do", data=wrong, headers=OURS).status_code == 403
    right = {**ask, "word": word}
    assert client.post(f"{VIEW}/do", data=right).status_code == 403, "no origin"
    for origin in ("https://evil.example", "null", f"{HERE}.evil.example"):
        assert client.post(f"{VIEW}/do", data=right, headers={"Origin": origin}).status_code == 403
    assert client.get(f"{VIEW}/do", params=right).status_code in (404, 405), "never by GET"
    assert not actions.done
    assert client.post(f"{VIEW}/do", data=right, headers=OURS).headers["location"] == VIEW
    until_done(client, actions)
    assert actions.done == [("refresh", "lake.default.SID_sales", "")]
    assert client.post("/views/none/do", data=right, headers=OURS).status_code == 404
    assert client.post(f"{VIEW}/do", data={**right, "what": "drop"}, headers=OURS).status_code == 403


def test_a_program_sends_the_token_with_each_request(console: Make) -> None:
    actions = Recorded()
    client = acting(console, actions, actions=True)
    for wrong in ("Bearer wrong", "Bearer ", f"Basic {TOKEN}", ""):
        headers = {"Authorization": wrong}
        assert client.post(f"{VIEW}/do", data={"what": "verify"}, headers=headers).status_code == 403
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert client.post(f"{VIEW}/do", data={"what": "verify"}, headers=bearer).status_code == 303
    until_done(client, actions)
    assert "exact (epoch 2)" in client.get(VIEW).text


def test_a_wrong_token_opens_nothing_and_a_right_one_a_careful_cookie(console: Make) -> None:
    client = acting(console, Recorded(), actions=True)
    answer = client.post("/login", data={"token": "wrong"}, headers=OURS)
    assert answer.status_code == 403 and "set-cookie" not in answer.headers and "not the token" in answer.text
    right = client.post("/login", data={"token": TOKEN, "next": "//evil.example"}, headers=OURS)
    assert right.headers["location"] == "/"
    cookie = right.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in cookie
    word = logged_in(client)
    client.post("/logout", data={"word": word}, headers=OURS)
    assert client.post(f"{VIEW}/do", data={"what": "verify", "word": word}, headers=OURS).status_code == 403


def test_with_a_token_everywhere_nothing_is_seen_without_it(console: Make) -> None:
    probe = Route("/health", lambda request: PlainTextResponse("well"))
    client = console(token=TOKEN, token_everywhere=True, extra_routes=[probe], open_paths=["/health"])
    for path in ("/", VIEW, "/epochs", "/events", "/sources?ask"):
        answer = client.get(path)
        assert answer.status_code == 401 and "SID_sales" not in answer.text
    browser = client.get(VIEW, headers={"Accept": "text/html"})
    assert browser.headers["location"].startswith("/login?next=")
    assert client.get("/login").status_code == client.get("/static/console.css").status_code == 200
    assert client.get("/health", headers={"Host": "10.0.0.7:8787"}).text == "well", "probes know no names"
    assert client.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    client.post("/login", data={"token": TOKEN}, headers=OURS)
    assert client.get("/").status_code == 200


def test_rows_and_sql_are_shown_to_those_who_may_see_them(console: Make) -> None:
    actions = Recorded()
    client = acting(console, actions, actions=True, sql=True)
    assert client.get(f"{VIEW}/rows").status_code == 403
    assert client.post("/sql", data={"sql": "SELECT 1"}, headers=OURS).status_code == 403
    word = logged_in(client)
    rows = client.get(f"{VIEW}/rows").text
    assert "&lt;i&gt;1&lt;/i&gt;" in rows and "NULL" in rows
    answer = client.post("/sql", data={"sql": "SELECT '</textarea>'", "word": word}, headers=OURS).text
    assert "&lt;/textarea&gt;" in answer and ("query", "SELECT '</textarea>'") in actions.done
    assert console(actions=actions, leave=Leave(preview=True)).get(f"{VIEW}/rows").status_code == 200


def test_a_form_that_never_ends_is_refused(console: Make) -> None:
    client = acting(console, Recorded(), actions=True)
    assert client.post("/login", data={"token": "x" * 100_000}, headers=OURS).status_code == 403


def test_an_error_that_nobody_expected_shows_no_traceback(console: Make) -> None:
    def fail(_request: Request) -> PlainTextResponse:
        raise RuntimeError("secret detail")

    answer = console(extra_routes=[Route("/fail", fail)]).get("/fail")
    assert answer.status_code == 500 and "secret detail" not in answer.text and "VK-INTERNAL" in answer.text


def test_listening_beyond_this_machine_needs_a_token_of_ones_own(console: Make) -> None:
    for host in ("0.0.0.0", "192.168.1.5", "::", "console.example"):
        with pytest.raises(WebError, match="VK-WEB-TOKEN"):
            checked_token(Listen(host, 1), None, needed=False)
    assert checked_token(Listen("0.0.0.0", 1), TOKEN, needed=False) == (TOKEN, False)
    assert checked_token(Listen("127.0.0.1", 1), None, needed=False) == (None, False)
    token, made = checked_token(Listen("localhost", 1), None, needed=True)
    assert made and token is not None and len(token) >= 32
    with pytest.raises(WebError, match="too short"):
        checked_token(Listen("127.0.0.1", 1), "short", needed=True)
    with pytest.raises(WebError, match="needs a token"):
        console(leave=Leave(actions=True))


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(WebError, match="VK-WEB-PORT") as raised:
            bound(Listen("127.0.0.1", other.getsockname()[1]))
        assert raised.value.hint is not None and "--listen" in raised.value.hint


@pytest.mark.parametrize("text", ["", "nonsense", "127.0.0.1:99999", "a:b", "1:2:3"])
def test_an_address_that_is_none_is_told(text: str) -> None:
    with pytest.raises(WebError, match="VK-WEB-LISTEN"):
        Listen.of(text)
