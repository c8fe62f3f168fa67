"""What a person sees and does, in a real browser, on a ledger that needs no Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from viewkeeper.survey import Survey
from viewkeeper.testing.ledgers import PaperWarehouse
from viewkeeper.testing.paper_views import PaperView

if TYPE_CHECKING:
    from conftest import Visit

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
PAGES = {
    "graph": "/",
    "view": "/views/lake.default.sales_in_full",
    "recomputed-view": "/views/lake.default.store_tree",
    "epochs": "/epochs",
    "epoch": "/epochs/9",
    "failed-epoch": "/epochs/9999",
    "sources": "/sources",
    "lattice": "/lattice",
    "trees": "/trees",
    "login": "/login",
}
SERIOUS = ("serious", "critical")
FOCUS = """(() => {
  const at = document.activeElement;
  if (at === document.body) return [null, true];
  const mark = at.closest("svg") ? getComputedStyle(at.querySelector("rect")).strokeWidth : "";
  const visible = mark === "4px" || getComputedStyle(at).outlineStyle !== "none";
  return [at.getAttribute("href") || at.className, visible];
})()"""
"""What has the focus, and whether that can be seen."""


def problems(visit: Visit) -> list[str]:
    """What axe-core finds. It is run outside of the page's own policy, as a browser extension would be."""
    visit.page.evaluate(AXE)
    found = visit.page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['html'][:160]} {node.get('failureSummary', '')}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 375])
def test_every_page_is_accessible_and_fits(
    serve: Callable[..., str], visit: Callable[..., Visit], paper: PaperWarehouse, scheme: str, width: int
) -> None:
    failed = paper.fail("[VK-REFRESH] lake.default.sR_sales: a division by zero\nHint: Look at the query.")
    window = visit(
        serve(Survey(paper.ledger), token="a token that is long enough"), width=width, scheme=scheme
    )
    for name, path in PAGES.items():
        page = window.open(path.replace("9999", str(failed)))
        expect(page.locator("main h1")).to_be_visible()
        for details in page.locator("details").all():
            details.locator("summary").click()
        page.wait_for_timeout(100)
        window.shoot(f"{name}-{scheme}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} scrolls sideways"
        assert problems(window) == [], name


def test_a_new_epoch_appears_without_reloading(
    serve: Callable[..., str], visit: Callable[..., Visit], paper: PaperWarehouse
) -> None:
    window = visit(serve(Survey(paper.ledger)))
    page = window.open("/")
    page.evaluate("window.notReloaded = true")
    page.wait_for_timeout(1500)
    paper.pass_day(moved_stores=1)
    expect(page.locator(".tile.stale dd")).not_to_have_text("0", timeout=15_000)
    number = paper.refresh()
    expect(page.locator(".tile.wide dd a")).to_have_text(str(number), timeout=15_000)
    expect(page.locator(".tile.stale dd")).to_have_text("0")
    expect(page.locator("#live-text")).to_have_text(f"epoch {number} is published")
    assert page.evaluate("window.notReloaded")
    window.shoot("new-epoch")


def test_from_the_graph_to_the_reason_of_a_full_recompute(
    serve: Callable[..., str], visit: Callable[..., Visit], paper: PaperWarehouse
) -> None:
    window = visit(serve(Survey(paper.ledger)))
    page = window.open("/")
    page.locator("svg.vk-graph a", has_text="store_tree").click()
    expect(page.locator("h1")).to_contain_text("store_tree")
    expect(page.locator("#reason")).to_contain_text("RECURSIVE_CTE: a recursive WITH")
    page.locator("nav a", has_text="Epochs").click()
    page.locator("tbody a").first.click()
    expect(page.locator("td.why", has_text="recomputing is cheaper")).to_be_visible()
    expect(page.locator("svg.vk-waterfall")).to_be_visible()


def test_a_source_that_does_not_answer_is_seen(
    serve: Callable[..., str],
    visit: Callable[..., Visit],
    paper: PaperWarehouse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CRM_PW", "hush-hush")
    window = visit(serve(Survey(paper.ledger)))
    page = window.open("/sources")
    crm = page.locator(".card", has_text="crm")
    expect(crm).to_contain_text("password_env")
    page.get_by_role("link", name="Ask them now").click()
    expect(page.locator(".sub")).to_have_text("As they answered just now.", timeout=20_000)
    expect(crm.locator(".badge")).to_have_text("does not answer")
    expect(crm.locator(".notice.bad")).to_contain_text("crm")
    window.shoot("sources-asked")
    assert "hush-hush" not in page.content()
    page.locator("nav a", has_text="Graph").click()
    expect(page.locator("svg.vk-graph a", has_text="does not answer")).to_be_visible()


def test_the_history_chart_is_drawn_and_follows_the_mouse(
    serve: Callable[..., str], visit: Callable[..., Visit], paper: PaperWarehouse
) -> None:
    page = visit(serve(Survey(paper.ledger))).open("/views/lake.default.SID_sales")
    chart = page.locator(".chart .u-over")
    chart.hover()
    expect(page.locator(".chart .u-legend")).to_contain_text(re.compile(r"\d+, incremental, [\d,]+ rows"))


def test_all_can_be_reached_with_the_keyboard(
    serve: Callable[..., str], visit: Callable[..., Visit], paper: PaperWarehouse
) -> None:
    page = visit(serve(Survey(paper.ledger))).open("/")
    seen: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        where, visible = page.evaluate(FOCUS)
        if where is None:  # behind the last stop the focus leaves the page
            break
        seen.append(where)
        assert visible, f"the focus on {where} cannot be seen"
    assert seen[0] == "#page", "the first stop skips the navigation"
    views = [f"/views/lake.default.{name}" for name in ("SID_sales", "city_totals", "store_tree")]
    for wanted in ("/epochs", "/sources", "/lattice", "/trees", *views):
        assert wanted in seen
    page.goto(page.url)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page"


def test_a_name_with_markup_is_shown_as_it_is(
    serve: Callable[..., str], visit: Callable[..., Visit], paper: PaperWarehouse
) -> None:
    name = "<img src=x onerror=document.title='hacked'>/../%2e%2e \"'"
    query = "SELECT storeID, COUNT(*) AS n FROM pos GROUP BY storeID"
    paper.define([PaperView(name, query, "storeID INT, n BIGINT")])
    page = visit(serve(Survey(paper.ledger))).open("/")
    page.locator("tbody a", has_text="<img").first.click()
    expect(page.locator("h1")).to_contain_text(name)
    assert "hacked" not in page.title().split(" · ")[1]
    assert page.locator("main img").count() == 0


def test_a_ledger_that_goes_away_says_so_and_the_page_recovers(
    serve: Callable[..., str], visit: Callable[..., Visit], paper: PaperWarehouse, tmp_path: Path
) -> None:
    window = visit(serve(Survey(paper.ledger)))
    page = window.open("/epochs")
    page.wait_for_timeout(1500)
    (tmp_path / "ledger.db").rename(tmp_path / "away.db")
    expect(page.locator("#live-text")).to_contain_text("cannot be read now", timeout=15_000)
    page.reload()
    expect(page.locator("h1")).to_have_text("The ledger is away")
    (tmp_path / "away.db").rename(tmp_path / "ledger.db")
    expect(page.locator("h1")).to_have_text("Epochs", timeout=15_000)
    window.errors = [each for each in window.errors if "503" not in each]  # it was told, as it must be
