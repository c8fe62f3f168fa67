"""What is said when there is no Spark."""

from __future__ import annotations

from typing import NoReturn

import pytest

from viewkeeper import session
from viewkeeper.errors import SetupError


class Away:
    """A builder of sessions that gets none, and repeats the address."""

    def __init__(self) -> None:
        self.address = ""

    def appName(self, name: str) -> Away:
        return self

    def remote(self, address: str) -> Away:
        self.address = address
        return self

    def getOrCreate(self) -> NoReturn:
        raise RuntimeError(f"nobody listens at {self.address}")


def test_a_token_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.SparkSession, "builder", Away())
    with pytest.raises(SetupError, match="no Spark session on sc://host:15002") as raised:
        session.configured_session(remote="sc://host:15002/;token=HUSH;user_id=me")
    assert "nobody listens" in raised.value.message
    assert "HUSH" not in raised.value.message
