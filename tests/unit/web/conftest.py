"""A console over a ledger on paper, asked as a program would."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.survey import Survey
from viewkeeper.testing.ledgers import PaperWarehouse
from viewkeeper.web import create_app

HERE = "http://127.0.0.1:8787"


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PaperWarehouse]:
    """A warehouse of seven views that were refreshed once."""
    file = tmp_path_factory.mktemp("paper") / "ledger.db"
    with Ledger.open(sqlite_url(file)) as ledger:
        warehouse = PaperWarehouse(ledger)
        warehouse.define()
        warehouse.pass_day(moved_stores=2)
        warehouse.refresh(violations={"positive_quantity": 3})
    return file, warehouse


@pytest.fixture
def paper(original: tuple[Path, PaperWarehouse], tmp_path: Path) -> Iterator[PaperWarehouse]:
    """A copy of it."""
    file, warehouse = original
    shutil.copy(file, tmp_path / "ledger.db")
    with Ledger.open(sqlite_url(tmp_path / "ledger.db")) as ledger:
        yield PaperWarehouse(ledger, views=dict(warehouse.views), versions=dict(warehouse.versions))


@pytest.fixture
def console(paper: PaperWarehouse) -> Iterator[Callable[..., TestClient]]:
    """Makes a client of a console with these options."""
    opened: list[TestClient] = []

    def make(**options: Any) -> TestClient:
        app = create_app(Survey(paper.ledger), **options)
        client = TestClient(app, base_url=HERE, follow_redirects=False, raise_server_exceptions=False)
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.close()
