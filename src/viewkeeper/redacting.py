"""Secrets are kept nowhere; should one get into a message all the same, it stops here."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "•••"

_IN_URL = re.compile(r"(?P<before>\w[\w+.-]*://[^\s/:@'\"]*):[^\s/@'\"]+@")
_NAMED = re.compile(
    r"(?P<name>\b\w*(?:password|passwd|pwd|secret|token|credential|access[_-]?key)\w*(?<!_env)(?<!_file))"
    r"(?P<sign>\s*[=:]\s*)(?P<quote>['\"]?)[^\s'\"&;,)]+",
    re.IGNORECASE,
)
_SECRET_OPTION = re.compile(r"pass|pwd|secret|token|credential|private|access[_-]?key", re.IGNORECASE)
_SAYS_WHERE = ("_env", "_file")


def redacted(text: str) -> str:
    """A text without passwords; where one is kept may be told.

    >>> redacted("cannot reach postgresql://me:hush@db/x?password=hush&a=1")
    'cannot reach postgresql://me:•••@db/x?password=•••&a=1'
    >>> redacted("password: 'hush' was refused; host=db, password_env=SHOP_PASSWORD")
    "password: '•••' was refused; host=db, password_env=SHOP_PASSWORD"
    """
    text = _IN_URL.sub(rf"\g<before>:{HIDDEN}@", text)
    return _NAMED.sub(rf"\g<name>\g<sign>\g<quote>{HIDDEN}", text)


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a source for people, likewise.

    >>> shown_options({"host": "db", "password_env": "PW", "ssl_password": "hush"})
    {'host': 'db', 'password_env': 'PW', 'ssl_password': '•••'}
    """
    return {
        key: HIDDEN
        if _SECRET_OPTION.search(key) and not key.endswith(_SAYS_WHERE)
        else _unless_named(key, value)
        for key, value in options.items()
    }


def _unless_named(key: str, value: str) -> str:
    return value if key.endswith(_SAYS_WHERE) else redacted(value)
