"""News for pages: of a refresh in this process, and of the ledger."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from viewkeeper.events import EpochAbandoned, EpochPublished, EpochStarted, Phase, StepFinished, StepStarted
from viewkeeper.survey import Survey
from viewkeeper.testing.ledgers import PaperWarehouse
from viewkeeper.web.feed import Feed, news_of


async def heard(feed: Feed, *, until: str, within: float = 20.0) -> list[tuple[str, dict[str, object]]]:
    """What a listener hears, up to the first news of a kind, or that says so."""
    found: list[tuple[str, dict[str, object]]] = []

    async def listen() -> None:
        async for text in feed.listen(heartbeat=0.5):
            if text.startswith("event: "):
                kind, data = text.strip().split("\n")
                found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
                if until in (found[-1][0], found[-1][1].get("text")):
                    return

    await asyncio.wait_for(listen(), within)
    return found


def test_events_of_a_refresh_are_told_in_words_and_the_last_to_newcomers() -> None:
    feed = Feed()
    feed.publish(EpochStarted(7, ("lake.default.a",)))
    feed.publish(StepStarted("lake.default.a", Phase.COMPUTE))

    async def scenario() -> list[tuple[str, dict[str, object]]]:
        listening = asyncio.create_task(heard(feed, until="changed"))
        await asyncio.sleep(0.05)
        feed.publish(StepFinished("lake.default.a", Phase.COMPUTE, 1.5, 1200))
        await asyncio.to_thread(feed.publish, EpochPublished(7))
        return await listening

    texts = [told.get("text") for _, told in asyncio.run(scenario())]
    assert texts == ["computing a", "compute of a: 1.5 s, 1,200 rows", "epoch 7 is published", None]


def test_a_failure_is_told_without_its_password() -> None:
    first, second = news_of(EpochAbandoned(7, "password=hush\nand more"))
    assert first.content["failed"] and "hush" not in first.text and second.kind == "changed"


def test_what_others_publish_is_noticed_in_the_ledger(paper: PaperWarehouse) -> None:
    feed = Feed(Survey(paper.ledger), every=0.05)

    async def scenario() -> list[tuple[str, dict[str, object]]]:
        listening = asyncio.create_task(heard(feed, until="epoch 3 is published"))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(paper.pass_day)
        await asyncio.to_thread(paper.refresh)
        return await listening

    news = asyncio.run(scenario())
    assert ("changed", {"epoch": 3}) in news


def test_a_ledger_that_is_gone_and_back_is_told_once_each(paper: PaperWarehouse, tmp_path: Path) -> None:
    feed = Feed(Survey(paper.ledger), every=0.05)

    async def scenario() -> list[tuple[str, dict[str, object]]]:
        listening = asyncio.create_task(heard(feed, until="recovered"))
        await asyncio.sleep(0.2)
        (tmp_path / "ledger.db").rename(tmp_path / "away.db")
        await asyncio.sleep(0.4)
        (tmp_path / "away.db").rename(tmp_path / "ledger.db")
        return await listening

    kinds = [kind for kind, _ in asyncio.run(scenario())]
    assert kinds == ["trouble", "recovered"]
