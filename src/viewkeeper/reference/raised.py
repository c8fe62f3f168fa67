"""The error codes that the code raises, each with the message and the hint that stand beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import viewkeeper
from viewkeeper.reference.codes import Meaning

_CODE = re.compile(r"VK-[A-Z0-9-]+")
_NOT_RAISING = ("reference", "reason_page.py")


def raised() -> dict[str, Meaning]:
    """Every code that stands in the package as a text of its own: what is said with it first."""
    found: dict[str, Meaning] = {}
    for path in sorted(Path(viewkeeper.__file__).parent.rglob("*.py")):
        if path.parent.name in _NOT_RAISING or path.name in _NOT_RAISING:
            continue
        for code, meaning in codes_of(path.read_text(encoding="utf-8")):
            if not found.get(code, ("", ""))[0]:
                found[code] = meaning
    return found


def codes_of(source: str) -> Iterator[tuple[str, Meaning]]:
    """The codes of one file; those that stand alone have no meaning that could be read off.

    >>> list(codes_of('raise E(f"view {v} is gone", code="VK-GONE", hint="Look.")'))
    [('VK-GONE', ('view … is gone', 'Look.'))]
    >>> list(codes_of('CODE = "VK-ALONE"'))
    [('VK-ALONE', ('', ''))]
    """
    tree = ast.parse(source)
    told: dict[int, Meaning] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                told |= {id(code): meaning for code, meaning in _of_call(node)}
            case ast.ClassDef():
                assigned = [each.value for each in node.body if isinstance(each, ast.Assign)]
                said = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("``", "`")
                told |= {id(each): (" ".join(said.split()), "") for each in assigned if _is_code(each)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and _is_code(node):
            yield str(node.value), told.get(id(node), ("", ""))


def _of_call(node: ast.Call) -> Iterator[tuple[ast.expr, Meaning]]:
    named = {each.arg: each.value for each in node.keywords}
    if "code" in named and _is_code(named["code"]):
        yield named["code"], (_text(node.args[0]) if node.args else "", _text(named.get("hint")))
    for place, each in enumerate(node.args):
        if _is_code(each):
            behind = [_text(other) for other in node.args[place + 1 :]]
            yield each, _two(behind)


def _two(texts: Sequence[str]) -> Meaning:
    first, second = [*texts, "", ""][:2]
    return first, second


def _is_code(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_CODE.fullmatch(node.value))
    )


def _text(node: ast.expr | None) -> str:
    """A text as it is written, with … for what is filled in."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(each) if isinstance(each, ast.Constant) else "…" for each in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
    return ""
