"""OpenLineage's run events: which views an epoch made from what.

An epoch is a run of the job *epoch*; each of its views is a run of a job of its own, whose parent is that of
the epoch. ``START`` comes when an epoch begins, ``COMPLETE`` when it is published, ``FAIL`` when it is given
up. Events are built here from what is known, without a question to anybody; ``sink`` delivers them.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

from viewkeeper.algebra.provenance import contributors, scan_origin
from viewkeeper.algebra.relations import Relation
from viewkeeper.define.clock import is_clock
from viewkeeper.define.service_settings import LineageSettings
from viewkeeper.events import EpochAbandoned, EpochPublished, EpochStarted, Event
from viewkeeper.library import KnownView
from viewkeeper.service.outbox import Outbox
from viewkeeper.service.posting import post_json

PRODUCER = "https://pypi.org/project/viewkeeper"
_SPEC = "https://openlineage.io/spec"
_RUN_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
EPOCH_JOB = "epoch"

Json: TypeAlias = dict[str, Any]
Columns: TypeAlias = Iterable[tuple[str, str | None]]


def run_event(kind: str, at: datetime, run: Json, job: Json, inputs: list[Json], outputs: list[Json]) -> Json:
    """One event of a run."""
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "run": run,
        "job": job,
        "inputs": inputs,
        "outputs": outputs,
        "producer": PRODUCER,
        "schemaURL": _RUN_EVENT,
    }


def facet(name: str, version: str, **content: object) -> Json:
    """A facet of the specification."""
    title = name[0].upper() + name[1:]
    return {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version}/{title}.json", **content}


class Lineage:
    """Follows epochs, and hands on their events. Threads may call it."""

    def __init__(
        self,
        namespace: str,
        views: Callable[[], Mapping[str, KnownView]],
        deliver: Callable[[Json], None],
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._namespace = namespace
        self._views = views
        self._deliver = deliver
        self._clock = clock
        self._lock = threading.Lock()
        self._run: tuple[uuid.UUID, int, dict[str, KnownView]] | None = None

    def __call__(self, event: Event) -> None:
        """Take in an event of an epoch."""
        with self._lock:
            match event:
                case EpochStarted():
                    known = self._views()
                    views = {name: known[name] for name in event.views if name in known}
                    self._run = (uuid.uuid4(), event.epoch, views)
                    self._tell("START")
                case EpochPublished() if self._run is not None:
                    self._tell("COMPLETE")
                    self._run = None
                case EpochAbandoned() if self._run is not None:
                    self._tell("FAIL", error=event.error)
                    self._run = None

    def _tell(self, kind: str, error: str | None = None) -> None:
        assert self._run is not None
        epoch_run, epoch, views = self._run
        at = self._clock()
        failure = {}
        if error is not None:
            failure["errorMessage"] = facet(
                "errorMessageRunFacet", "1-0-1", message=error, programmingLanguage="SQL"
            )
        mark = {"viewkeeper_epoch": {**facet("runFacet", "1-0-0"), "epoch": epoch}}
        whole = {"runId": str(epoch_run), "facets": {**mark, **failure}}
        self._deliver(run_event(kind, at, whole, self._job(EPOCH_JOB), [], []))
        parent = facet(
            "parentRunFacet",
            "1-0-1",
            run={"runId": str(epoch_run)},
            job={"namespace": self._namespace, "name": EPOCH_JOB},
        )
        for name, view in views.items():
            run = {
                "runId": str(uuid.uuid5(epoch_run, name)),
                "facets": {"parent": parent, **mark, **failure},
            }
            inputs = [self._dataset(table, self._columns_of(view, table)) for table in view.analysis.tables]
            outputs = [self._dataset(name, _columns(view), self._column_lineage(view))]
            job = self._job(name, view.definition.query)
            self._deliver(run_event(kind, at, run, job, inputs, outputs))

    def _job(self, name: str, query: str | None = None) -> Json:
        facets = {}
        if query is not None:
            facets["sql"] = facet("sQLJobFacet", "1-0-1", query=query)
        return {"namespace": self._namespace, "name": name, "facets": facets}

    def _column_lineage(self, view: KnownView) -> Json:
        """Of each column the columns that it is made of; of a query that is not followed, none."""
        relation = view.analysis.relation
        if relation is None:
            return {}
        fields = {column: {"inputFields": self._made_of(relation, column)} for column in relation.columns}
        return {"columnLineage": facet("columnLineageDatasetFacet", "1-2-0", fields=fields)}

    def _made_of(self, relation: Relation, column: str) -> list[Json]:
        same = scan_origin(relation, column)
        unchanged = None if same is None else (same[0].table, same[1])
        return [
            {
                "namespace": self._namespace,
                "name": table,
                "field": field,
                "transformations": [
                    {
                        "type": "DIRECT",
                        "subtype": "IDENTITY" if (table, field) == unchanged else "TRANSFORMATION",
                    }
                ],
            }
            for table, field in sorted(contributors(relation, column))
            if not is_clock(table)
        ]

    def _dataset(self, name: str, columns: Columns, lineage: Json | None = None) -> Json:
        fields = [
            {"name": column, **({"type": kind} if kind is not None else {})} for column, kind in columns
        ]
        facets = {"schema": facet("schemaDatasetFacet", "1-1-1", fields=fields)} if fields else {}
        return {"namespace": self._namespace, "name": name, "facets": {**facets, **(lineage or {})}}

    def _columns_of(self, view: KnownView, table: str) -> Columns:
        """Of what a view reads, as far as it is known."""
        facts = view.sources.get(table)
        if facts is not None:
            return [(str(column[0]), str(column[1])) for column in facts["columns"]]
        parent = self._run[2].get(table) if self._run is not None else None
        return [] if parent is None else _columns(parent)


def _columns(view: KnownView) -> Columns:
    kinds = view.layout.types or (None,) * len(view.layout.columns)
    return list(zip(view.layout.columns, kinds, strict=False))


def sink(settings: LineageSettings, folder: Path, lost: Callable[[], None]) -> Outbox[Json]:
    """Where the settings say that events go. One that is down disturbs nobody."""
    token = settings.token.resolve() if settings.token else None
    file = folder / settings.file if settings.file else None

    def deliver(event: Json) -> None:
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(event, ensure_ascii=False) + "\n")
        if settings.url is not None:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            post_json(settings.url, json.dumps(event).encode(), settings.timeout, headers)

    return Outbox("lineage", deliver, lost, patience=settings.timeout)
