"""What a warehouse looks like to people: pages, notebooks and reports are made from this.

A :class:`Survey` reads the ledger alone, so it needs neither Spark nor the sources, and asks it a few times
for each answer, however many views and epochs there are. ``pictures`` turns its answers into drawings.
"""

from __future__ import annotations

from viewkeeper.survey.survey import Survey

__all__ = ["Survey"]
