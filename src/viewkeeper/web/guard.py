"""The guard stands before every page: which host is meant, from where a request comes, and who sends it.

- A ``Host`` that is not ours is refused: a page of another site whose name points to this machine would
  otherwise read ours (DNS rebinding).
- Whatever changes something is a POST from our own pages (``Origin``), or from a program that has the token.
- All answers forbid scripts, styles, frames and requests of others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from viewkeeper.web.access import COOKIE, Access

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without any, browsers would not name the origin of our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_OPEN_TO_ALL = ("/login", "/static/")


@dataclass(frozen=True)
class Guard:
    """ASGI middleware. ``open_paths`` (probes) are answered whatever the host, and without the token."""

    app: ASGIApp
    access: Access
    hosts: Collection[str] = LOOPBACK
    open_paths: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = None if scope["path"] in self.open_paths else self._refusal(scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await (refusal or self.app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers, path = Headers(scope=scope), scope["path"]
        host = headers.get("host", "")
        bearer = self.access.is_bearer(headers.get("authorization"))
        if _without_port(host) not in self.hosts and not bearer:  # no page of a browser can show the token
            return _said(
                400,
                "VK-WEB-HOST",
                "This console does not answer to that name. Open it as 127.0.0.1 or localhost, or start it "
                "with --allow-host NAME.",
            )
        if scope["method"] not in ("GET", "HEAD") and not bearer and not _is_ours(headers, host):
            return _said(403, "VK-WEB-ORIGIN", "That request comes from another site.")
        is_known = bearer or self.access.is_session(HTTPConnection(scope).cookies.get(COOKIE))
        if self.access.everywhere and not is_known and not path.startswith(_OPEN_TO_ALL):
            if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
                return RedirectResponse(f"/login?next={quote(path, safe='')}", 303)
            return _said(401, "VK-WEB-TOKEN", "This console needs its token: Authorization: Bearer …")
        return None


def _said(status: int, code: str, text: str) -> PlainTextResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return PlainTextResponse(f"[{code}] {text}\n", status, headers)


def _without_port(host: str) -> str:
    """
    >>> [_without_port(host) for host in ("Localhost:8787", "[::1]:1", "[::1]", "a.b")]
    ['localhost', '[::1]', '[::1]', 'a.b']
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


def _is_ours(headers: Headers, host: str) -> bool:
    """Browsers name the site from which a POST comes; one that names none is not from our pages."""
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2].lower() == host.lower()


def safe_next(path: str) -> str:
    """Where to go on to: a page of ours, never another site.

    >>> [safe_next(path) for path in ("/epochs", "//evil", "https://evil", "/\\\\evil", "")]
    ['/epochs', '/', '/', '/', '/']
    """
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and "\n" not in path else "/"
