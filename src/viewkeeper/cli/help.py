"""``viewkeeper --help``: the commands by what they are for, on one screen of 80 by 24."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from typer.core import TyperGroup

WIDTH = 80
GROUPS: Mapping[str, tuple[str, ...]] = {
    "begin": ("init", "demo", "doctor"),
    "refresh": ("plan", "refresh", "propagate", "run"),
    "look": ("status", "history", "explain", "lattice", "sources", "report", "serve"),
    "keep": ("verify", "repair", "resume", "maintain", "calibrate"),
}
"""What commands are for; one that is not named here comes last."""
OTHERS = "more"


def help_text(group: TyperGroup, program: str) -> str:
    """The help of the whole program: a line for each command."""
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    grouped = {name: each for each, names in GROUPS.items() for name in names}
    order = [*(name for name in grouped if name in shown), *(name for name in shown if name not in grouped)]
    label, wide = max(map(len, (*GROUPS, OTHERS))), max(map(len, order))
    room = min(WIDTH, shutil.get_terminal_size().columns) - label - wide - 4
    lines, last = [f"Usage: {program} [OPTIONS] COMMAND [ARGS]...", group.help or ""], ""
    for name in order:
        purpose = grouped.get(name, OTHERS)
        head = "" if purpose == last else purpose
        lines.append(f"{head:<{label}}  {name:<{wide}}  {shown[name].get_short_help_str(max(room, 20))}")
        last = purpose
    options = " ".join(next(iter(option.opts)) for option in group.params)
    return "\n".join([*lines, "", f"Options: {options} --help"])
