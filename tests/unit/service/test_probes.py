from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from viewkeeper.errors import SetupError
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.service.probes import OPEN, Server, listen, routes
from viewkeeper.service.state import ServiceState
from viewkeeper.survey import Survey
from viewkeeper.web import create_app

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Ask]]:
    """Serves a state; asks it for a path."""
    running: list[Server] = []

    def make(state: ServiceState, token: str | None = None) -> Ask:
        listening = listen("127.0.0.1:0", guarded=False)
        port = listening.getsockname()[1]
        app = create_app(
            Survey(Ledger.open(sqlite_url(tmp_path / "ledger.db"))),
            token=token,
            extra_routes=routes(state, token),
            open_paths=OPEN,
        )
        server = Server(app, listening)
        server.start()
        running.append(server)

        def ask(path: str, **headers: str) -> tuple[int, str]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            found = answer.status, answer.read().decode()
            connection.close()
            return found

        return ask

    yield make
    for server in running:
        server.stop()


def test_ready_when_it_is_and_alive_until_it_ends(serve):
    state = ServiceState()
    ask = serve(state)
    assert ask("/ready") == (503, '{"ready":false,"why_not":"it is starting"}')
    state.ready()
    assert ask("/ready")[0] == 200
    state.not_ready("the ledger cannot be reached")
    assert json.loads(ask("/ready")[1])["why_not"] == "the ledger cannot be reached"
    state.doing("waiting")
    assert ask("/health")[0] == 200
    assert json.loads(ask("/health")[1])["doing"] == "waiting"
    state.ended()
    assert (ask("/health")[0], ask("/ready")[0]) == (503, 503)
    assert ask("/../etc/passwd")[0] == 404


def test_metrics_need_the_token_where_there_is_one(serve):
    ask = serve(ServiceState(), token="open sesame")
    assert ask("/metrics")[0] == 401
    assert ask("/metrics", Authorization="Bearer something else")[0] == 401
    status, text = ask("/metrics", Authorization="Bearer open sesame")
    assert status == 200
    assert "# TYPE viewkeeper_epochs_total counter" in text
    assert ask("/health")[0] == 200, "whether it is well may be asked by anybody"


def test_another_name_for_this_machine_is_not_answered_to(serve):
    ask = serve(ServiceState())
    assert ask("/metrics", Host="evil.example")[0] == 400
    assert ask("/", Host="evil.example")[0] == 400
    assert ask("/health", Host="10.0.0.7")[0] == 200, "a probe calls by an address"


def test_the_console_is_there(serve):
    status, page = serve(ServiceState())("/")
    assert status == 200
    assert "The graph of views" in page


def test_a_port_in_use_is_told():
    taken = listen("127.0.0.1:0", guarded=False)
    with taken, pytest.raises(SetupError, match="cannot listen on 127") as raised:
        listen(f"127.0.0.1:{taken.getsockname()[1]}", guarded=False)
    assert raised.value.code == "VK-LISTEN"
    assert "--listen" in (raised.value.hint or "")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", f"{socket.gethostname()}:0"])
def test_who_can_be_reached_from_elsewhere_needs_a_token(address):
    with pytest.raises(SetupError, match="no token is set"):
        listen(address, guarded=False)
    if address.startswith("0"):
        listen(address, guarded=True).close()


@pytest.mark.parametrize(
    "address", ["8170", "localhost", "localhost:", ":8170", "localhost:x", "localhost:99999", "::1:80"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(SetupError) as raised:
        listen(address, guarded=False)
    assert raised.value.code == "VK-LISTEN"
