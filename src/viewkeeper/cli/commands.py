"""What each command does. ``main.py`` only declares them, so that ``--help`` need not load all this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import RenderableType

from viewkeeper.cli.explaining import explained
from viewkeeper.cli.opening import DEFAULT_WAREHOUSE, opened_overview
from viewkeeper.cli.output import Output
from viewkeeper.cli.progress import showing
from viewkeeper.cli.tables import (
    constraints_table,
    propagated_table,
    rates_table,
    refresh_table,
    summary_line,
    upkeep_table,
    verification_table,
)
from viewkeeper.define.project import Project, find_project, load_project
from viewkeeper.define.template import init_project
from viewkeeper.editing import replace_query
from viewkeeper.events import Event
from viewkeeper.plan.prices import rates_as_json
from viewkeeper.plan.situation import Aggregates, Joins, Options
from viewkeeper.results import Epoch
from viewkeeper.warehouse import Warehouse, connect


def init(output: Output, folder: Path, name: str | None) -> int:
    """Write a new project."""
    files = init_project(folder, name or folder.absolute().name)
    shown = "\n".join(f"  {file.relative_to(folder.absolute())}" for file in files)
    output.answer(
        {"project": folder.absolute(), "files": files},
        f"A project in {folder}:\n{shown}\n\n"
        f"Next:\n  cd {folder}\n  python make_orders.py      makes a table of orders\n"
        "  viewkeeper refresh         creates the views and fills them\n"
        "  python make_orders.py      a day passes\n"
        "  viewkeeper plan            what changed, and what it would do\n"
        "  viewkeeper refresh         only what changed is computed",
    )
    return 0


def plan(output: Output, folder: Path | None, views: Sequence[str], policy: str | None) -> int:
    """Show what a refresh would do, and touch nothing."""
    with _opened(folder) as (project, warehouse):
        pending = warehouse.apply(project, dry_run=True)
        found = warehouse.plan(*views, policy=policy)
        document = {
            "pending": pending,
            "views": [
                {
                    "view": view.view,
                    "strategy": view.strategy.value,
                    "reason": view.reason,
                    "changed": list(view.changed),
                }
                for view in found.views
            ],
            "plan": found.to_json(),
        }
        output.answer(document, *(f"To do: {change}" for change in pending), str(found))
    return 0


def propagate(output: Output, folder: Path | None, views: Sequence[str], policy: str | None) -> int:
    """Compute the deltas now, and keep them for a later refresh."""
    with _receiver(output) as receive, _opened(folder, receive) as (_, warehouse):
        kept = warehouse.propagate(*views, policy=policy)
    if kept.id is None:
        output.answer(kept.to_dict(), "Nothing changed: there is nothing to propagate.")
    else:
        advice = "Install it with `viewkeeper refresh --propagated`."
        output.answer(kept.to_dict(), propagated_table(kept.views), advice)
    return 0


def install_propagated(output: Output, folder: Path | None) -> int:
    """Install exactly what was kept."""
    with _receiver(output) as receive, _opened(folder, receive) as (_, warehouse):
        epoch = warehouse.refresh(propagated=True)
    output.answer({"applied": [], "epoch": epoch.to_dict()}, *_closing(epoch))
    return 0


def refresh(
    output: Output, folder: Path | None, views: Sequence[str], policy: str | None, *, prune: bool
) -> int:
    """Apply the project's definitions, then refresh."""
    with _receiver(output) as receive, _opened(folder, receive) as (project, warehouse):
        applied = warehouse.apply(project, prune=prune)
        epoch = warehouse.refresh(*views, policy=policy, on_error=project.settings.on_error)
    for change in applied:
        output.note(change)
    for view, error in epoch.skipped.items():
        output.note(f"{view} was skipped: {error}")
    output.answer({"applied": applied, "epoch": epoch.to_dict()}, *_closing(epoch))
    return 1 if epoch.skipped else 0


def repair(output: Output, folder: Path | None, view: str) -> int:
    """Rebuild a view from the recorded versions."""
    with _receiver(output) as receive, _opened(folder, receive) as (_, warehouse):
        epoch = warehouse.repair(view)
    output.answer({"epoch": epoch.to_dict()}, *_closing(epoch))
    return 0


def explain(output: Output, folder: Path | None, view: str) -> int:
    """Show how a view is kept, with its SQL."""
    with _opened(folder) as (_, warehouse):
        found = warehouse.explain(view)
    output.answer(found.to_dict(), explained(output, found))
    return 0


def extend_lattice(output: Output, folder: Path | None, *, apply: bool) -> int:
    """Propose lattice-friendly changes, or make them in the project's files; 1 if one is in none of them."""
    project = _project(folder)
    with opened_overview(project.folder) as (_, overview):
        found = overview.lattice_extensions(project)
        queries = {each.view: overview.query_of(each.view) for each in found}
    told = [str(each) for each in found] or ["Nothing to add: see `dependencies:` in viewkeeper.yml."]
    left = []
    if apply:
        for each in found:
            changed = replace_query(project, each.view, queries[each.view], each.query)
            told.append(f"changed {changed}" if changed else f"{each.view} is in no file as it is kept now")
            left += [] if changed else [each.view]
        told += ["`viewkeeper refresh` applies it."] if len(left) < len(found) else []
    answer = {"extensions": [asdict(each) for each in found], "applied": apply, "not_found": left}
    output.answer(answer, "\n\n".join(told))
    return 1 if left else 0


