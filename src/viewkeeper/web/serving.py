"""Serving the console: where it listens, with which token, until it is told to stop."""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from viewkeeper.listening import in_url, is_loopback, listen_at
from viewkeeper.web.errors import WebError

_LISTEN = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]*):)?(?P<port>\d{1,5})")
LEAST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Listen:
    """An address to listen at; port 0: any that is free."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Listen:
        """
        >>> Listen.of("127.0.0.1:8787"), Listen.of("[::1]:80").host, Listen.of("9000").host
        (Listen(host='127.0.0.1', port=8787), '::1', '127.0.0.1')
        """
        found = _LISTEN.fullmatch(text.strip())
        if found is None or int(found["port"]) > 65535:
            raise WebError(
                f"--listen {text!r} is no address", code="VK-WEB-LISTEN", hint="Write it as 127.0.0.1:8787."
            )
        return cls((found["host"] or "127.0.0.1").strip("[]"), int(found["port"]))

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def url(self, port: int) -> str:
        return f"http://{in_url(self.host)}:{port}/"


def checked_token(listen: Listen, given: str | None, *, needed: bool) -> tuple[str | None, bool]:
    """The token, and whether it was made up here. Others than this machine are let in by a token that
    somebody chose, never by one that only a log knows."""
    if given is not None and len(given) < LEAST_TOKEN:
        raise WebError(
            f"VIEWKEEPER_TOKEN is too short: {LEAST_TOKEN} characters at least",
            code="VK-WEB-TOKEN",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(32))' makes a good one.",
        )
    if not listen.is_loopback and given is None:
        raise WebError(
            f"{listen.host} can be reached from other machines, and there is no token",
            code="VK-WEB-TOKEN",
            hint="Set VIEWKEEPER_TOKEN, or listen at 127.0.0.1.",
        )
    if given is None and needed:
        return secrets.token_urlsafe(24), True
    return given, False


def bound(listen: Listen) -> socket.socket:
    """A socket that listens there, or an error that says why not."""
    try:
        return listen_at(listen.host, listen.port)
    except OSError as error:
        raise WebError(
            f"nothing can listen at {listen.host}:{listen.port}: {error.strerror or error}",
            code="VK-WEB-PORT",
            hint="Is another console running there? Choose another port: --listen 127.0.0.1:0 takes any.",
        ) from error


def serve(app: Starlette, listening: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until the process is told to stop. Pages that listen for news are not waited for."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=1, server_header=False
    )
    ready()
    uvicorn.Server(config).run(sockets=[listening])
