"""Whether there is a Chromium to test with; `make test-web` asks before it runs anything."""

from __future__ import annotations

import shutil
import sys

MISSING = "The tests of the console need Chromium. On Debian or Ubuntu: sudo apt-get install chromium"


def find() -> str | None:
    """The browser on the path."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


if __name__ == "__main__":
    if find() is None:
        print(MISSING, file=sys.stderr)
        sys.exit(1)
