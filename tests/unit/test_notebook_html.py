"""What notebooks show: whole HTML, drawings among it, and nothing that a name could smuggle in."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from viewkeeper.ledger import Ledger
from viewkeeper.markup import table
from viewkeeper.overview import Overview
from viewkeeper.results import Epoch, History, Status, ViewRefresh
from viewkeeper.testing.ledgers import paper_ledger

MARKUP = "<script>alert('1')</script>&\""


@pytest.fixture(scope="module")
def overview(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Overview]:
    url = paper_ledger(tmp_path_factory.mktemp("notebook"), 6, 25, names=[MARKUP])
    with Ledger.open(url) as ledger:
        yield Overview(ledger, ("lake", "default"))


def parsed(shown: str) -> ElementTree.Element:
    """Strict: an element that is left open, or a bare < or &, is an error."""
    assert "<script" not in shown.lower()
    return ElementTree.fromstring(f"<div>{shown}</div>".replace("<br>", "<br/>"))


def texts(shown: str) -> str:
    return " ".join("".join(parsed(shown).itertext()).split())


def test_a_status_is_a_graph_and_a_table(overview: Overview) -> None:
    status = overview.status()
    shown = status._repr_html_()
    assert parsed(shown).findall(".//{http://www.w3.org/2000/svg}svg")
    assert len(parsed(shown).findall(".//tbody/tr")) == len(status) == 6
    assert "<script>alert" in texts(shown), "it is there, as text"


def test_a_warehouse_tells_its_epoch(overview: Overview) -> None:
    assert "epoch 25, published 2026-01-01" in texts(overview._repr_html_())


def test_a_history_is_a_chart_and_the_last_epochs(overview: Overview) -> None:
    shown = overview.history()._repr_html_()
    assert parsed(shown).findall(".//{http://www.w3.org/2000/svg}svg")
    assert "and 5 older epochs" in texts(shown)
    epochs = {row[0].text for row in parsed(shown).findall(".//tbody/tr")}
    assert epochs == {str(number) for number in range(6, 26)}


def test_an_epoch_with_its_views_and_what_was_skipped() -> None:
    refresh = ViewRefresh(MARKUP, "incremental", "merge", "<because>", 1234, 1, 2, 3, 0.5, 0.25)
    shown = Epoch(7, {}, [refresh], skipped={"<b>": "& so on"})._repr_html_()
    for each in ("Epoch 7", MARKUP, "<because>", "1,234", "<b> was skipped: & so on"):
        assert each in texts(shown)


def test_an_explanation_with_its_steps_and_sql(overview: Overview) -> None:
    shown = overview.explain_last(f"`{MARKUP}`")._repr_html_()
    assert len(parsed(shown).findall(".//ol/li")) >= 3
    assert "GROUP BY" in texts(shown) and parsed(shown).findall(".//details/pre")


def test_nothing_yet() -> None:
    assert "No views yet." in Status([])._repr_html_()
    assert "No epochs yet." in History([])._repr_html_()


def test_colours_go_by_words_and_not_by_names() -> None:
    assert "color:" in table(["state"], [["stale"]])
    assert "color:" not in table(["state"], [["stale sales"]])
