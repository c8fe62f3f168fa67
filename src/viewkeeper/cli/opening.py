"""The project that a command concerns, and what its ledger knows. Loads neither Spark nor a SQL parser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.define.place import Place, find_project, load_place
from viewkeeper.ledger import Ledger
from viewkeeper.overview import Overview, folder_ledger

DEFAULT_WAREHOUSE = "warehouse"


def find_place(folder: Path | None) -> Place:
    """The project in a folder; none given: the one that the working directory is in."""
    return load_place(folder or find_project(Path.cwd()))


def warehouse_folder(place: Place) -> Path:
    """The folder of the project's warehouse, where it has one of its own."""
    connection = place.settings.connection
    embedded = not (connection.master or connection.remote)
    return place.folder / ((connection.warehouse if embedded else None) or DEFAULT_WAREHOUSE)


def ledger_url(place: Place, *, create: bool) -> str:
    """Where the project's ledger is; ``create``: the folder of a new one may be made."""
    ledger = place.settings.connection.ledger
    return ledger.resolve() if ledger else folder_ledger(warehouse_folder(place), create=create)


@contextmanager
def opened_overview(folder: Path | None) -> Iterator[tuple[Place, Overview]]:
    """The project, and its warehouse as the ledger tells of it."""
    place = find_place(folder)
    overview = Overview(Ledger.open(ledger_url(place, create=True)), place.default)
    try:
        yield place, overview
    finally:
        overview.close()
