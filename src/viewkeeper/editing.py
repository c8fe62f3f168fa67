"""A view's query, changed where it stands in the files of a project."""

from __future__ import annotations

from pathlib import Path

from viewkeeper.analyse.statements import CreateView, parse_statement
from viewkeeper.define.project import Project, split_statements
from viewkeeper.sql.quoting import parse_path


def replace_query(project: Project, view: str, old: str, new: str) -> Path | None:
    """Put a query in the place of a view's old one; the file, or ``None`` if the old one stands in none. Only
    the statement of that view is touched: others may hold the same text."""
    for file in dict.fromkeys(statement.file for statement in project.statements):
        path = project.folder / file
        text = path.read_text(encoding="utf-8")
        for statement in split_statements(text, file):
            create = parse_statement(statement.sql)
            if isinstance(create, CreateView) and _names(project, create, view) and create.query == old:
                start = statement.position.start + create.query_start
                path.write_text(text[:start] + new + text[start + len(old) :], encoding="utf-8")
                return file
    return None


def _names(project: Project, create: CreateView, view: str) -> bool:
    """Whether a statement is that of a view, given by its full name."""
    parts = create.name
    if len(parts) == 1 and project.namespace:
        parts = (*project.namespace, *parts)
    full = [part.casefold() for part in parse_path(view)]
    return [part.casefold() for part in parts] == full[-len(parts) :]
