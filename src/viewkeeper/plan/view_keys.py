"""The keys of views, as they follow from the keys of their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viewkeeper.algebra.keys import derived_key
from viewkeeper.analyse.analysis import Analysis
from viewkeeper.plan.layout import Layout


def key_of_view(analysis: Analysis, layout: Layout, tables: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A key of the view's rows, in its own columns, given those of the tables and views that it reads; empty
    if none is known."""
    groups = layout.groups
    if groups is None or layout.counted or layout.top is not None:
        key = None if analysis.relation is None else derived_key(analysis.relation, tables)
        return key or ()
    shown = {next(iter(item.scalar.columns)): item.name for item in layout.present if item.is_rename}
    if not set(groups.keys) <= shown.keys():
        return ()
    return tuple(shown[name] for name in groups.keys)
