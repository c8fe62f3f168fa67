"""Docstrings as they stand in the source, also those behind a field, and as Markdown."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator

_ROLE = re.compile(r":(?:meth|func|class|mod|attr):`[~.]*([^`]+)`")
_EXAMPLE = re.compile(r"(?m)^(.*)::\n\n((?:    .*\n|\n)+)")
_DOCTEST = re.compile(r"(?m)^>>> (?:.*\n)+")


def as_markdown(text: str | None) -> str:
    """One docstring; what stands indented behind ``::`` is an example, and doctests are for us.

    >>> as_markdown("Install what :meth:`propagate` kept; ``None`` if there is nothing.")
    'Install what `propagate` kept; `None` if there is nothing.'
    """
    cleaned = _DOCTEST.sub("", inspect.cleandoc(text or "") + "\n")
    plain = _ROLE.sub(r"`\1`", cleaned).replace("``", "`")
    return _EXAMPLE.sub(_fenced, plain).strip()


def _fenced(found: re.Match[str]) -> str:
    before = f"{found[1]}:\n\n" if found[1] else ""
    return f"{before}```python\n{textwrap.dedent(found[2]).strip()}\n```\n\n"


def one_line(text: str | None) -> str:
    """A docstring that is to stand in a table.

    >>> one_line("*a* | b,\\n    and more.")
    '*a* \\\\| b, and more.'
    """
    return " ".join(as_markdown(text).split()).replace("|", "\\|")


def fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign, str]]:
    """The fields that a class declares, each with what is said behind it."""
    for index, each in enumerate(node.body):
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        behind = node.body[index + 1] if index + 1 < len(node.body) else None
        said = ""
        if isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant):
            said = str(behind.value.value)
        yield each.target.id, each, said


def class_node(kind: type) -> ast.ClassDef:
    """The source of a class."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(found, ast.ClassDef)
    return found
