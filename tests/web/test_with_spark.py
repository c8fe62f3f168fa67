"""The console beside a real warehouse: refreshes are seen as they happen, rows are read, actions are done."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from pyspark.sql import SparkSession

import viewkeeper as vk
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.survey import Survey
from viewkeeper.warehouse import Warehouse
from viewkeeper.web import Feed
from viewkeeper.web.doing import WarehouseActions
from viewkeeper.web.errors import WebError
from viewkeeper.web.pages import Leave

if TYPE_CHECKING:
    from conftest import Visit

TOKEN = "a token that is long enough"
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def warehouse(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Warehouse, Survey, Feed]]:
    folder = tmp_path_factory.mktemp("console") / "warehouse"
    feed = Feed()
    opened = vk.connect(folder, on_event=feed.publish)
    opened.spark.conf.set("spark.sql.shuffle.partitions", "2")
    opened.spark.sql("CREATE TABLE sales (store INT, item STRING, qty BIGINT) USING iceberg")
    opened.spark.sql("INSERT INTO sales VALUES (1, 'a', 5), (1, 'b', 2), (2, 'a', 1)")
    opened.sql("CREATE MATERIALIZED VIEW by_store AS SELECT store, SUM(qty) AS qty FROM sales GROUP BY store")
    opened.sql("CREATE MATERIALIZED VIEW large AS SELECT store, qty FROM by_store WHERE qty > 2")
    with Ledger.open(sqlite_url(folder / "ledger.db")) as ledger:
        yield opened, Survey(ledger), feed
    opened.close()


def test_a_refresh_is_seen_while_the_page_is_open(
    warehouse: tuple[Warehouse, Survey, Feed], serve: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    wh, survey, feed = warehouse
    window = visit(serve(survey, feed=feed))
    page = window.open("/")
    page.evaluate("window.notReloaded = true")
    said: list[str] = []
    page.expose_function("noted", lambda text: said.append(text))
    page.evaluate(
        "new MutationObserver(() => noted(document.getElementById('live-text').textContent))"
        ".observe(document.getElementById('live-text'), {childList: true})"
    )
    before = page.locator(".tile.wide dd a").inner_text()
    wh.spark.sql("INSERT INTO sales VALUES (3, 'c', 9)")
    done: list[vk.Epoch] = []
    worker = threading.Thread(target=lambda: done.append(wh.refresh()))
    worker.start()
    expect(page.locator(".tile.wide dd a")).not_to_have_text(before, timeout=120_000)
    worker.join()
    assert page.locator(".tile.wide dd a").inner_text() == str(done[0].id)
    assert page.evaluate("window.notReloaded")
    assert any(re.match("computing", text) for text in said), said
    page.locator("tbody a", has_text="by_store").click()
    expect(page.locator(".prices .chosen")).to_be_visible()
    expect(page.locator("svg.vk-tree")).to_contain_text("Δsales")
    window.shoot("spark-view")


def test_rows_verify_and_refresh_from_the_browser(
    warehouse: tuple[Warehouse, Survey, Feed], serve: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    wh, survey, feed = warehouse
    options = {
        "actions": WarehouseActions(lambda: wh),
        "leave": Leave(actions=True, sql=True),
        "token": TOKEN,
    }
    window = visit(serve(survey, feed=feed, **options))
    page = window.open("/views/lake.default.by_store")
    page.get_by_role("link", name="Log in", exact=True).first.click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    window.open("/views/lake.default.by_store")
    page.get_by_role("link", name="Show some rows").click()
    expect(page.locator("#rows tbody tr")).to_have_count(3, timeout=60_000)
    page.get_by_role("button", name="Verify").click()
    expect(page.locator(".notice.good")).to_contain_text("exact", timeout=120_000)
    wh.spark.sql("INSERT INTO sales VALUES (4, 'd', 1)")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator(".notice.good").first).to_contain_text(
        re.compile(r"epoch \d+: \d views"), timeout=120_000
    )
    window.open("/sql")
    page.get_by_label("Query").fill("SELECT store FROM by_store WHERE qty = 1 AND store > 2 -- pinned")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("main tbody td")).to_have_text("4", timeout=60_000)
    page.get_by_label("Query").fill("DROP TABLE sales")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("main .notice.bad")).to_contain_text("DROP is a statement", timeout=60_000)
    window.shoot("spark-sql")


def test_a_query_is_one_select_with_a_limit_of_rows_and_time(
    warehouse: tuple[Warehouse, Survey, Feed],
) -> None:
    actions = WarehouseActions(lambda: warehouse[0])
    found = actions.query("SELECT id FROM range(100);", 10, 60.0)
    assert len(found.rows) == 10 and found.more
    for refused in ("SELECT 1; SELECT 2", "INSERT INTO sales VALUES (1)", "SELECT reflect('a', 'b')",
                    "SELECT * FROM parquet.`/etc`", "SELECT * FROM text.`viewkeeper.yml`",
                    "SELECT * FROM `com.databricks.spark.csv`.`/etc/passwd`", "SET a=b", ""):  # fmt: skip
        with pytest.raises(vk.ViewkeeperError):
            actions.query(refused, 10, 60.0)
    with pytest.raises(WebError, match="VK-WEB-TIME"):
        actions.query("SELECT count(*) FROM range(1000000000000) a WHERE sin(id) > 2", 10, 2.0)


def test_a_warehouse_that_is_not_there_yet(
    tmp_path: Path, serve: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    with Ledger.open(sqlite_url(tmp_path / "empty.db")) as ledger:
        window = visit(serve(Survey(ledger)))
        for path, told in {"/": "No views yet", "/epochs": "No epochs yet", "/sources": "No sources yet",
                           "/lattice": "No views yet", "/trees": "No joins"}.items():  # fmt: skip
            expect(window.open(path).locator("main")).to_contain_text(told)
