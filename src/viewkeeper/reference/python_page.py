"""``docs/reference/python.md``: the public names, with the signatures and docstrings that they have."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module

import viewkeeper
from viewkeeper.reference.docstrings import as_markdown, fields, one_line

_HEAD = """\
# Python

<!-- Made by `make docs` from the docstrings of the public names. -->

```python
import viewkeeper as vk
```

What is listed here is public, and stays as it is.
"""

_FIRST = ("connect", "Warehouse")


def page() -> str:
    """The whole page."""
    names = [*_FIRST, *(name for name in viewkeeper.__all__ if name not in _FIRST)]
    parts = [_HEAD, *(_entry(f"vk.{name}", getattr(viewkeeper, name)) for name in names)]
    testing = import_module("viewkeeper.testing")
    parts.append(f"\n## viewkeeper.testing\n\n{as_markdown(testing.__doc__)}\n")
    parts += [_entry(name, getattr(testing, name), level=3) for name in testing.__all__]
    return "".join(parts)


def _entry(title: str, named: type, level: int = 2) -> str:
    """One public name, with what is public below it."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(named) or viewkeeper))
    (node,) = (each for each in tree.body if getattr(each, "name", None) == named.__name__)
    parts = [f"\n{'#' * level} {title}\n\n"]
    if isinstance(node, ast.FunctionDef):
        parts.append(_signature(node))
    said = ast.get_docstring(node) if isinstance(node, ast.ClassDef | ast.FunctionDef) else None
    parts.append(f"{as_markdown(said)}\n")
    if isinstance(node, ast.ClassDef):
        parts += [_fields(node), _values(node)]
        parts += [_method(each, level + 1) for each in _methods(node)]
    return "".join(parts)


def _fields(node: ast.ClassDef) -> str:
    rows = [
        f"| `{name}` | `{ast.unparse(field.annotation)}` | {one_line(said)} |\n".replace(
            " | None", " \\| None"
        )
        for name, field, said in fields(node)
        if not name.startswith("_")
    ]
    return "\n| field | type | |\n|---|---|---|\n" + "".join(rows) if rows else ""


def _values(node: ast.ClassDef) -> str:
    """The members of an enumeration."""
    assigned = [each for each in node.body if isinstance(each, ast.Assign)]
    values = [each for each in assigned if isinstance(each.value, ast.Constant)]
    names = [f"`{ast.unparse(each.targets[0])}`" for each in values]
    return f"\nOne of {', '.join(names)}.\n" if len(names) > 1 else ""


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for each in node.body:
        setter = any(isinstance(mark, ast.Attribute) for mark in getattr(each, "decorator_list", ()))
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and not setter:
            yield each


def _method(node: ast.FunctionDef, level: int) -> str:
    is_property = any(ast.unparse(mark) == "property" for mark in node.decorator_list)
    shown = f"`{node.name}`: `{_returns(node)}`\n\n" if is_property else _signature(node)
    said = as_markdown(ast.get_docstring(node))
    return f"\n{'#' * level} {node.name}\n\n{shown}" + (f"{said}\n" if said else "")


def _signature(node: ast.FunctionDef) -> str:
    """Its head, without the body."""
    given = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
    return f"```text\n{node.name}({given}) -> {_returns(node)}\n```\n\n"


def _returns(node: ast.FunctionDef) -> str:
    return ast.unparse(node.returns) if node.returns else "None"
