"""The ledger: the record of epochs, and the one transaction that publishes each of them.

It knows nothing of Spark, and nothing of what a view's SQL means: definitions, analyses and plans are JSON
that the caller gives and gets back. That is why status and history need no JVM.
"""

from __future__ import annotations

from viewkeeper.ledger.database import sqlite_url
from viewkeeper.ledger.ledger import Ledger
from viewkeeper.ledger.records import (
    Chore,
    ChoreKind,
    EpochRecord,
    FailingView,
    FailureRecord,
    Lease,
    NewEpoch,
    PastRefresh,
    SourceObservation,
    SourceRecord,
    Trouble,
    ViewRecord,
    ViewRefreshRecord,
    ViewState,
)

__all__ = [
    "Chore",
    "ChoreKind",
    "EpochRecord",
    "FailingView",
    "FailureRecord",
    "Lease",
    "Ledger",
    "NewEpoch",
    "PastRefresh",
    "SourceObservation",
    "SourceRecord",
    "Trouble",
    "ViewRecord",
    "ViewRefreshRecord",
    "ViewState",
    "sqlite_url",
]
