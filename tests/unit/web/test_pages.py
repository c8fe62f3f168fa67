"""What the pages say, how they escape it, and what they say when something is wrong."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

from viewkeeper.define.sources import SourceDefinition
from viewkeeper.learning import estimates
from viewkeeper.ledger.surveys import EpochSummary
from viewkeeper.survey import Survey
from viewkeeper.testing.ledgers import PaperWarehouse
from viewkeeper.testing.paper_views import PaperView

Make = Callable[..., TestClient]
SALES = "/views/lake.default.sales_in_full"
PAGES = (
    "/",
    SALES,
    "/views/lake.default.store_tree",
    "/epochs",
    "/epochs/2",
    "/sources",
    "/lattice",
    "/trees",
)


def text_of(answer: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer)))


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there_and_whole(console: Make, path: str) -> None:
    answer = console().get(path)
    assert answer.status_code == 200
    assert answer.text.rstrip().endswith("</html>")
    assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")


def test_a_view_tells_its_query_prices_history_and_expectations(console: Make) -> None:
    told = text_of(console().get("/views/lake.default.SID_sales").text)
    for expected in ("GROUP BY storeID, itemID, date", "bigint", "sdbatch", "✓ used"):
        assert expected in told
    assert re.search(r"positive_quantity TotalQuantity > 0 warn 3 3", told)
    assert "Δ(pos ⋈ stores)" in text_of(console().get(SALES).text)


def test_a_tree_shows_of_each_delta_what_the_ledger_holds(console: Make, paper: PaperWarehouse) -> None:
    counted = estimates(paper.ledger, "lake.default.sales_in_full")
    assert "pos ⋈ stores" in {each.part for each in counted}
    for path in ("/trees", SALES):
        told = text_of(console().get(path).text)
        for each in counted:
            delta = f"Δ({each.part})" if "⋈" in each.part else f"Δ{each.part}"
            assert f"{delta}: ≈ {each.estimated:,} estimated, = {each.actual:,} actual" in told


def test_the_reason_of_a_full_recompute_can_be_read(console: Make) -> None:
    assert "RECURSIVE_CTE" in text_of(console().get("/views/lake.default.store_tree").text)
    assert "RECURSIVE_CTE" in text_of(console().get("/epochs/2").text)


def test_a_failed_attempt_is_told_without_its_password(console: Make, paper: PaperWarehouse) -> None:
    number = paper.fail(
        "[VK-SOURCE] lake.default.SID_sales: postgresql://me:hush@db/x password=hush <b>no</b>"
    )
    for path in ("/", "/epochs", f"/epochs/{number}", "/views/lake.default.SID_sales"):
        answer = console().get(path).text
        assert "hush" not in answer and "<b>no</b>" not in answer
        assert "me:•••@db" in html.unescape(answer)
    assert "every view is as it was before" in text_of(console().get("/").text)


HOSTILE = ("<img src=x onerror=alert(1)>", "a/../b%", "q\"uo'te", "..", "ünïcode ?#&")


def test_a_view_that_the_service_gave_up_says_why(console: Make, paper: PaperWarehouse) -> None:
    (view, *_) = paper.ledger.views()
    for _ in range(5):
        paper.ledger.note_failure(view.name, view.definition_id, "password=hidden <i>", suspend_after=5)
    for path in ("/", f"/views/{view.name}"):
        page = console().get(path).text
        assert "Suspended" in page
        assert "5 times in a row" in page
        assert "password=hidden" not in page
        assert "<i>" not in page


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_with_markup_slashes_or_percents_is_but_a_name(
    console: Make, paper: PaperWarehouse, name: str
) -> None:
    query = "SELECT storeID, COUNT(*) AS n FROM pos GROUP BY storeID"
    paper.define([PaperView(name, query, "storeID INT, n BIGINT", "<script>alert(2)</script>")])
    client = console()
    home = client.get("/").text
    assert "<img" not in home and "<script>alert" not in home
    full = next(view for view in paper.views if paper.views[view].definition.name[-1] == name)
    path = f"/views/{quote(full, safe='')}"
    assert f'href="{path}"' in home
    answer = client.get(path)
    assert answer.status_code == 200 and "<img" not in answer.text
    assert name in text_of(answer.text)
    assert client.get("/lattice").status_code == client.get("/epochs/3").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/views/nothing",
        "/views/a/b",
        "/epochs/999",
        f"/epochs/{10**30}",
        "/epochs/" + "9" * 5000,
        "/epochs/x",
        "/nowhere",
        "/views/",
    ],
)
def test_what_is_not_there_is_told_so(console: Make, path: str) -> None:
    answer = console().get(path)
    assert answer.status_code == 404
    assert "Not found" in answer.text and "To the graph" in answer.text


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_no_file_but_the_static_ones(console: Make, path: str) -> None:
    answer = console().get(path)
    assert answer.status_code == 404 and "import" not in answer.text


def test_a_page_far_back_and_one_that_is_no_number(console: Make) -> None:
    assert console().get("/epochs?before=0").status_code == 200
    assert console().get("/epochs?before=1%20OR%201").status_code == 200
    assert console().get(f"/epochs?before={10**30}").status_code == 200


def test_a_ledger_that_goes_away_and_comes_back(
    console: Make, paper: PaperWarehouse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client, ledger, away = console(), tmp_path / "ledger.db", tmp_path / "away.db"
    assert client.get("/").status_code == 200
    ledger.rename(away)
    with caplog.at_level(logging.WARNING):
        answer = client.get("/")
    assert answer.status_code == 503 and "VK-LEDGER-UNREACHABLE" in answer.text
    assert "sqlite" not in answer.text and str(tmp_path) not in answer.text, "its address is for the terminal"
    assert "sqlite" in caplog.text
    assert not ledger.exists(), "asking must not make an empty one"
    away.rename(ledger)
    assert client.get("/").status_code == 200


def test_options_of_sources_hide_secrets_and_a_broken_one_says_so(
    console: Make, paper: PaperWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_PW", "hush-hush")
    options = (("host", "127.0.0.1"), ("port", "1"), ("database", "crm"), ("user", "vk"))
    hidden = (("password_env", "CRM_PW"), ("ssl_password", "hush-hush"))
    paper.declare(
        SourceDefinition("crm", "postgres", (*options, *hidden), ("customers",), (("capture", "slot"),)),
        "0/1",
    )
    answer = console().get("/sources").text
    assert "CRM_PW" in answer and "hush-hush" not in answer and "127.0.0.1" in answer
    assert "does not answer" not in answer, "it was not asked yet"


def test_pages_ask_the_ledger_a_few_times_however_much_it_holds(paper: PaperWarehouse) -> None:
    survey = Survey(paper.ledger)
    names = list(paper.views)

    def asked() -> dict[str, int]:
        counts: dict[str, int] = {}
        with paper.ledger.reading() as connection:
            engine = connection.engine
        ways = {
            "whole": survey.whole,
            "view": lambda: survey.view(names[0]),
            "epochs": survey.epochs,
            "epoch": lambda: survey.epoch(2),
            "sources": survey.sources,
            "lattice": survey.lattice,
            "plans": survey.plans,
        }
        for name, ask in ways.items():
            statements: list[str] = []

            def note(
                _c: object, _cursor: object, statement: str, *_: object, to: list[str] = statements
            ) -> None:
                to.append(statement)

            event.listen(engine, "before_cursor_execute", note)
            ask()
            event.remove(engine, "before_cursor_execute", note)
            counts[name] = len(statements)
        return counts

    asked()  # definitions and plans are read once
    few = asked()
    query = "SELECT storeID, COUNT(*) AS n FROM pos GROUP BY storeID"
    paper.define([PaperView(f"v{at}", query, "storeID INT, n BIGINT") for at in range(20)])
    paper.lengthen(200)
    asked()
    assert asked() == few
    assert max(few.values()) <= 14, few


def test_a_number_of_any_length_is_one(console: Make) -> None:
    first = text_of(console().get("/epochs").text)
    assert text_of(console().get(f"/epochs?before={'9' * 5000}").text) == first
    assert text_of(console().get(f"/epochs?before={'0' * 5000}2").text) != first


def test_every_attempt_that_failed_is_in_the_timeline(paper: PaperWarehouse) -> None:
    failed = [paper.fail("no") for _ in range(120)]
    epoch = paper.refresh()
    failed += [paper.fail("no") for _ in range(3)]
    survey, before, found = Survey(paper.ledger), None, []
    while True:
        page = survey.epochs(before)
        assert len(page.entries) <= 50
        found += page.entries
        before = page.older
        if before is None:
            break
    numbers = [each.id if isinstance(each, EpochSummary) else each.epoch for each in found]
    assert numbers == sorted(set(numbers), reverse=True)
    assert {*failed, epoch} <= set(numbers)
