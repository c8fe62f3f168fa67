"""``service:`` in ``viewkeeper.yml``: how ``viewkeeper run`` keeps the views of a project fresh.

Example::

    service:
      listen: 127.0.0.1:8170          # where /health, /ready and /metrics are
      poll: 10 seconds                # how often it is looked whether sources or the project's files changed
      grace: 30 seconds               # what a running epoch gets to finish when the service is to end
      backoff: {first: 30 seconds, longest: 30 minutes, suspend_after: 5}
      lineage: {url: https://lineage.example/api/v1/lineage, token: {env: LINEAGE_TOKEN}}
      alerts:
        - {command: [./notify, --urgent]}
        - {webhook: {env: ALERTS_URL}, timeout: 5 seconds}
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from viewkeeper.define.fields import Interval, Name, Reference, Strict

LISTEN = "127.0.0.1:8170"


def split_address(text: str) -> tuple[str, int]:
    """Host and port of an address; a ``ValueError`` if it is none.

    >>> split_address("localhost:80"), split_address("[::1]:8170")
    (('localhost', 80), ('::1', 8170))
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or (":" in bare) != (bare != host) or not port.isascii() or not port.isdigit():
        raise ValueError(f"{text!r} is no address: write a host and a port, such as {LISTEN}")
    if int(port) > 65535:
        raise ValueError(f"there is no port {port}")
    return bare, int(port)


def _is_address(text: str) -> str:
    split_address(text)
    return text


def is_web(url: str) -> str:
    """The URL again, if it is one of the web."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write a URL that begins with http:// or https://")
    return url


Address = Annotated[str, AfterValidator(_is_address)]
WebUrl = Annotated[str, AfterValidator(is_web)]


class BackoffSettings(Strict):
    """How long a view that failed is left alone: twice as long each time; in the end until it is resumed."""

    first: Interval = 30
    longest: Interval = 1800
    suspend_after: Annotated[int, Field(ge=1)] = 5

    @model_validator(mode="after")
    def _grows(self) -> BackoffSettings:
        if self.longest < self.first:
            raise ValueError("longest is shorter than first")
        return self


class LineageSettings(Strict):
    """Where OpenLineage's run events go: to a server, to a file of JSON lines, or both."""

    url: WebUrl | None = None
    file: Name | None = None
    """Relative to the project."""
    token: Reference | None = None
    namespace: Name | None = None
    """Of jobs and datasets; the project's name unless it is given."""
    timeout: Interval = 5

    @model_validator(mode="after")
    def _somewhere(self) -> LineageSettings:
        if not (self.url or self.file):
            raise ValueError("lineage needs a url or a file")
        if self.token and not self.url:
            raise ValueError("a token is sent to a url")
        return self


class AlertSettings(Strict):
    """Who is told when a lag or an expectation is broken, or a view suspended; and when it is mended."""

    command: Annotated[tuple[Name, ...], Field(min_length=1, strict=False)] | None = None
    webhook: WebUrl | Reference | None = None
    timeout: Interval = 10

    @field_validator("command", mode="before")
    @classmethod
    def _is_list(cls, command: object) -> object:
        if isinstance(command, str):
            raise ValueError("write the command as a list: no shell reads it")
        return command

    @model_validator(mode="after")
    def _one_way(self) -> AlertSettings:
        if (self.command is None) == (self.webhook is None):
            raise ValueError("an alert needs a command or a webhook, and not both")
        return self


class ServiceSettings(Strict):
    """The whole of ``service:``."""

    listen: Address = LISTEN
    token: Reference | None = None
    """Whoever asks for more than whether the service is well has to show it; needed to listen to others than
    this machine."""
    hosts: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Names by which the console is called, besides the address that it listens on."""
    poll: Interval = 10
    grace: Interval = 30
    backoff: BackoffSettings = BackoffSettings()
    lineage: LineageSettings | None = None
    alerts: Annotated[tuple[AlertSettings, ...], Field(strict=False)] = ()
