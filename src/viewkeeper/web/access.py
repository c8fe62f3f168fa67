"""Who may come in, and who may do something: by a token that is compared in constant time.

A browser shows the token once, in a form, and gets a cookie that scripts cannot read and other sites cannot
send. A program sends ``Authorization: Bearer …`` with each request. Every form carries a word that only
pages of ours know, made from the session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time

COOKIE = "viewkeeper_session"
_SESSION_SECONDS = 12 * 3600
_MOST_SESSIONS = 1000


class Access:
    """The token and the sessions that were opened with it. Without a token nobody can do anything."""

    def __init__(self, token: str | None, *, everywhere: bool = False) -> None:
        self._token = token
        self.everywhere = everywhere
        """Whether pages are shown only to those who have the token, too."""
        self._key = secrets.token_bytes(32)
        self._sessions: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def has_token(self) -> bool:
        return self._token is not None

    def is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def open_session(self, token: str) -> str | None:
        """A new session for whoever has the token."""
        if not self.is_token(token):
            return None
        session = secrets.token_urlsafe(32)
        with self._lock:
            now = time.monotonic()
            alive = {key: end for key, end in self._sessions.items() if end > now}
            self._sessions = dict(list(alive.items())[-_MOST_SESSIONS:])
            self._sessions[session] = now + _SESSION_SECONDS
        return session

    def close_session(self, session: str) -> None:
        with self._lock:
            self._sessions.pop(session, None)

    def is_session(self, session: str | None) -> bool:
        with self._lock:
            return session is not None and self._sessions.get(session, 0.0) > time.monotonic()

    def is_bearer(self, header: str | None) -> bool:
        kind, _, given = (header or "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(given.strip())

    def form_word(self, session: str) -> str:
        """What a form of this session must carry."""
        return hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()

    def is_form_word(self, session: str, given: str) -> bool:
        return hmac.compare_digest(self.form_word(session).encode(), given.encode())
