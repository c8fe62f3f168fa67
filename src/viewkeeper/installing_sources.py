"""What has to be made on a database before a source can follow it."""

from __future__ import annotations

from viewkeeper.define.place import SETTINGS_NAME
from viewkeeper.define.project import Project
from viewkeeper.define.sources import PostgresOptions, SourceDefinition, checked_options
from viewkeeper.errors import NotFoundError, SetupError
from viewkeeper.sources.postgres_server import Server, quoted
from viewkeeper.sources.postgres_triggers import install_sql


def install(project: Project, name: str, *, run: bool) -> str:
    """The SQL for a source that captures by triggers; with ``run`` it is run, as the source's user."""
    settings = project.settings.sources.get(name)
    if settings is None:
        raise NotFoundError(
            f"there is no source {name} in {SETTINGS_NAME}",
            code="VK-UNKNOWN-SOURCE",
            hint=f"There are: {', '.join(project.settings.sources) or 'none'}.",
        )
    options = checked_options(SourceDefinition(name, settings.kind, settings.told(project.folder)))
    if not isinstance(options, PostgresOptions) or options.capture != "trigger":
        raise SetupError(
            f"source {name} needs nothing installed",
            code="VK-SOURCE-SETUP",
            hint="Only capture 'trigger' does.",
        )
    sql = install_sql(
        [quoted(*path) for path in options.over(options.tables + options.remote).paths], options.user
    )
    if run:
        with Server(name, options).asking() as connection:
            connection.execute(sql)
    return sql
