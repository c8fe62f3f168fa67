"""The documentation is true: every block of code is run, and the rest says what it is."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from doc_pages import DOCS, OUTPUT, RUN, Reader, blocks, pages
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from postgres_server import PASSWORD, PostgresInstance, prepared
from viewkeeper.cli.main import app
from viewkeeper.warehouse import Warehouse

BLOCKS = {page: list(blocks(page)) for page in pages()}
FOLLOWED = [page for page, found in BLOCKS.items() if any(block.is_run for block in found)]

GIVEN: Mapping[str, tuple[str, ...]] = {
    "expectations.md": ("CREATE TABLE orders (id INT, customer INT, total DECIMAL(9,2))",),
    "installing.md": (
        "CREATE TABLE sales (day DATE, qty INT)",
        "CREATE TABLE log (person INT, day DATE, page STRING)",
        "CREATE MATERIALIZED VIEW clicks AS SELECT page FROM log",
    ),
    "service.md": ("CREATE TABLE orders (day DATE)",),
    "operators/windows.md": ("CREATE TABLE orders (customer INT, id INT, day DATE)",),
}
"""What a page takes for granted."""


@pytest.mark.parametrize("page", BLOCKS)
def test_every_block_is_run_or_says_what_it_is(page: str) -> None:
    for block in BLOCKS[page]:
        if block.test is not None:
            test = DOCS.parent / block.test
            assert test.is_file(), f"{block}: there is no {block.test}"
            assert Path(page).name in test.read_text(encoding="utf-8"), (
                f"{block}: {block.test} does not read it"
            )
        elif block.reason is not None:
            assert len(block.reason.split()) > 2, f"{block} is not run, and does not say why"
        else:
            assert block.language in (*RUN, OUTPUT), f"{block} is neither run nor marked as output"


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two views that are filled."""
    folder = tmp_path_factory.mktemp("docs") / "shop"
    assert CliRunner().invoke(app, ["init", str(folder)]).exit_code == 0
    runpy.run_path(str(folder / "make_orders.py"))
    assert CliRunner().invoke(app, ["refresh", "--project", str(folder)]).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresInstance]:
    """A PostgreSQL whose log can be read."""
    instance = prepared(tmp_path_factory.mktemp("pg"))
    yield instance
    instance.stop("immediate")


@pytest.fixture
def reader(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Reader]]:
    """Somebody who follows a page, with what the page takes for granted."""
    made: list[Reader] = []

    def project() -> Path:
        folder: Path = request.getfixturevalue("shop")
        runpy.run_path(str(folder / "make_orders.py"))  # a day passes
        return folder

    def make(page: str) -> Reader:
        monkeypatch.chdir(tmp_path)
        new = Reader(tmp_path, monkeypatch.chdir, project, {"session": spark})
        if page == "guides/ledger.md":
            new.elsewhere = {"postgresql://keeper@db.example/ledger": request.getfixturevalue("postgres")}
        if page == "guides/postgres.md":
            instance: PostgresInstance = request.getfixturevalue("server")
            monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
            here = f"127.0.0.1', port '{instance.port}', database 'postgres"
            new.elsewhere = {"db.example', database 'shop": here, "DATABASE shop": "DATABASE postgres"}
            new.database = instance.sql
        for statement in GIVEN.get(page, ()):
            new.warehouse.sql(statement)
        made.append(new)
        return new

    yield make
    for each in made:
        for value in each.names.values():
            if isinstance(value, Warehouse):
                value.close()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("page", FOLLOWED)
def test_who_follows_a_page_gets_there(page: str, reader: Callable[[str], Reader]) -> None:
    somebody = reader(page)
    for block in BLOCKS[page]:
        if block.is_run:
            somebody.follow(block)
