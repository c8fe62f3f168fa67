"""``docs/reference/cli.md``: every command with its arguments and options, from the declarations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer.main

from viewkeeper.cli import output
from viewkeeper.cli.main import app

ENVIRONMENT: Mapping[str, str] = {
    "JAVA_HOME": "the Java that Spark is started with",
    "VIEWKEEPER_CACHE": "where jars are kept; else `viewkeeper` in `XDG_CACHE_HOME`, or in `~/.cache`",
    "VIEWKEEPER_DRIVER_MEMORY": "memory of an embedded Spark, such as `4g`; else half of the machine's, "
    "at most 8 GiB",
    "VIEWKEEPER_TOKEN": "the token of the console, `viewkeeper serve`",
    "XDG_CACHE_HOME": "the user's cache",
}
"""The variables that are looked at, besides those that settings name."""

_HEAD = """\
# Command line

<!-- Made by `make docs` from the declarations in src/viewkeeper/cli. -->

`viewkeeper` finds the project from the folder that you are in, upwards, or by `--project`. Results go to
standard output, progress and errors to standard error. With `--json` a command prints one JSON document,
whose fields stay what they are; more may be added.

| exit code | |
|---|---|
| 0 | all is well |
| 1 | it is not: an [error](errors.md), a view that was skipped, a verification that failed |
| 2 | the command line was wrong |
| 130 | interrupted; nothing more was published |
"""


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    parts = [_HEAD, "\n## viewkeeper\n", _options(root.params)]
    for path, command in _commands(("viewkeeper",), root):
        parts.append(f"\n## {' '.join(path)}\n\n{_prose(command.help)}\n")
        parts.append(f"\n```text\n{_usage(path, command)}\n```\n")
        parts.append(_options(command.params))
    parts += [_environment(), _documents()]
    return "".join(parts)


def _environment() -> str:
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in sorted(ENVIRONMENT.items()))
    return f"\n## Environment\n\n| variable | meaning |\n|---|---|\n{rows}"


def _documents() -> str:
    """What ``--json`` prints, as it is declared where it is printed."""
    _, _, said = inspect.cleandoc(output.__doc__ or "").partition("\n\n")
    return f"\n## JSON documents\n\n```text\n{said.replace('``', '')}\n```\n"


def _commands(path: tuple[str, ...], group: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that can be run, in the order of their declaration."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        below = getattr(command, "commands", None)
        if below is None or command.invoke_without_command:
            yield (*path, name), command
        if below is not None:
            yield from _commands((*path, name), command)


def _prose(text: str | None) -> str:
    return " ".join((text or "").split())


def _usage(path: Sequence[str], command: Any) -> str:
    arguments = [_argument(each) for each in command.params if each.param_type_name == "argument"]
    return " ".join([*path, "[OPTIONS]", *arguments])


def _argument(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _options(parameters: Sequence[Any]) -> str:
    rows = [_row(each) for each in parameters if not getattr(each, "hidden", False) and each.name != "help"]
    if not rows:
        return ""
    return "\n| | meaning | if not given |\n|---|---|---|\n" + "".join(rows)


def _row(each: Any) -> str:
    if each.param_type_name == "argument":
        name = f"`{each.name.upper()}`"
    else:
        value = "" if each.is_flag else f" {each.name.upper()}"
        name = ", ".join(f"`{word}{value}`" for word in (*each.opts, *each.secondary_opts))
    return f"| {name} | {_prose(each.help)} | {_default(each)} |\n"


def _default(each: Any) -> str:
    if each.required:
        return "must be given"
    if isinstance(each.show_default, str):
        return each.show_default
    if getattr(each, "is_flag", False) or each.default is None or each.default == ():
        return ""
    return f"`{each.default}`"
