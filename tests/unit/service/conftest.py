"""A service over a warehouse without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from toy import Running

from viewkeeper.define.template import init_project

SETTINGS = """\
service:
  poll: 1 second
  backoff: {first: 1 second, longest: 2 seconds, suspend_after: 3}
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    folder = tmp_path / "shop"
    init_project(folder, "shop")
    (folder / "viewkeeper.yml").write_text(SETTINGS)
    found = Running(folder)
    yield found
    found.warehouse.ledger.close()
