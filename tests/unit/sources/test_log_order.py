"""A log whose transactions do not come in order halts the source."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from viewkeeper.errors import SourceError
from viewkeeper.sources.pgoutput import Transaction
from viewkeeper.sources.postgres_slot import in_order


def transactions(*ends: int) -> list[Transaction]:
    return [Transaction(at, datetime.now(timezone.utc), end) for at, end in enumerate(ends)]


def test_in_order() -> None:
    given = transactions(5, 7, 30)
    assert in_order(iter(given)) == given


@pytest.mark.parametrize("ends", [(5, 5), (5, 4), (1, 9, 3)])
def test_out_of_order(ends: tuple[int, ...]) -> None:
    with pytest.raises(SourceError, match="out of order") as caught:
        in_order(transactions(*ends))
    assert caught.value.code == "VK-LOG-BROKEN"
    assert caught.value.hint
