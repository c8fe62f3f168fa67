"""``docs/reference/yaml.md``: the keys of ``viewkeeper.yml``, from the models that read it."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from viewkeeper.define.fields import Reference
from viewkeeper.define.settings import Settings
from viewkeeper.define.sources import MODELS
from viewkeeper.reference.docstrings import as_markdown, class_node, fields, one_line

_HEAD = """\
# Project files

<!-- Made by `make docs` from the models in src/viewkeeper/define. -->

A project is a folder with `spark-pipeline.yml`, which is [Spark's own](../guides/spark-pipelines.md), and
`viewkeeper.yml` beside it, which holds what that format has no word for. All of it is optional; a key that is
not listed here is an error that names file, line and column.
"""

_SOURCES = """
## Options of sources

In `viewkeeper.yml` they stand under `options:`, in SQL behind `OPTIONS`. Lists may be written as lists or
with commas. In a project a path may be relative to its folder, and `password: {env: NAME}` is short for
`password_env: NAME`. Options of Spark's reader for CSV and JSON, such as `header` and `sep`, stand among
those of `files`.
"""


_KNOWN: Mapping[str, str] = {
    "env": "The name of the variable.",
    "target_lag": "How far behind its sources it may be, such as `15 minutes`.",
}
"""Of keys that say nothing themselves."""
_INTERVAL = "interval, such as `5 minutes`"


def page() -> str:
    """The whole page."""
    parts = [_HEAD, _table("viewkeeper.yml", Settings)]
    parts += [_table(kind.__name__, kind) for kind in _below(Settings)]
    parts.append(_SOURCES)
    parts += [_table(kind, model, level=3) for kind, model in MODELS.items()]
    return "".join(parts)


def _below(model: type[BaseModel], seen: tuple[type[BaseModel], ...] = ()) -> list[type[BaseModel]]:
    """The models that stand in a model's fields, and in theirs, each once."""
    found = list(seen)
    for field in model.model_fields.values():
        for kind in _models(field.annotation):
            if kind not in found:
                found = _below(kind, (*found, kind))
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)


def _table(title: str, model: type[BaseModel], level: int = 2) -> str:
    said = {name: text for kind in reversed(model.__mro__) for name, text in _said(kind)}
    rows = [
        _row(field.alias or name, field, one_line(said.get(name)) or _KNOWN.get(name, ""))
        for name, field in model.model_fields.items()
        if name != "reader"
    ]
    head = f"\n{'#' * level} {title}\n\n{as_markdown(model.__doc__)}\n\n"
    return head + "| key | value | if not given | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _row(key: str, field: FieldInfo, meaning: str) -> str:
    told = _annotated(field.annotation, field.metadata)
    return f"| `{key}` | {told} | {_default(field)} | {meaning} |\n"


def _said(kind: type) -> Iterator[tuple[str, str]]:
    if not (issubclass(kind, BaseModel) and kind.__module__.startswith("viewkeeper.")):
        return
    yield from ((name, text) for name, _, text in fields(class_node(kind)))


def _type(annotation: Any) -> str:
    origin, given = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(given[0], given[1:])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in given)
    if origin in (Union, types.UnionType):
        told = [_type(each) for each in given if each is not type(None)]
        return " or ".join(dict.fromkeys(told))
    if origin in (tuple, list):
        return f"list of {_plural(_type(given[0]))}"
    if origin is dict:
        return f"by name: {_type(given[1])}"
    if annotation is Reference:
        return "`{env: NAME}`"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return {str: "text", bool: "`true`, `false`", int: "number"}.get(annotation, str(annotation))


def _annotated(annotation: Any, metadata: Sequence[object]) -> str:
    return _INTERVAL if annotation is int and _is_read_first(metadata) else _type(annotation)


def _is_read_first(metadata: Sequence[object]) -> bool:
    """A number that is read from a text is an interval."""
    return any(isinstance(each, BeforeValidator) for each in metadata)


def _plural(told: str) -> str:
    return "texts" if told == "text" else told


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    if _is_read_first(field.metadata) and isinstance(field.default, int):
        return f"`{field.default} seconds`"
    if (
        field.default_factory is not None
        or field.default in (None, ())
        or isinstance(field.default, BaseModel)
    ):
        return ""
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
