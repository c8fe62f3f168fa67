"""``python -m viewkeeper.reference docs`` writes the reference pages into that folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from viewkeeper.analyse import reason_page
from viewkeeper.reference import cli_page, error_page, python_page, settings_page

PAGES: Mapping[str, Callable[[], str]] = {
    "reasons.md": reason_page.page,
    "reference/cli.md": cli_page.page,
    "reference/errors.md": error_page.page,
    "reference/python.md": python_page.page,
    "reference/yaml.md": settings_page.page,
}
"""Each page that is made, and what makes it."""


def main(folder: Path) -> None:
    """Write all of them."""
    for name, page in PAGES.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
