"""``viewkeeper doctor``: is everything there that viewkeeper needs? If not, what to do.

Each check looks at one thing and says what it found. Nothing is made or changed; Spark is started only when
it is asked for.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from rich.table import Table
from rich.text import Text

from viewkeeper.cli.opening import ledger_url, warehouse_folder
from viewkeeper.cli.output import Output
from viewkeeper.define.place import Place, find_project, load_place
from viewkeeper.errors import ViewkeeperError, words_of
from viewkeeper.jars import PACKAGES, cache_folder, jar_name
from viewkeeper.java import java_problem, java_version
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.inspecting import inspect_ledger
from viewkeeper.memory import driver_memory, in_bytes, machine_memory
from viewkeeper.overview import Overview
from viewkeeper.redacting import redacted
from viewkeeper.results import SourceStatus
from viewkeeper.sql.quoting import quote

_LITTLE_HEAP = 2**30
_LITTLE_DISK, _HARDLY_ANY_DISK = 5 * 2**30, 500 * 2**20
_FETCH = "python -m viewkeeper.jars fetches them now; else the first start of Spark does."


class State(Enum):
    """What a check came to."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


_STYLES = {State.OK: "green", State.WARN: "yellow", State.FAIL: "bold red"}


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and what to do about it."""

    name: str
    state: State
    found: str
    remedy: str | None = None


def doctor(output: Output, folder: Path | None, *, spark: bool) -> int:
    """Look at everything; 1 if something fails."""
    found = list(checks(folder, spark=spark))
    ok = all(check.state is not State.FAIL for check in found)
    document = [{**asdict(check), "state": check.state.value} for check in found]
    output.answer({"ok": ok, "checks": document}, _table(found))
    return 0 if ok else 1


def checks(folder: Path | None, *, spark: bool) -> Iterator[Check]:
    """Of the machine first, then of the project."""
    yield _python()
    yield _pyspark()
    project, place = _project(folder)
    connect = place is not None and place.settings.connection.remote is not None
    yield _java(needed=not connect)
    yield _looked_at("memory", _memory)
    if not connect:
        yield _jars()
    yield _disk(Path.cwd() if place is None else place.folder)
    yield project
    if place is None:
        return
    ledger = _looked_at("ledger", lambda: _ledger(place))
    yield ledger
    yield _looked_at("catalog", lambda: _catalog(place))
    if ledger.state is not State.FAIL:
        yield from _looked_at_each("sources", lambda: _sources(place))
    if spark:
        yield from _looked_at_each("Spark", lambda: _spark(place))


def _looked_at(name: str, look: Callable[[], Check]) -> Check:
    """An error is a finding, too."""
    return next(_looked_at_each(name, lambda: iter([look()])))


def _looked_at_each(name: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look()
    except ViewkeeperError as error:
        yield Check(name, State.FAIL, error.message, error.hint)
    except Exception as error:  # Spark's own, of many classes
        said = next(iter(words_of(error).strip().splitlines()), type(error).__name__)
        yield Check(name, State.FAIL, redacted(said))


def _python() -> Check:
    return Check("Python", State.OK, f"{platform.python_version()} at {sys.executable}")


def _pyspark() -> Check:
    # Its version is asked of the package's metadata: to import it takes half a second.
    try:
        return Check("PySpark", State.OK, importlib.metadata.version("pyspark"))
    except importlib.metadata.PackageNotFoundError:
        return Check("PySpark", State.FAIL, "it is not installed", "pip install 'pyspark>=4.1,<4.2'")


def _java(*, needed: bool) -> Check:
    problem = java_problem()
    if problem is None:
        return Check("Java", State.OK, java_version() or "found")
    what, _, remedy = problem.partition("\n")
    if not needed:
        return Check("Java", State.OK, "not needed: Spark runs elsewhere, and is spoken to by Connect")
    return Check("Java", State.FAIL, what, " ".join(remedy.split()))


def _memory() -> Check:
    heap, total = driver_memory(), machine_memory()
    of = "" if total is None else f" of {_gigabytes(total)}"
    found = f"{heap}{of} for Spark's heap"
    if total is not None and in_bytes(heap) > total:
        return Check("memory", State.FAIL, found, "Set VIEWKEEPER_DRIVER_MEMORY to less, such as 2g.")
    if in_bytes(heap) < _LITTLE_HEAP:
        return Check("memory", State.WARN, found, "Set VIEWKEEPER_DRIVER_MEMORY to 1g or more.")
    return Check("memory", State.OK, found)


def _jars() -> Check:
    folder = cache_folder() / "jars"
    missing = [package for package in PACKAGES if not (folder / jar_name(package)).is_file()]
    if missing:
        found = f"{len(missing)} of {len(PACKAGES)} are not in {folder}"
        return Check("jars", State.WARN, found, _FETCH)
    return Check("jars", State.OK, f"{len(PACKAGES)} in {folder}")


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{_gigabytes(free)} free in {folder}"
    state = State.FAIL if free < _HARDLY_ANY_DISK else State.WARN if free < _LITTLE_DISK else State.OK
    remedy = "Make room; `viewkeeper maintain` removes what old epochs left."
    return Check("disk", state, found, None if state is State.OK else remedy)


def _project(folder: Path | None) -> tuple[Check, Place | None]:
    """The project's files, with its SQL; a command may be run outside of a project."""
    try:
        where = folder or find_project(Path.cwd())
    except ViewkeeperError as error:
        return Check("project", State.WARN, f"none here: {error.message}", error.hint), None
    from viewkeeper.define.project import load_project  # reads SQL: a parser is loaded for it

    try:
        project, place = load_project(where), load_place(where)
    except ViewkeeperError as error:
        found = f"{error.message} ({error.position})" if error.position else error.message
        return Check("project", State.FAIL, found, error.hint), None
    files = len({statement.file for statement in project.statements})
    found = f"{project.name}: {len(project.statements)} views in {files} files, {project.folder}"
    return Check("project", State.OK, found), place


