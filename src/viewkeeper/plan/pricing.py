"""The prices of all the ways to bring a view up to date, before it is known what its change will be."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from viewkeeper.algebra.estimates import join_partners, joined_rows, read_bytes
from viewkeeper.algebra.reading_costs import width
from viewkeeper.algebra.relations import scans
from viewkeeper.plan.draft import Draft
from viewkeeper.plan.layout import Layout
from viewkeeper.plan.methods import Method
from viewkeeper.plan.prices import Price, Sizes, methods_for, prices
from viewkeeper.plan.sharing import groups_touched
from viewkeeper.plan.situation import ViewInput
from viewkeeper.plan.steps import Work


def expected_prices(draft: Draft, view: ViewInput, work: Work, changed: Sequence[str]) -> list[Price]:
    """Cheapest first; none where sizes are not known."""
    sizes = expected_sizes(draft, view, work, changed)
    if sizes is None:
        return []
    layout = view.layout
    methods = methods_for(
        groups=layout.groups is not None,
        keyed=bool(view.key) and not view.has_copies,
        in_parts=layout.in_parts,
        replaceable=sizes.replaced > 0,
    )
    return corrected(prices(sizes, draft.situation.rates, methods), draft.situation.paid.get(view.name, {}))


def corrected(found: Sequence[Price], paid: Mapping[Method, float]) -> list[Price]:
    """Prices times what was paid for them before.

    >>> prices = [Price(Method.SDBATCH, 1.0, 1.0), Price(Method.FULLRECOMP, 0.0, 3.0)]
    >>> [(price.method.value, price.total) for price in corrected(prices, {Method.SDBATCH: 4.0})]
    [('fullrecomp', 6.0), ('sdbatch', 8.0)]
    >>> [price.method.value for price in corrected(prices, {Method.SDBATCH: 4.0, Method.FULLRECOMP: 3.0})]
    ['sdbatch', 'fullrecomp']
    """
    unpaid = by_others(paid.values())
    times = [paid.get(price.method, unpaid) for price in found]
    again = [
        Price(each.method, each.compute * by, each.install * by, by, each.tell * by)
        for each, by in zip(found, times, strict=True)
    ]
    return sorted(again, key=lambda price: price.total)


def by_others(paid: Iterable[float]) -> float:
    """How many times its price is expected to be paid for a method that nobody has paid for yet, by what was
    paid for others: a machine that is slow for them is slow for this one, too; but they may have been priced
    wrong, and this one right. Halfway between."""
    known = list(paid)
    return math.sqrt(statistics.geometric_mean(known)) if known else 1.0


def expected_sizes(draft: Draft, view: ViewInput, work: Work, changed: Sequence[str]) -> Sizes | None:
    """What the prices depend on, as far as it can be told beforehand."""
    relation = view.analysis.relation
    if relation is None or None in (work.full, work.incremental, work.changed, view.rows):
        return None
    assert work.full is not None
    assert work.incremental is not None
    assert work.changed is not None
    leaves = draft.leaves(view)
    base_bytes = read_bytes(relation, leaves)
    if base_bytes is None:
        return None
    rows = view.rows or 0
    groups = view.layout.groups
    work_rows = float(max(0, work.incremental - work.changed))
    if groups is not None:
        derived = draft.sharing.best(view, groups, changed, work.incremental)
        if derived is not None:
            work_rows = float(derived[0])
    per_row = base_bytes / max(1, work.full)
    changes = [change for table in changed if (change := draft.change(view, table)) is not None]
    inserted, deleted = sum(each.inserted for each in changes), sum(each.deleted for each in changes)
    compared = [parent for scan in scans(relation) if (parent := draft.compared(scan.table)) is not None]
    compared_rows = sum(parent.rows or 0 for parent in compared)
    if deleted:
        # Deleted rows are found among those of their files.
        work_rows += sum(leaves.size(scan) or 0 for scan in scans(relation) if scan.table in changed)
    if groups is not None:
        touched = groups_touched(work.changed, view.rows)
        come, gone, updated = 0.0, 0.0, float(touched)
        if not rows:
            come, updated = updated, 0.0
    else:
        # Of rows that are compared it is not known how many differ.
        come, gone, updated = inserted + compared_rows / 2, deleted + compared_rows / 2, 0.0
        if view.layout.reserve is not None:
            come, gone = (min(each, float(view.layout.reserve.kept)) for each in (come, gone))
    applied = [parent for scan in scans(relation) if (parent := draft.applied(scan.table)) is not None]
    return Sizes(
        base_rows=float(work.full),
        base_bytes=base_bytes,
        work_rows=work_rows,
        work_bytes=work_rows * per_row,
        changed=float(work.changed),
        stored_rows=float(rows),
        stored_width=stored_width(view.layout),
        inserted=come,
        deleted=gone,
        updated=updated,
        grouped=groups is not None,
        joined_rows=float(joined_rows(relation, leaves)),
        partners=join_partners(relation),
        applied_rows=float(sum(parent.rows or 0 for parent in applied)),
        applied_bytes=sum((parent.rows or 0) * stored_width(parent.layout) for parent in applied),
        copies=view.has_copies,
        replaced=max(come, gone) if draft.hanging(view) is not None else 0.0,
        passed_over=float(sum(each.passed_over for each in changes)),
        compared_rows=float(compared_rows),
        compared_bytes=sum((parent.rows or 0) * stored_width(parent.layout) for parent in compared),
        told=draft.is_asked(view),
    )


def stored_width(layout: Layout) -> float:
    """About how many bytes a stored row has."""
    return sum(width(kind) for kind in layout.types)
