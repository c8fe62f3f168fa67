"""JSON, posted to a server of the web."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from urllib.parse import urlsplit


def post_json(url: str, body: bytes, timeout: float, headers: Mapping[str, str] | None = None) -> None:
    """Send it; an ``OSError`` that does not repeat the address, which may hold a secret, if it was not
    taken."""
    told = {"Content-Type": "application/json", **(headers or {})}
    host = None
    try:
        host = urlsplit(url).hostname
        request = urllib.request.Request(url, data=body, headers=told, method="POST")
        with _OPENER.open(request, timeout=timeout) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(f"{host} answered {error.code}") from None
    except OSError as error:
        raise OSError(f"{host} did not answer: {getattr(error, 'reason', error)}") from None
    except (ValueError, HTTPException):
        raise OSError("that is no address of the web") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """What is posted goes where it was sent, and so does the token."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)
