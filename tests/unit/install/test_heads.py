"""Which of the snapshots that an epoch wrote is the one to publish; without Spark."""

from __future__ import annotations

from typing import Any

from viewkeeper.install.publish import Head, heads

STORAGE = "lake._viewkeeper.s"


class Session:
    """Answers what is asked of a storage table: what an epoch wrote, and where its branch stands."""

    def __init__(self, *written: tuple[str, str, int], branch: str | None = None) -> None:
        """``written``: snapshot, parent, and when the clock said that it was committed."""
        self._snapshots = [
            {
                "storage": STORAGE,
                "snapshot": own,
                "parent": parent,
                "committed_at": at,
                "added": 1,
                "removed": 2,
            }
            for own, parent, at in written
        ]
        self._refs = [] if branch is None else [{"snapshot": branch}]
        self.asked: list[str] = []

    def sql(self, query: str) -> Any:
        self.asked.append(query)
        return self

    def collect(self) -> list[dict[str, Any]]:
        return self._refs if ".refs" in self.asked[-1] else self._snapshots


def head_of(session: Session) -> Head | None:
    return heads(session, [STORAGE], 5).get(STORAGE)  # type: ignore[arg-type]


def test_nothing_was_written() -> None:
    assert head_of(Session()) is None


def test_a_clock_that_is_put_back_between_two_commits() -> None:
    """Rows are deleted and inserted by a commit each: published is what has both."""
    session = Session(("11", "10", 5_000), ("12", "11", 4_000))
    assert head_of(session) == Head("12", "10", 1, 4)
    assert len(session.asked) == 1, "the branch need not be asked"


def test_a_trial_that_was_taken_back() -> None:
    """The branch tells, whatever the clock said."""
    session = Session(("11", "10", 8_000), ("12", "11", 9_000), ("13", "10", 4_000), branch="13")
    assert head_of(session) == Head("13", "10", 1, 2)
    assert "'vk_epoch_5'" in session.asked[-1]
