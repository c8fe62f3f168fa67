"""The history as a table: of pandas, of Spark, and as JSON."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timezone
from typing import Any

import pytest

from viewkeeper.results import Epoch, History, ViewRefresh

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
MOVED = ViewRefresh(
    "lake.default.a", "incremental", "merge groups", None, 60, 10, 20, 30, 1.5, 0.5, method="sdbatch",
    prices={"sdbatch": 1.8, "fullrecomp": 4.0}, because="about 1.8 s by sdbatch, against 4.0 s",
)  # fmt: skip
STILL = ViewRefresh("lake.default.b", "unchanged", None, "no source changed", 0, 0, 0, 0, 0.0, 0.0)
HISTORY = History([Epoch(7, {}, [MOVED, STILL], NOON)])

COLUMNS = [
    "epoch",
    "published_at",
    *(field.name for field in fields(ViewRefresh)),
    "expected_seconds",
    "compute_install_ratio",
]


class Session:
    """Keeps what it is to make a frame of."""

    def createDataFrame(self, rows: list[tuple[Any, ...]], schema: str) -> Session:  # noqa: N802
        self.rows, self.columns = rows, [each.split(" ")[0] for each in schema.split(", ")]
        return self


def test_pandas() -> None:
    pytest.importorskip("pandas")
    frame = HISTORY.to_pandas()
    assert list(frame.columns) == COLUMNS
    assert frame["compute_install_ratio"].tolist()[0] == 3.0
    assert frame["expected_seconds"].tolist()[0] == 1.8
    assert frame["because"].tolist()[0] == MOVED.because
    assert list(History([]).to_pandas().columns) == COLUMNS


def test_spark() -> None:
    session: Any = Session()
    HISTORY.to_spark(session)
    assert session.columns == COLUMNS
    moved, still = (dict(zip(COLUMNS, row, strict=True)) for row in session.rows)
    assert (moved["epoch"], moved["prices"], moved["compute_install_ratio"]) == (7, MOVED.prices, 3.0)
    assert (still["reason"], still["compute_install_ratio"]) == ("no source changed", None)


def test_json() -> None:
    moved, still = HISTORY[0].to_dict()["views"]
    assert [*moved] == COLUMNS[2:]
    assert (moved["expected_seconds"], moved["compute_install_ratio"]) == (1.8, 3.0)
    assert (still["expected_seconds"], still["compute_install_ratio"]) == (None, None)
