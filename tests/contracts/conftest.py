"""A PostgreSQL server for the contract suites, and an empty schema in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from postgres_server import PostgresInstance


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresInstance]:
    from postgres_server import prepared  # most tests of this folder need none

    instance = prepared(tmp_path_factory.mktemp("pg"))
    yield instance
    instance.stop("immediate")


@pytest.fixture
def db(server: PostgresInstance, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresInstance]:
    """With a schema ``s`` of the user ``keeper``."""
    from postgres_server import PASSWORD

    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    server.sql("CREATE SCHEMA s AUTHORIZATION keeper")
    yield server
    server.sql("DROP SCHEMA s CASCADE", "DROP PUBLICATION IF EXISTS theirs")
