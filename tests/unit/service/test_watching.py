from __future__ import annotations

from pathlib import Path

from viewkeeper.define.project import load_project
from viewkeeper.define.template import init_project
from viewkeeper.service.watching import fingerprint


def test_every_change_of_a_projects_files_is_seen(tmp_path: Path):
    init_project(tmp_path / "shop", "shop")
    project = load_project(tmp_path / "shop")
    seen = [fingerprint(project.folder)]
    assert fingerprint(project.folder) == seen[0]
    views = project.folder / "transformations"
    (views / "new.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT 1;")
    seen.append(fingerprint(project.folder))
    (views / "deeper").mkdir()
    (views / "deeper" / "newer.sql").write_text("CREATE MATERIALIZED VIEW w AS SELECT 1;")
    seen.append(fingerprint(project.folder))
    (views / "orders_by_day.sql").unlink()
    seen.append(fingerprint(project.folder))
    settings = project.folder / "viewkeeper.yml"
    settings.write_text(settings.read_text() + "target_lag: 1 hour\n")
    seen.append(fingerprint(project.folder))
    (project.folder / "notes.txt").write_text("nothing of ours")
    assert len(set(seen)) == 5
    assert fingerprint(project.folder) == seen[-1]
