"""Table properties by which a view's definition pins what is otherwise chosen."""

from __future__ import annotations

from collections.abc import Mapping


def asked_for(properties: Mapping[str, str], name: str) -> str | None:
    """What a property asks for, in small letters; ``None`` if it leaves the choice to us.

    >>> (
    ...     asked_for({"viewkeeper.install": "SDBATCH"}, "viewkeeper.install"),
    ...     asked_for({}, "viewkeeper.install"),
    ... )
    ('sdbatch', None)
    """
    asked = properties.get(name, "auto").lower()
    return None if asked == "auto" else asked