def _ledger(place: Place) -> Check:
    if _no_ledger(place):
        return Check("ledger", State.OK, "none yet: the first refresh makes it")
    found = inspect_ledger(ledger_url(place, create=False))
    if found.version == 0:
        return Check("ledger", State.OK, f"{found.where} is empty: the first refresh fills it")
    schema = f"schema version {found.version}"
    if found.version < found.known:
        schema += f", to become {found.known} when it is next opened"
    epoch = "no epoch yet" if found.latest is None else f"epoch {found.latest}"
    said = f"{found.where}: {schema}, {epoch}"
    if found.holder is None:
        return Check("ledger", State.OK, said)
    until = found.holder.expires_at.astimezone().strftime("%H:%M:%S")
    remedy = f"A second refresh is refused meanwhile; if that process is gone, wait until {until}."
    return Check("ledger", State.WARN, f"{said}, {found.holder.holder} is refreshing", remedy)


def _catalog(place: Place) -> Check:
    connection = place.settings.connection
    if connection.master or connection.remote:
        where = redacted(connection.master or connection.remote or "")
        said = f"{connection.catalog or 'lake'} at {where}"
        return Check("catalog", State.OK, f"{said}: not asked; --spark does")
    file = _embedded_file(place, "catalog.db")
    if not file.is_file():
        return Check("catalog", State.OK, "none yet: the first refresh makes it")
    try:
        with sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True) as opened:
            (tables,) = opened.execute("SELECT count(*) FROM iceberg_tables").fetchone()
        opened.close()
    except sqlite3.Error as error:
        remedy = "Restore the file from a backup of the same time as the ledger."
        return Check("catalog", State.FAIL, f"{file} cannot be read: {error}", remedy)
    return Check("catalog", State.OK, f"{file}: {tables} tables and views")


def _sources(place: Place) -> Iterator[Check]:
    """The declared sources, as far as they can be asked without Spark."""
    if _no_ledger(place):
        return
    url = ledger_url(place, create=False)
    found = inspect_ledger(url)
    if found.version < found.known:
        return  # to open it would migrate it
    overview = Overview(Ledger.open(url), place.default)
    try:
        for source in overview.sources():
            yield _source(source)
    finally:
        overview.close()


def _source(source: SourceStatus) -> Check:
    name = f"source {source.name}"
    if source.problem is not None:
        remedy = f"`viewkeeper sources check {source.name}` says more."
        return Check(name, State.FAIL, f"{source.kind}: {source.problem}", remedy)
    if source.bad_rows:
        remedy = f"They are in wh.quarantine({source.name!r}), with the reason."
        return Check(name, State.WARN, f"{source.kind}: {source.bad_rows:,} bad rows are set aside", remedy)
    if source.lag_transactions is not None:
        return Check(
            name, State.OK, f"{source.kind}: it answers, {source.lag_transactions:,} transactions wait"
        )
    return Check(name, State.OK, f"{source.kind}: declared; --spark asks it")


def _spark(place: Place) -> Iterator[Check]:
    """Start Spark, and ask the catalog and the sources through it."""
    from viewkeeper.cli.commands import open_warehouse
    from viewkeeper.define.project import load_project

    with open_warehouse(load_project(place.folder)) as warehouse:
        yield Check("Spark", State.OK, f"{warehouse.spark.version} starts")
        namespaces = warehouse.spark.sql(f"SHOW NAMESPACES IN {quote(warehouse.catalog)}").count()
        yield Check("catalog", State.OK, f"{warehouse.catalog} answers: {namespaces} namespaces")
        for name, problems in warehouse.check_sources().items():
            said = "; ".join(problems) or "it can be read"
            state = State.FAIL if problems else State.OK
            yield Check(f"source {name}", state, said)


def _no_ledger(place: Place) -> bool:
    return place.settings.connection.ledger is None and not _embedded_file(place, "ledger.db").is_file()


def _embedded_file(place: Place, name: str) -> Path:
    return warehouse_folder(place) / name


def _gigabytes(amount: int) -> str:
    return f"{amount / 2**30:.1f} GiB"


def _table(found: list[Check]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in found:
        said = Text(check.found)
        if check.remedy is not None:
            said.append(f"\n→ {check.remedy}", style="dim" if check.state is State.OK else "")
        table.add_row(Text(check.state.value, style=_STYLES[check.state]), Text(check.name), said)
    return table