def check_sources(output: Output, folder: Path | None, names: Sequence[str]) -> int:
    """Test sources; 1 if something is wrong with one."""
    with _opened(folder) as (_, warehouse):
        found = warehouse.check_sources(*names)
    ok = not any(found.values())
    told = [
        f"{name}: {problem}" for name, problems in found.items() for problem in problems or ["all is well"]
    ]
    output.answer({"ok": ok, "problems": found}, "\n".join(told) or "No sources are declared.")
    return 0 if ok else 1


def install_source(output: Output, folder: Path | None, name: str, *, run: bool) -> int:
    """What the owner of a source's tables has to run, for triggers to capture their changes."""
    from viewkeeper.installing_sources import install

    project = _project(folder)
    sql = install(project, name, run=run)
    output.answer({"source": name, "sql": sql, "run": run}, sql)
    return 0


def verify(output: Output, folder: Path | None, views: Sequence[str]) -> int:
    """Compare views with their queries; 1 if one differs."""
    with _opened(folder) as (_, warehouse):
        found = warehouse.verify(*views)
    ok = all(each.ok for each in found)
    wrong = [each.view for each in found if not each.ok]
    advice = [f"To mend it: viewkeeper repair {view}" for view in wrong]
    output.answer({"ok": ok, "views": found}, verification_table(found), *advice)
    return 0 if ok else 1


def verify_constraints(output: Output, folder: Path | None) -> int:
    """Check what the project declares of its tables; 1 if something does not hold."""
    with _opened(folder) as (project, warehouse):
        found = warehouse.verify_constraints(project)
    ok = all(each.ok for each in found)
    none = "The project declares no keys, foreign keys or dependencies."
    output.answer({"ok": ok, "constraints": found}, constraints_table(found) if found else none)
    return 0 if ok else 1


def maintain(
    output: Output,
    folder: Path | None,
    views: Sequence[str],
    keep_epochs: int | None,
    keep_days: float | None,
) -> int:
    """Keep the storage of views in shape."""
    with _opened(folder) as (_, warehouse):
        found = warehouse.maintain(*views, keep_epochs=keep_epochs, keep_days=keep_days)
    none = "No view has rows yet."
    output.answer({"views": [each.to_dict() for each in found]}, upkeep_table(found) if found else none)
    return 0


def calibrate(output: Output, folder: Path | None) -> int:
    """Measure what operations take, and choose by it from now on."""
    from viewkeeper.calibrating import calibrate as measure

    with _opened(folder) as (_, warehouse):
        rates = measure(warehouse, tell=lambda said: output.note(f"Measuring with {said} …"))
    output.answer({"rates": rates_as_json(rates)}, rates_table(rates))
    return 0


def _closing(epoch: Epoch) -> tuple[RenderableType, ...]:
    return (refresh_table(epoch.views), summary_line(epoch)) if epoch.views else (summary_line(epoch),)


@contextmanager
def _receiver(output: Output) -> Iterator[Callable[[Event], None]]:
    """Progress on the terminal; with ``--json`` nothing but the document."""
    if output.json:
        yield lambda event: None
    else:
        with showing(output.notes) as receive:
            yield receive


def _project(folder: Path | None) -> Project:
    return load_project(folder or find_project(Path.cwd()))


@contextmanager
def _opened(
    folder: Path | None, on_event: Callable[[Event], None] | None = None
) -> Iterator[tuple[Project, Warehouse]]:
    """The project that the command concerns, and its warehouse."""
    project = _project(folder)
    warehouse = open_warehouse(project, on_event)
    try:
        yield project, warehouse
    finally:
        warehouse.close()


def open_warehouse(project: Project, on_event: Callable[[Event], None] | None = None) -> Warehouse:
    """Connect to where the project's ``viewkeeper.yml`` says."""
    connection = project.settings.connection
    ledger = connection.ledger.resolve() if connection.ledger else None
    options = Options(aggregates=Aggregates(project.settings.aggregates), joins=Joins(project.settings.joins))
    if not (connection.master or connection.remote):
        folder = project.folder / (connection.warehouse or DEFAULT_WAREHOUSE)
        return connect(
            folder,
            namespace=project.namespace,
            ledger=ledger,
            on_event=on_event,
            options=options,
            foreign_keys=project.settings.references,
        )
    from viewkeeper.execute.ctrl_c import take_over_ctrl_c  # pyspark: only who needs it waits for it
    from viewkeeper.session import configured_session

    spark = configured_session(
        master=connection.master, remote=connection.remote, settings=dict(project.configuration)
    )
    take_over_ctrl_c(spark)
    return connect(
        None if ledger else project.folder / DEFAULT_WAREHOUSE,
        spark=spark,
        catalog=connection.catalog,
        namespace=project.namespace,
        ledger=ledger,
        on_event=on_event,
        options=options,
        foreign_keys=project.settings.references,
    )
