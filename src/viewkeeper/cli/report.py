"""``viewkeeper report``: writes the report into a file."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

from viewkeeper.cli.opening import opened_overview
from viewkeeper.cli.output import Output
from viewkeeper.errors import SetupError
from viewkeeper.reporting import report as make


def report(output: Output, folder: Path | None, file: Path) -> int:
    """Make the report; a report that was there before is replaced by a whole one, or stays."""
    with opened_overview(folder) as (place, overview):
        page = make(overview, place.name, datetime.now(timezone.utc))
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        half.write_text(page, encoding="utf-8")
        half.replace(file)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise SetupError(
            f"the report cannot be written to {file}: {error.strerror}",
            code="VK-SETUP-FOLDER",
            hint="Name another place with --output.",
        ) from error
    output.answer({"file": file.absolute()}, f"{file}: open it in a browser; it needs nothing else.")
    return 0
