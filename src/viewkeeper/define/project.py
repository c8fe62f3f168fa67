"""A project folder: Spark's own pipeline format, so that ``spark-pipelines run`` runs it too.

::

    spark-pipeline.yml              name, storage, catalog, database, configuration, libraries
    transformations/**/*.sql        CREATE MATERIALIZED VIEW statements
    viewkeeper.yml                  optional: what Spark's format has no word for
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.define.place import SETTINGS_NAME, Place, load_place
from viewkeeper.define.place import find_project as find_project
from viewkeeper.define.settings import Settings
from viewkeeper.define.yaml_files import project_error, statement_error
from viewkeeper.errors import Position, position_at


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a project: its text, and where it stands."""

    sql: str
    file: Path
    position: Position


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder, read. ``catalog`` and ``namespace`` as far as the project names them."""

    folder: Path
    name: str
    catalog: str | None
    namespace: tuple[str, ...] | None
    configuration: tuple[tuple[str, str], ...]
    statements: tuple[Statement, ...]
    settings: Settings


def load_project(folder: Path) -> Project:
    """Read a project. Nothing is run, and no file outside the folder is read."""
    place = load_place(folder)
    statements = [
        statement
        for file in _definition_files(place)
        for statement in split_statements(_read_sql(file), file.relative_to(place.folder))
    ]
    return Project(
        folder=place.folder,
        name=place.name,
        catalog=place.catalog,
        namespace=place.namespace,
        configuration=place.configuration,
        statements=tuple(statements),
        settings=place.settings,
    )


def project_files(folder: Path) -> list[Path]:
    """Every file that a project is read from."""
    place = load_place(folder)
    return [place.spec_file, place.folder / SETTINGS_NAME, *_definition_files(place)]


def split_statements(text: str, file: Path) -> Iterator[Statement]:
    """The statements of a SQL file; anything but CREATE MATERIALIZED VIEW is an error."""
    try:
        tokens: list[Token] = list(Spark().tokenize(text))
    except TokenError as error:
        raise project_error(str(error).splitlines()[0], file) from error
    run: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            run.append(token)
        elif run:
            yield _statement(text, run, file)
            run = []
    if run:
        yield _statement(text, run, file)


def _statement(text: str, tokens: list[Token], file: Path) -> Statement:
    start, end = tokens[0].start, tokens[-1].end + 1
    position = position_at(text, start, end)
    words = [token.text.upper() for token in tokens[:5]]
    head = [word for word in words if word not in ("OR", "REPLACE")][:3]
    if head != ["CREATE", "MATERIALIZED", "VIEW"]:
        raise statement_error(
            f"a project holds CREATE MATERIALIZED VIEW statements, not {' '.join(words[:3])}",
            file,
            position,
            hint="Create tables elsewhere; streaming tables and flows are not supported.",
        )
    return Statement(text[start:end], file, position)


def _definition_files(place: Place) -> Iterator[Path]:
    """The files that the spec's globs name, each once, in a fixed order."""
    found: dict[Path, None] = {}
    for include in place.includes:
        pattern = _checked_glob(place.spec_file, include)
        for file in sorted(place.folder.glob(pattern)):
            if file.is_file() and "__pycache__" not in file.parts:
                found[_checked_file(place.folder, file)] = None
    yield from found


def _checked_glob(spec_file: Path, include: str) -> str:
    """The same two forms that Spark allows: a plain path, or a folder followed by ``/**``."""
    path = Path(include)
    if path.is_absolute() or ".." in path.parts:
        raise project_error(f"libraries: {include!r} leads out of the project", spec_file)
    if not include:
        raise project_error("libraries: an include is empty", spec_file)
    if not glob.has_magic(include):
        return include
    if include.endswith("/**") and not glob.has_magic(include[:-3]):
        return include + "/*"
    raise project_error(
        f"libraries: Spark does not allow the pattern {include!r}",
        spec_file,
        hint="Name a file, or a folder followed by /**, such as transformations/**.",
    )


def _checked_file(folder: Path, file: Path) -> Path:
    if not file.resolve().is_relative_to(folder.resolve()):
        raise project_error("is a link that leads out of the project", file)
    if file.suffix == ".py":
        raise project_error(
            "definitions in Python are not supported yet",
            file,
            hint="Write the view as CREATE MATERIALIZED VIEW in a .sql file.",
        )
    if file.suffix != ".sql":
        raise project_error("is neither .sql nor .py", file, hint="Spark refuses such files too; move it.")
    return file


def _read_sql(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise project_error(f"cannot be read: {error}", file) from error
