"""``docs/reference/errors.md``: every error code, by what it concerns."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.analyse.reason_page import REFUSALS
from viewkeeper.reference import codes
from viewkeeper.reference.codes import Meaning
from viewkeeper.reference.raised import raised

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
    """The whole page; codes that nobody explained here have the words of the error itself."""
    explained = {code for part in PARTS.values() for code in part}
    others = {code: _cell(meaning) for code, meaning in raised().items() if code not in explained}
    parts = {**PARTS, "Others": others} if others else PARTS
    return _HEAD + "".join(_part(title, meanings) for title, meanings in parts.items())


def _cell(meaning: Meaning) -> Meaning:
    said, hint = (text.replace("|", "\\|") for text in meaning)
    return said, hint or "the message says more"


def _part(title: str, meanings: Mapping[str, Meaning]) -> str:
    rows = [f"| `{code}` | {cause} | {remedy} |" for code, (cause, remedy) in sorted(meanings.items())]
    return f"\n## {title}\n\n| code | what happened | what helps |\n|---|---|---|\n" + "\n".join(rows) + "\n"
