"""Queries are changed where their view is defined, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.define.project import Project, load_project
from viewkeeper.editing import replace_query

SPEC = """\
name: shop
storage: storage
catalog: lake
database: default
libraries: [{glob: {include: views/**}}]
"""
QUERY = "SELECT a FROM t"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two views of the same query, and one that holds it within its own."""
    (tmp_path / "views").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(SPEC)
    (tmp_path / "views" / "a.sql").write_text(
        f"-- {QUERY}\nCREATE MATERIALIZED VIEW wide AS {QUERY} WHERE b;\n"
        f"CREATE MATERIALIZED VIEW other.same AS {QUERY};\n"
    )
    (tmp_path / "views" / "b.sql").write_text(
        f"CREATE MATERIALIZED VIEW first AS {QUERY};\nCREATE MATERIALIZED VIEW Same AS\n  {QUERY}\n;\n"
    )
    return load_project(tmp_path)


def test_the_view_of_that_name_is_changed_and_no_other(project: Project):
    first, second = (project.folder / "views" / name for name in ("a.sql", "b.sql"))
    before = first.read_text()
    assert replace_query(project, "lake.default.same", QUERY, "SELECT a, b FROM t") == Path("views/b.sql")
    assert first.read_text() == before
    assert second.read_text() == (
        f"CREATE MATERIALIZED VIEW first AS {QUERY};\n"
        "CREATE MATERIALIZED VIEW Same AS\n  SELECT a, b FROM t\n;\n"
    )
    assert replace_query(project, "lake.other.same", QUERY, "SELECT 1") == Path("views/a.sql")
    assert first.read_text().endswith("other.same AS SELECT 1;\n")


def test_a_view_that_is_nowhere_or_otherwise_changes_nothing(project: Project):
    before = [file.read_text() for file in sorted((project.folder / "views").iterdir())]
    assert replace_query(project, "lake.default.gone", QUERY, "SELECT 1") is None
    assert replace_query(project, "lake.default.wide", QUERY, "SELECT 1") is None
    assert [file.read_text() for file in sorted((project.folder / "views").iterdir())] == before
