"""How far declared sources are ahead of their base views: asked of the databases themselves, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from viewkeeper.declaring import LedgerShelf
from viewkeeper.define.sources import SWEEP, PostgresOptions, SourceDefinition, checked_options
from viewkeeper.errors import ViewkeeperError
from viewkeeper.integrate.members import Members
from viewkeeper.ledger import Ledger
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.postgres_capture import capture_of
from viewkeeper.sources.postgres_server import Server

_AT_ONCE = 8
_PATIENCE_SECONDS = 3


def lags(
    versions: Mapping[SourceDefinition, str | None], ledger: Ledger
) -> dict[str, Lag | ViewkeeperError | None]:
    """Of each source, given the version that its base views hold, what waits; or why that is not known.
    ``None``: to tell, the source would have to be read."""
    if not versions:
        return {}
    with ThreadPoolExecutor(_AT_ONCE, "viewkeeper-lag") as pool:
        declared = {source.name: source for source in versions}
        found = pool.map(lambda source: _lag(source, versions[source], ledger, declared), versions)
        return {source.name: lag for source, lag in zip(versions, found, strict=True)}


def _lag(
    source: SourceDefinition,
    version: str | None,
    ledger: Ledger,
    declared: Mapping[str, SourceDefinition],
) -> Lag | ViewkeeperError | None:
    if version is None or source.kind not in ("postgres", SWEEP):
        return None
    try:
        if source.kind == SWEEP:
            return Members(source, LedgerShelf(ledger, source.name), declared).lag(version)
        options = checked_options(source)
        assert isinstance(options, PostgresOptions)
        if options.capture == "diff":
            return None
        server = Server(source.name, options, patience=_PATIENCE_SECONDS)
        return capture_of(server, dict(source.facts)["capture"], LedgerShelf(ledger, source.name)).lag(
            version
        )
    except ViewkeeperError as error:
        return error
