"""A project's files, watched for changes by what the file system says of them."""

from __future__ import annotations

from viewkeeper.define.project import SETTINGS_NAME, SPEC_NAMES, Project

Fingerprint = tuple[tuple[str, int, int], ...]


def fingerprint(project: Project) -> Fingerprint:
    """Of every file that a project is read from, and of those that came or went beside them."""
    folder = project.folder
    named = [folder / name for name in (*SPEC_NAMES, SETTINGS_NAME)]
    known = [folder / statement.file for statement in project.statements]
    beside = [file for place in {file.parent for file in known} for file in place.glob("*.sql")]
    found = []
    for file in sorted({*named, *known, *beside}):
        try:
            facts = file.stat()
        except OSError:
            continue  # removed: it is missing from the fingerprint
        found.append((str(file), facts.st_mtime_ns, facts.st_size))
    return tuple(found)
