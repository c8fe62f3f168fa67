"""What is said when there is no Spark."""

from __future__ import annotations

from typing import NoReturn
from unittest.mock import MagicMock

import pytest

from viewkeeper import session
from viewkeeper.errors import SetupError


def failed(address: str) -> NoReturn:
    raise RuntimeError(f"nobody listens at {address}")


def test_a_token_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    away = MagicMock()  # a builder of sessions that gets none, and repeats the address
    away.appName.return_value = away.remote.return_value = away
    away.getOrCreate.side_effect = lambda: failed(away.remote.call_args.args[0])
    monkeypatch.setattr(session.SparkSession, "builder", away)
    with pytest.raises(SetupError, match="no Spark session on sc://host:15002") as raised:
        session.configured_session(remote="sc://host:15002/;token=HUSH;user_id=me")
    assert "nobody listens" in raised.value.message
    assert "HUSH" not in raised.value.message
