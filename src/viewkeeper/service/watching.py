"""A project's files, watched for changes by what the file system says of them."""

from __future__ import annotations

from pathlib import Path

from viewkeeper.define.place import SETTINGS_NAME, SPEC_NAMES
from viewkeeper.define.project import project_files
from viewkeeper.errors import DefinitionError

Fingerprint = tuple[tuple[str, int, int], ...]


def fingerprint(folder: Path) -> Fingerprint:
    """Of every file that a project is read from; another one whenever one of them changes, comes or goes."""
    try:
        files = project_files(folder)
    except DefinitionError:  # a mistake in them, which is told when they are applied
        files = [folder / name for name in (*SPEC_NAMES, SETTINGS_NAME)]
    found = []
    for file in files:
        try:
            facts = file.stat()
        except OSError:
            continue  # removed: it is missing from the fingerprint
        found.append((str(file), facts.st_mtime_ns, facts.st_size))
    return tuple(found)
