"""OpenLineage's events, against the required fields of its specification."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.algebra.relations import Aggregate, AggregateCall, Field, Join, Project, Scan
from viewkeeper.algebra.scalars import Named, column, compose
from viewkeeper.analyse.analysis import Analysis, QueryText, TableHole
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.service_settings import LineageSettings
from viewkeeper.events import EpochAbandoned, EpochPublished, EpochStarted
from viewkeeper.library import KnownView
from viewkeeper.plan.layout import bag_layout
from viewkeeper.service.lineage import Lineage, sink

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


def view(name: str, *tables: str, **sources: Any) -> KnownView:
    definition = ViewDefinition(
        tuple(name.split(".")), f"SELECT * FROM {tables[0]}", SessionPins("lake", ("d",), "UTC")
    )
    analysis = Analysis(QueryText(tuple(TableHole(table, None) for table in tables)), None, None)
    layout = bag_layout([("id", "int"), ("amount", "decimal(10,2)")], None)
    return KnownView(name, "d1", definition, analysis, layout, sources)


@pytest.fixture
def told() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def lineage(told: list[dict[str, Any]]) -> Lineage:
    orders = {"columns": [["id", "int", 1], ["amount", "decimal(10,2)", 2]], "identity": None}
    known = {"lake.d.v": view("lake.d.v", "orders", orders=orders), "lake.d.w": view("lake.d.w", "lake.d.v")}
    return Lineage("shop", lambda: known, told.append, lambda: NOON)


def test_an_epoch_is_the_parent_of_its_views(lineage, told):
    lineage(EpochStarted(7, ("lake.d.v", "lake.d.w")))
    lineage(EpochPublished(7))
    assert [(each["eventType"], each["job"]["name"]) for each in told] == [
        (kind, job) for kind in ("START", "COMPLETE") for job in ("epoch", "lake.d.v", "lake.d.w")
    ]
    for each in told:
        assert {"eventTime", "run", "job", "producer", "schemaURL"} <= each.keys()
        assert datetime.fromisoformat(each["eventTime"]).tzinfo is not None
        uuid.UUID(each["run"]["runId"])
        assert each["job"]["namespace"] == "shop"
        for facets in (each["run"]["facets"], each["job"]["facets"]):
            assert all({"_producer", "_schemaURL"} <= facet.keys() for facet in facets.values())
    begun, done = told[:3], told[3:]
    assert [each["run"]["runId"] for each in begun] == [each["run"]["runId"] for each in done]
    assert len({each["run"]["runId"] for each in begun}) == 3
    assert all(
        each["run"]["facets"]["parent"]["run"] == {"runId": begun[0]["run"]["runId"]} for each in begun[1:]
    )
    assert done[1]["run"]["facets"]["viewkeeper_epoch"]["epoch"] == 7


def test_inputs_outputs_and_their_columns(lineage, told):
    lineage(EpochStarted(7, ("lake.d.v", "lake.d.w")))
    fields = [{"name": "id", "type": "int"}, {"name": "amount", "type": "decimal(10,2)"}]
    for event, read in zip(told[1:], ("orders", "lake.d.v"), strict=True):
        assert [each["name"] for each in event["inputs"]] == [read]
        assert event["inputs"][0]["facets"]["schema"]["fields"] == fields
        assert event["outputs"][0]["name"] == event["job"]["name"]
        assert event["outputs"][0]["facets"]["schema"]["fields"] == fields
    assert told[1]["job"]["facets"]["sql"]["query"] == "SELECT * FROM orders"


def test_a_failure_says_why_and_the_next_epoch_is_another_run(lineage, told):
    lineage(EpochStarted(7, ("lake.d.v",)))
    lineage(EpochAbandoned(7, "division by zero"))
    lineage(EpochPublished(7))
    lineage(EpochStarted(8, ("lake.d.v",)))
    assert [each["eventType"] for each in told] == ["START", "START", "FAIL", "FAIL", "START", "START"]
    assert told[3]["run"]["facets"]["errorMessage"]["message"] == "division by zero"
    assert told[4]["run"]["runId"] != told[0]["run"]["runId"]


def test_a_file_of_json_lines(tmp_path: Path):
    box = sink(LineageSettings(file="lineage.jsonl"), tmp_path, lambda: None)
    box.put({"eventType": "START"})
    box.put({"eventType": "COMPLETE"})
    box.close()
    lines = (tmp_path / "lineage.jsonl").read_text().splitlines()
    assert [json.loads(line)["eventType"] for line in lines] == ["START", "COMPLETE"]


def test_a_server_that_is_down_costs_events_and_nothing_else(tmp_path: Path, monkeypatch, caplog):
    monkeypatch.setenv("LINEAGE_TOKEN", "SECRET")
    lost: list[int] = []
    settings = LineageSettings.model_validate(
        {"url": "http://127.0.0.1:1/api?key=SECRET", "token": {"env": "LINEAGE_TOKEN"}, "timeout": "1 second"}
    )
    box = sink(settings, tmp_path, lambda: lost.append(1))
    box.put({"eventType": "START"})
    box.close()
    assert lost == [1]
    assert "127.0.0.1 did not answer" in caplog.text
    assert "SECRET" not in caplog.text


def test_of_each_column_what_it_is_made_of(told):
    orders = Scan("orders", (Field("id", "id"), Field("qty", "qty"), Field("price", "price")))
    people = Scan("people", (Field("id", "person"), Field("name", "name")))
    joined = Join((orders, people), (compose(column("id"), " = ", column("person")),))
    worth = Project(
        joined, (Named("who", column("name")), Named("worth", compose(column("qty"), " * ", column("price"))))
    )
    sums = Aggregate(
        worth, ("who",), (AggregateCall("total", "sum", (column("worth"),)), AggregateCall("n", "count"))
    )
    known = view("lake.d.v", "orders", "people")
    known = replace(known, analysis=replace(known.analysis, relation=sums))
    lineage = Lineage("shop", lambda: {"lake.d.v": known}, told.append, lambda: NOON)
    lineage(EpochStarted(1, ("lake.d.v",)))
    fields = told[1]["outputs"][0]["facets"]["columnLineage"]["fields"]
    made = {
        name: [
            (each["name"], each["field"], each["transformations"][0]["subtype"])
            for each in entry["inputFields"]
        ]
        for name, entry in fields.items()
    }
    assert made == {
        "who": [("people", "name", "IDENTITY")],
        "total": [("orders", "price", "TRANSFORMATION"), ("orders", "qty", "TRANSFORMATION")],
        "n": [],
    }
