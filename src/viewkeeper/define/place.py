"""Where a project is and what its two YAML files say; its SQL is read by ``project``.

Apart from that because a command that only asks the ledger need not wait for a SQL parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from viewkeeper.define.settings import Settings
from viewkeeper.define.yaml_files import project_error, read_yaml
from viewkeeper.errors import DefinitionError
from viewkeeper.sql.quoting import parse_path

SPEC_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
SETTINGS_NAME = "viewkeeper.yml"
EMBEDDED_CATALOG, EMBEDDED_NAMESPACE = "lake", ("default",)


@dataclass(frozen=True, slots=True)
class Place:
    """A project folder, and what its YAML files say. ``catalog`` and ``namespace`` as far as the project
    names them; ``includes`` are the patterns of its SQL files."""

    folder: Path
    spec_file: Path
    name: str
    catalog: str | None
    namespace: tuple[str, ...] | None
    configuration: tuple[tuple[str, str], ...]
    includes: tuple[str, ...]
    settings: Settings

    @property
    def default(self) -> tuple[str, ...]:
        """The catalog and namespace in which the names of views are looked up."""
        catalog = self.catalog or self.settings.connection.catalog or EMBEDDED_CATALOG
        return (catalog, *(self.namespace or EMBEDDED_NAMESPACE))


class _Glob(BaseModel):
    include: str


class _Library(BaseModel):
    glob: _Glob


class PipelineSpec(BaseModel):
    """The fields of Spark's pipeline spec, and no others, as in ``pyspark.pipelines``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    storage: str
    catalog: str | None = None
    database: str | None = Field(default=None, validation_alias=AliasChoices("database", "schema"))
    configuration: dict[str, str] = Field(default_factory=dict)
    libraries: list[_Library] = Field(default_factory=list)


def find_project(start: Path) -> Path:
    """The project folder that ``start`` is or lies in."""
    start = start.absolute()
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in SPEC_NAMES):
            return folder
    raise DefinitionError(
        f"no {SPEC_NAMES[0]} in {start} nor above it",
        code="VK-PROJECT",
        hint="Go to a project folder, name one with --project, or make one with `viewkeeper init <name>`.",
    )


def load_place(folder: Path) -> Place:
    """Read the YAML files of a project."""
    folder = folder.absolute()
    spec_file = _spec_file(folder)
    spec = read_yaml(spec_file, PipelineSpec)
    settings_file = folder / SETTINGS_NAME
    return Place(
        folder=folder,
        spec_file=spec_file,
        name=spec.name,
        catalog=spec.catalog,
        namespace=_namespace(spec_file, spec.database),
        configuration=tuple(spec.configuration.items()),
        includes=tuple(library.glob.include for library in spec.libraries),
        settings=read_yaml(settings_file, Settings) if settings_file.is_file() else Settings(),
    )


def _spec_file(folder: Path) -> Path:
    found = [folder / name for name in SPEC_NAMES if (folder / name).is_file()]
    if not found:
        raise DefinitionError(
            f"{folder} is not a project: it has no {SPEC_NAMES[0]}",
            code="VK-PROJECT",
            hint="`viewkeeper init <name>` makes one.",
        )
    if len(found) > 1:
        raise project_error(f"there is also {found[1].name}", found[0], hint="Keep one of the two.")
    return found[0]


def _namespace(spec_file: Path, database: str | None) -> tuple[str, ...] | None:
    if database is None:
        return None
    try:
        return parse_path(database)
    except ValueError as error:
        raise project_error(f"database: {error}", spec_file) from error
