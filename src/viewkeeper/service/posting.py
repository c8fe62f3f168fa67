"""JSON, posted to a server of the web."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit


def post_json(url: str, body: bytes, timeout: float, headers: Mapping[str, str] | None = None) -> None:
    """Send it; an ``OSError`` that does not repeat the address, which may hold a secret, if it was not
    taken."""
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json", **(headers or {})}, method="POST"
    )
    host = urlsplit(url).hostname
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(f"{host} answered {error.code}") from None
    except OSError as error:
        raise OSError(f"{host} did not answer: {getattr(error, 'reason', error)}") from None
