"""``docs/reference/errors.md``: every error code, by what it concerns."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.analyse.reason_page import REFUSALS
from viewkeeper.reference import codes
from viewkeeper.reference.codes import Meaning

PARTS: Mapping[str, Mapping[str, Meaning]] = {
    "Queries that are refused": REFUSALS,
    "Definitions": codes.DEFINITIONS,
    "Refreshing": codes.REFRESHING,
    "The ledger": codes.LEDGER,
    "The machine and the session": codes.SETUP,
    "Sources": codes.SOURCES,
    "Sweeping": codes.SWEEPING,
}

_HEAD = """\
# Error codes

<!-- Made by `make docs`; edit src/viewkeeper/reference/codes.py. -->

Every error is a `ViewkeeperError` with a code that stays what it is, so that scripts may match on it; a
message that names the object; and a hint with the next thing to do. In Python these are `error.code`,
`error.message` and `error.hint`. On the command line they go to standard error, the exit code is 1, and with
`--json` they are one JSON document.

Whatever the code, nothing was published: every view is as it was. Why a view is *recomputed* is no error, and
has [reasons](../reasons.md) of its own.
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_part(title, meanings) for title, meanings in PARTS.items())


def _part(title: str, meanings: Mapping[str, Meaning]) -> str:
    rows = [f"| `{code}` | {cause} | {remedy} |" for code, (cause, remedy) in sorted(meanings.items())]
    return f"\n## {title}\n\n| code | what happened | what helps |\n|---|---|---|\n" + "\n".join(rows) + "\n"
