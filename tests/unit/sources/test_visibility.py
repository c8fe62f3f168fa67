"""What one snapshot sees of another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.sources.visibility import Visible

MOST = 12


@st.composite
def snapshots(draw: st.DrawFn) -> Visible:
    """As PostgreSQL writes them: ``xmin`` is the first that is under way, or ``xmax``."""
    xmax = draw(st.integers(3, MOST))
    under_way = draw(st.sets(st.integers(3, MOST).filter(lambda xid: xid < xmax), max_size=4))
    listed = ",".join(map(str, sorted(under_way)))
    return Visible.of(f"{min(under_way, default=xmax)}:{xmax}:{listed}")


@given(snapshots(), snapshots())
def test_all_that_another_snapshot_sees(one: Visible, other: Visible) -> None:
    every = range(MOST + 1)
    assert one.sees_all_of(other) == all(one.sees_whole(xid) or not other.sees_whole(xid) for xid in every)
