"""Whatever the views and whatever happens to their sources: maintained equals recomputed.

Random cases from fixed seeds; the long run takes more of them (``VIEWKEEPER_SEEDS=1000-1999`` others). Every
counterexample that was ever found stands in ``regressions/``, as data.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from view_files import long_seeds

from random_views import RANDOM_VIEWS
from viewkeeper.plan import lookups, maintaining
from viewkeeper.testing import Oracle, check, parse_case, random_case

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.sql"))
SAMPLE = range(2)


@pytest.mark.spark
@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_counterexamples_of_the_past(oracle: Oracle, path: Path) -> None:
    outcome = oracle.run(parse_case(path.read_text(encoding="utf-8")))
    assert outcome.ok, "\n".join(str(failure) for failure in outcome.failures)


@pytest.fixture
def as_if_large(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other case is planned as if its tables and views were large: ranges of keys become conditions."""
    if seed % 2:
        monkeypatch.setattr(lookups, "_LARGE_ROWS", 1)
        monkeypatch.setattr(lookups, "_LARGER", 1)
        monkeypatch.setattr(maintaining, "SMALL_ROWS", 0)


@pytest.mark.spark
@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("seed", SAMPLE)
def test_random_views(oracle: Oracle, seed: int) -> None:
    outcome = check(oracle, random_case(seed, views=8, cycles=3), seed=seed, random=True)
    assert outcome.incremental > 0


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("seed", long_seeds("100-266"))
def test_many_random_views(oracle: Oracle, seed: int, record_property: Callable[[str, object], None]) -> None:
    """5,010 views."""
    outcome = check(oracle, random_case(seed, views=30, cycles=5), seed=seed, random=True)
    record_property(RANDOM_VIEWS, dict(outcome.views))
