"""Project files are YAML, read with care: they may come from anywhere.

Only plain data (``safe_load``), a limit on size and on aliases (a few nested ones grow into gigabytes), no
key twice. A mistake is reported with its file, line, column and field.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from viewkeeper.errors import DefinitionError, Position

MAX_BYTES = 1_000_000
MAX_ALIASES = 20

Model = TypeVar("Model", bound=BaseModel)


Spot: TypeAlias = tuple[int, int]
"""A line and a column, both from 1."""


def project_error(
    message: str, file: Path, spot: Spot | None = None, *, hint: str | None = None
) -> DefinitionError:
    """An error of a project file, with its place: ``file:line:column``."""
    where = ":".join(map(str, (file, *(spot or ()))))
    return DefinitionError(f"{where}: {message}", code="VK-PROJECT", hint=hint)


def statement_error(
    message: str, file: Path, position: Position, *, hint: str | None = None
) -> DefinitionError:
    """An error of a SQL file of a project, with its place."""
    return DefinitionError(f"{file}: {message}", code="VK-PROJECT", hint=hint, position=position)


def read_yaml(file: Path, model: type[Model]) -> Model:
    """The file as ``model``; an empty file is a model with all its defaults."""
    root = _compose(file, _read(file))
    if root is None:
        return _validate(file, model, {}, None)
    if not isinstance(root, yaml.MappingNode):
        raise project_error("a mapping of fields is expected here", file, _spot(root))
    _refuse_duplicate_keys(file, root, set())
    try:
        data = yaml.SafeLoader("").construct_document(root)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _yaml_error(file, error) from error
    return _validate(file, model, data, root)


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise project_error(f"larger than {MAX_BYTES:,} bytes", file)
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise project_error(f"cannot be read: {error}", file) from error


def _compose(file: Path, text: str) -> yaml.Node | None:
    try:
        aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader))
        if aliases > MAX_ALIASES:
            raise project_error(f"{aliases} aliases, and {MAX_ALIASES} are allowed", file)
        root: yaml.Node | None = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise _yaml_error(file, error) from error
    return root


def _yaml_error(file: Path, error: Exception) -> DefinitionError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        spot = (mark.line + 1, mark.column + 1) if mark else None
        return project_error(error.problem or "not YAML", file, spot)
    problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return project_error(problem, file)


def _refuse_duplicate_keys(file: Path, node: yaml.Node, seen: set[int]) -> None:
    if id(node) in seen:  # reached again through an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise project_error(f"the field {key.value} stands here twice", file, _spot(key))
                keys.add(key.value)
            _refuse_duplicate_keys(file, value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_duplicate_keys(file, item, seen)


def _validate(file: Path, model: type[Model], data: object, root: yaml.Node | None) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field, spot = _locate(root, first["loc"])
        message = first["msg"].removeprefix("Value error, ").replace("valid tuple", "list")
        if first["type"] == "extra_forbidden":
            message = "there is no such field"
        raise project_error(
            f"{field}: {message[0].lower() + message[1:]}" if field else message, file, spot
        ) from error


def _locate(root: yaml.Node | None, path: Sequence[str | int]) -> tuple[str, Spot | None]:
    """The field that pydantic complains of, as people write it, and where it stands.

    Pydantic's path also names the members of a union and aliases; what is not in the file is left out.
    """
    node, field = root, ""
    spot = _spot(root) if root else None
    for step in path:
        below = _child(node, step)
        if below is not None:
            spot, node = below
        if below is not None or step == path[-1]:
            field += f"[{step}]" if isinstance(step, int) else f".{step}" if field else step
    return field, spot


def _child(node: yaml.Node | None, step: str | int) -> tuple[Spot, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return _spot(key), value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return _spot(node.value[step]), node.value[step]
    return None


def _spot(node: yaml.Node) -> Spot:
    return node.start_mark.line + 1, node.start_mark.column + 1
