"""Brings a warehouse to what its project folder defines: new and changed views are created, views that the
project no longer has are dropped only when asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.holes import holes
from viewkeeper.analyse.statements import CreateCube, CreateSource, CreateView, parse_statement
from viewkeeper.declaring import declaration, declared_sources, same_declaration
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.define.place import SETTINGS_NAME
from viewkeeper.define.project import Project, Statement
from viewkeeper.define.settings import Policy
from viewkeeper.define.vdag import Vdag
from viewkeeper.errors import DefinitionError, Position
from viewkeeper.library import Library
from viewkeeper.maintainer import Maintainer
from viewkeeper.remote_views import declared_by_people, is_base_view
from viewkeeper.sql.quoting import parse_path, show_path

RETIMED = "set the lag or schedule of"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A view as the project defines it."""

    name: str
    statement: CreateView
    definition: ViewDefinition


def apply_project(maintainer: Maintainer, project: Project, *, prune: bool, dry_run: bool) -> list[str]:
    """Make (or with ``dry_run`` only list) the changes; each as a sentence."""
    maintainer.shop.engine.use(project.catalog, project.namespace)
    done = _apply_sources(maintainer, project, dry_run=dry_run)
    wanted = _wanted(maintainer, project)
    library = maintainer.shop.library()
    changes = {name: change for name in _in_order(wanted) if (change := _change(library, wanted[name]))}
    made = {
        name: replace(wanted[name].statement, replace=True)
        for name, change in changes.items()
        if change != RETIMED
    }
    if not dry_run and len(changes) > 1:  # a mistake in one of them leaves all as they are
        maintainer.views.check(tuple(made.values()))
    for name, change in changes.items():
        if not dry_run and name in made:
            maintainer.views.create(made[name])
        elif not dry_run:
            maintainer.views.retime(name, wanted[name].definition.timing)
        done.append(f"{change} {name}")
    views = [name for name, view in library.views.items() if not (view.hidden or is_base_view(view))]
    unwanted = [name for name in views if name not in wanted]
    for name in reversed([name for name in library.graph.order() if name in unwanted]):
        if prune and not dry_run:
            maintainer.views.drop(name)
        done.append(f"dropped {name}" if prune else f"{name} is not in the project (--prune drops it)")
    return done + _forget_sources(maintainer, project, prune=prune, dry_run=dry_run)


def _apply_sources(maintainer: Maintainer, project: Project, *, dry_run: bool) -> list[str]:
    """Before the views, which read them."""
    known = declared_sources(maintainer.shop.ledger)
    done = []
    for name, settings in project.settings.sources.items():
        statement = CreateSource(name, settings.kind, settings.told(project.folder), replace=True)
        before = known.get(name)
        if before is not None and same_declaration(before, declaration(statement)):
            continue
        if not dry_run:
            maintainer.sources.declare(statement)
        done.append(f"{'declared' if before is None else 'declared anew'} source {name}")
    return done


def _forget_sources(maintainer: Maintainer, project: Project, *, prune: bool, dry_run: bool) -> list[str]:
    """After the views, which read them."""
    done = []
    for source in declared_by_people(declared_sources(maintainer.shop.ledger).values()):
        name = source.name
        if name in project.settings.sources:
            continue
        if prune and not dry_run:
            maintainer.sources.forget(name, missing_ok=True)
        told = (
            f"dropped source {name}" if prune else f"source {name} is not in the project (--prune drops it)"
        )
        done.append(told)
    return done


def _wanted(maintainer: Maintainer, project: Project) -> dict[str, Wanted]:
    wanted: dict[str, Wanted] = {}
    for create, file, position in _creations(project):
        definition = maintainer.views.definition(create)
        name = show_path(definition.name)
        if name in wanted:
            raise DefinitionError(
                f"{file}: view {name} is defined twice",
                code="VK-VIEW-EXISTS",
                position=position,
                hint="Remove one of the two definitions.",
            )
        wanted[name] = Wanted(name, create, definition)
    for name in project.settings.unmet(wanted):
        raise DefinitionError(
            f"{SETTINGS_NAME} says something of {name}, and there is no such view",
            code="VK-PROJECT",
            hint="Write the name as the view's statement does.",
        )
    return wanted


def _creations(project: Project) -> Iterator[tuple[CreateView, str, Position | None]]:
    """The views of the project's files and those of its cubes, with the place of each."""
    for statement in project.statements:
        yield _create_view(project, statement), statement.file.name, statement.position
    for name, cube in project.settings.cubes.items():
        for each in CreateCube(CreateView(parse_path(name), cube.query)).views:
            yield _completed(project, each, cube.policy), SETTINGS_NAME, None


def _create_view(project: Project, statement: Statement) -> CreateView:
    parsed = parse_statement(statement.sql)
    if not isinstance(parsed, CreateView):
        raise DefinitionError(
            f"{statement.file.name}: only CREATE MATERIALIZED VIEW can stand in a project",
            code="VK-PROJECT",
            position=statement.position,
            hint="Run other statements with spark.sql, outside of the project.",
        )
    return _completed(project, parsed)


def _completed(project: Project, view: CreateView, otherwise: Policy | None = None) -> CreateView:
    """A view with what the settings say of it, where its statement says nothing."""
    name, settings = show_path(view.name), project.settings
    return replace(
        view,
        policy=view.policy or settings.policy_of(name, otherwise),
        consistency=view.consistency or settings.consistency_of(name),
        expectations=(*view.expectations, *settings.expectations_of(name)),
        timing=view.timing or settings.timing_of(name),
    )


def _in_order(wanted: Mapping[str, Wanted]) -> tuple[str, ...]:
    """Parents first, by the names in the queries' FROM clauses."""
    reads = {}
    for name, view in wanted.items():
        *where, _ = view.definition.name

        def resolve(parts: tuple[str, ...], where: list[str] = where) -> TableInfo | None:
            full = show_path((*where[: len(where) + 1 - len(parts)], *parts))
            return TableInfo(full, ()) if full in wanted else None

        found = holes(view.statement.query, resolve)
        reads[name] = found.tables if found else ()
    return Vdag(reads).order()


def _change(library: Library, wanted: Wanted) -> str | None:
    known = library.views.get(wanted.name)
    if known is None:
        return "created"
    # The session's time zone is not part of the project: a view keeps the one it was defined with.
    same_session = replace(wanted.definition, session=known.definition.session)
    if same_session == known.definition:
        return None
    same_timing = replace(same_session, timing=known.definition.timing)
    return RETIMED if same_timing == known.definition else "replaced"
