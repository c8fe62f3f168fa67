"""``/health``, ``/ready`` and ``/metrics``: for whatever watches over the service.

The console serves these routes beside its own pages.
"""

from __future__ import annotations

import secrets
import socket
import threading

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from viewkeeper.define.service_settings import split_address
from viewkeeper.errors import SetupError
from viewkeeper.listening import is_loopback, listen_at
from viewkeeper.service.metrics import CONTENT_TYPE
from viewkeeper.service.state import ServiceState

OPEN = ("/health", "/ready")
"""Whether the service is well may be asked by anybody."""


def routes(state: ServiceState, token: str | None = None) -> list[BaseRoute]:
    """The routes. With a token, whoever asks for the metrics has to show it; whether the service is well
    may be asked by anybody."""

    async def health(request: Request) -> Response:
        found = state.health()
        return JSONResponse(found, 200 if found["status"] == "ok" else 503)

    async def ready(request: Request) -> Response:
        why = state.why_not_ready
        return JSONResponse({"ready": why is None, "why_not": why}, 200 if why is None else 503)

    def metrics(request: Request) -> Response:
        shown = request.headers.get("authorization", "")
        if token and not secrets.compare_digest(shown.encode(), f"Bearer {token}".encode()):
            return PlainTextResponse("a token is needed", 401, {"WWW-Authenticate": "Bearer"})
        return Response(state.metrics.text(), media_type=CONTENT_TYPE)

    return [Route("/health", health), Route("/ready", ready), Route("/metrics", metrics)]


def listen(address: str, *, guarded: bool) -> socket.socket:
    """A socket on ``host:port``; ``guarded``: those who come from elsewhere have to show a token."""
    try:
        host, port = split_address(address)
    except ValueError as error:
        raise SetupError(str(error), code="VK-LISTEN", hint="For example --listen 127.0.0.1:8170.") from error
    if not is_loopback(host) and not guarded:
        raise SetupError(
            f"{address} can be reached from other machines, and no token is set",
            code="VK-LISTEN-OPEN",
            hint="Set one under service: in viewkeeper.yml, token: {env: VIEWKEEPER_TOKEN}; or listen on "
            "127.0.0.1.",
        )
    try:
        return listen_at(host, port)
    except OSError as error:
        raise SetupError(
            f"cannot listen on {address}: {error.strerror or error}",
            code="VK-LISTEN",
            hint="Is the service running already? Choose another port with --listen HOST:PORT.",
        ) from error


class Server:
    """Serves an application on a socket, in a thread."""

    def __init__(self, application: ASGIApp, listening: socket.socket) -> None:
        config = uvicorn.Config(
            application, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._socket = listening
        self._thread = threading.Thread(
            target=lambda: self._server.run([listening]), name="viewkeeper-http", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()
