"""What Spark really read, by its event log: the one place that also knows of what was staged."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

READ = "internal.metrics.input.recordsRead"


def write_to(folder: Path) -> Path:
    """Let the session that is started next write its log there."""
    log = folder / "events"
    log.mkdir(parents=True)
    settings = {"enabled": "true", "compress": "false", "dir": f"file:{log}"}
    told = " ".join(f"--conf spark.eventLog.{key}={value}" for key, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{told} pyspark-shell"
    return log


def counted_scans(log: Path, since: float, until: float, tables: Collection[str]) -> Counter[str]:
    """How often Spark read each source table: stages that scan it, each scan once."""
    found: dict[str, set[tuple[int, str]]] = {table: set() for table in tables}
    for stage in _stages(log, since, until):
        for table, scope in _scans(stage, tables):
            found[table].add((stage["Stage ID"], scope))
    return Counter({table: len(scans) for table, scans in found.items()})


def source_rows(log: Path, since: float, until: float, tables: Collection[str]) -> int:
    """How many rows left the scans of source tables, after pruning and pushed filters; where one stage scans
    storage, too, that is in it."""
    rows = 0
    for stage in _stages(log, since, until):
        if any(_scans(stage, tables)):
            read = (each["Value"] for each in stage.get("Accumulables", ()) if each.get("Name") == READ)
            rows += sum(int(value) for value in read)
    return rows


def _scans(stage: dict[str, Any], tables: Collection[str]) -> Iterator[tuple[str, str]]:
    """The source tables that a stage scans, each with the scan's id."""
    for rdd in stage["RDD Info"]:
        scope = json.loads(rdd["Scope"]) if rdd.get("Scope") else {}
        found = re.search(r"BatchScan lake\.default\.(\w+)\b(?!\.)", scope.get("name", ""))
        if found and found[1] in tables:
            yield found[1], scope["id"]


def _stages(log: Path, since: float, until: float) -> Iterator[dict[str, Any]]:
    for file in sorted(log.rglob("*")):
        if not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if '"SparkListenerStageCompleted"' in line:
                stage: dict[str, Any] = json.loads(line)["Stage Info"]
                if since * 1000 <= stage.get("Submission Time", 0) <= until * 1000:
                    yield stage
