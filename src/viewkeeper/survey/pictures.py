"""What a survey found, drawn: with links, for whoever gives a function that makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TypeAlias

from viewkeeper.algebra.expressions import Node, Tree, changes, members, places
from viewkeeper.drawing import (
    Bar,
    DeltaNode,
    GraphEdge,
    GraphNode,
    LatticeEdge,
    LatticeNode,
    Span,
    State,
    TreeNode,
    draw_bars,
    draw_delta_tree,
    draw_graph,
    draw_lattice,
    draw_tree,
    draw_waterfall,
)
from viewkeeper.events import Phase
from viewkeeper.learning import held
from viewkeeper.ledger.records import EpochRecord, PastRefresh
from viewkeeper.plan.propagation import Propagation
from viewkeeper.plan.steps import CheckRows, ComputeRows, ComputeVisible, Extract, Install, Publish, Share
from viewkeeper.sql.quoting import parse_path
from viewkeeper.survey.values import Flow, LatticeFacts, StoredPlan, TableFacts, ViewFacts, Whole

Link: TypeAlias = Callable[[str], str | None]
"""Where the page of a view is."""

_STATES = {"fresh": State.FRESH, "stale": State.STALE, "failed": State.FAILED, "empty": State.PLAIN}


def nowhere(_name: str) -> str | None:
    """For drawings without links."""
    return None


def draw_whole(
    whole: Whole, link: Link = nowhere, sources: str | None = None, now: datetime | None = None
) -> str:
    """The graph of views, from sources to views; ``sources``: the page that tells of those."""
    moment = now or datetime.now(timezone.utc)
    nodes = [
        *(_table(table, sources) for table in whole.tables),
        *(_view(view, link, moment) for view in whole.views),
    ]
    told = f"{len(whole.tables)} sources and {whole.count()} views: {whole.count('fresh')} fresh, "
    told += f"{whole.count('stale')} stale, {whole.count('failed')} failed."
    return draw_graph(nodes, [_edge(flow) for flow in whole.flows], "The graph of views", told)


def draw_around(whole: Whole, name: str, link: Link = nowhere, sources: str | None = None) -> str:
    """A view with what it reads and who reads it."""
    near = [flow for flow in whole.flows if name in (flow.source, flow.target)]
    names = {name, *(flow.source for flow in near), *(flow.target for flow in near)}
    views = tuple(view for view in whole.views if view.name in names)
    tables = tuple(table for table in whole.tables if table.name in names)
    now = datetime.now(timezone.utc)
    nodes = [*(_table(table, sources) for table in tables), *(_view(view, link, now) for view in views)]
    return draw_graph(nodes, [_edge(flow) for flow in near], "What it reads, and who reads it")


def _table(table: TableFacts, href: str | None) -> GraphNode:
    state = State.FAILED if table.problem else State.SOURCE
    told = table.problem or ("has changes that a view lacks" if table.behind else "taken in")
    below = "does not answer" if table.problem else f"{table.kind}, ahead" if table.behind else table.kind
    return GraphNode(table.name, table.label.removeprefix("_sources."), below, state, href, told)


def _view(view: ViewFacts, link: Link, now: datetime) -> GraphNode:
    last = view.last
    below = "no data yet" if last is None else f"{last.refresh.strategy}, {age(last.published_at, now)} ago"
    return GraphNode(view.name, view.label, below, _STATES[view.standing], link(view.name), view.standing)


def _edge(flow: Flow) -> GraphEdge:
    parts = [f"+{flow.inserted:,}"] if flow.inserted else []
    parts += [f"−{flow.deleted:,}"] if flow.deleted else []
    return GraphEdge(flow.source, flow.target, " ".join(parts), flow.shared and bool(parts))


def age(then: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits.

    >>> at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> [age(at, at.replace(**to)) for to in ({"second": 5}, {"minute": 5}, {"hour": 5}, {"day": 5})]
    ['5 s', '5 min', '5 h', '4 d']
    """
    seconds = max(0.0, (now - then).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


def draw_lattice_of(facts: LatticeFacts, link: Link = nowhere) -> str:
    """The lattice; an edge that was used in the last epoch is strong."""
    lattice = facts.lattice.lattice
    return draw_lattice(
        [
            LatticeNode(view, facts.labels[view], facts.keys.get(view, ()), href=link(view))
            for view in lattice.order
        ],
        [
            LatticeEdge(
                edge.upper,
                edge.lower,
                tuple(parse_path(table)[-1] for table in sorted(edge.joins)),
                facts.used.get(edge.lower) == edge.upper,
            )
            for edge in lattice.shown
        ],
        "The lattice of views",
        "Each view can be made from those above it that an edge leads from; strong edges were used last.",
    )


# Plans.


def draw_deltas(stored: StoredPlan) -> list[str]:
    """The delta propagation trees of a view's joins, with the rows that were estimated and counted."""
    actual = held(stored.plan, stored.actual.refresh.estimates)
    return [
        draw_delta_tree(_delta(each, each.expression, rows), f"Delta propagation tree of {stored.plan.view}")
        for each, rows in zip(stored.plan.propagations, actual, strict=True)
        if isinstance(each.expression, Node)
    ]


def _delta(joined: Propagation, tree: Tree, actual: Mapping[int, int]) -> DeltaNode:
    mask = members(tree)
    is_common = mask in joined.common  # how it is computed is not for this view to say
    parts = tree.parts if isinstance(tree, Node) and not is_common else ()
    return DeltaNode(
        tuple(joined.inputs[place] for place in places(mask)),
        dict(joined.rows).get(mask),
        actual.get(mask),
        changes(tree, joined.changed),
        is_common,
        tuple(_delta(joined, part, actual) for part in parts),
    )


def draw_steps(stored: StoredPlan) -> str | None:
    """The steps of a view's plan as a tree: each reads from those below it."""
    if not stored.steps:
        return None
    root = next(
        (at for at, told in enumerate(stored.steps) if isinstance(told.step, Install)), len(stored.steps) - 1
    )
    return draw_tree(
        _step(stored, root), f"How {stored.plan.view} was brought up to date in epoch {stored.epoch}"
    )


def _step(stored: StoredPlan, at: int) -> TreeNode:
    told = stored.steps[at]
    label, lines = _told(stored, at)
    return TreeNode(label, lines, tuple(_step(stored, below) for below in told.reads), detail=told.title)


def _told(stored: StoredPlan, at: int) -> tuple[str, tuple[str, ...]]:
    """A step in two words, and its sizes."""
    step, done = stored.steps[at].step, stored.actual.refresh
    changed = f"= {done.delta_rows:,} rows changed"
    match step:
        case Extract():
            rows = f"≈ +{step.inserted:,} −{step.deleted:,} rows"
            whole = f"of {step.table_rows:,}" if step.table_rows is not None else ""
            return f"Δ{parse_path(step.table)[-1]}", tuple(filter(None, (rows, whole, step.method)))
        case Share():
            return f"share the {step.what.strip(' ,')}", _counted(stored, step.name)
        case ComputeVisible():
            return "what readers see change", ()
        case CheckRows():
            return "check expectations", step.expectations
        case ComputeRows():
            return "recompute all rows", (f"= {done.delta_rows:,} rows",)
        case Install():
            method = done.estimates.get("method") or step.installer.value
            expected = done.estimates.get("prices", {}).get(method)
            took = done.compute_seconds + done.install_seconds
            price = f"≈ {expected:.2f} s, " if expected is not None else ""
            return f"install by {method}", (f"{price}took {took:.2f} s",)
        case Publish():
            return "publish", ()
        case _:
            return "compute the change", (changed,)


def _counted(stored: StoredPlan, name: str) -> tuple[str, ...]:
    """The rows of a staged result that is the delta of a part of a join."""
    actual = held(stored.plan, stored.actual.refresh.estimates)
    for each, rows in zip(stored.plan.propagations, actual, strict=True):
        for mask, counting in each.counting:
            if counting == name and mask in rows:
                return (f"≈ {dict(each.rows)[mask]:,} rows estimated", f"= {rows[mask]:,} actual")
    return ()


# Time.


def draw_history(
    history: Sequence[PastRefresh], title: str, link: Callable[[int], str | None] = lambda _: None
) -> str:
    """What the epochs took for a view, oldest first."""
    bars = [
        Bar(
            str(past.epoch),
            past.refresh.compute_seconds,
            past.refresh.install_seconds,
            link(past.epoch),
            f"{past.refresh.strategy}, {past.refresh.delta_rows:,} rows",
        )
        for past in reversed(history)
        if past.refresh.strategy != "unchanged"
    ]
    return draw_bars(bars, title, "Seconds of computing and installing, by epoch.")


def draw_epoch(record: EpochRecord, labels: Mapping[str, str], link: Link = nowhere) -> str:
    """How an epoch spent its time. When a view's part began within a phase is not recorded: they are drawn
    one after the other where the phase was long enough for that, or else all from its beginning."""
    spans, start = [], 0.0
    extract = record.seconds.get("extract", 0.0)
    for phase in Phase:
        took = record.seconds.get(phase.value, 0.0)
        if phase is Phase.COMPUTE:
            took = max(0.0, took - extract)  # what is extracted is part of computing
        if not took:
            continue
        spans.append(Span("epoch", phase.value, start, took))
        own = [
            (each, seconds)
            for each in record.views
            if (
                seconds := {Phase.COMPUTE: each.compute_seconds, Phase.INSTALL: each.install_seconds}.get(
                    phase
                )
            )
        ]
        in_turn = sum(seconds for _, seconds in own) <= took * 1.02
        at = start
        for each, seconds in own:
            detail = f"{each.strategy}, {each.delta_rows:,} rows"
            spans.append(
                Span(labels.get(each.view, each.view), phase.value, at, seconds, link(each.view), detail)
            )
            at += seconds if in_turn else 0.0
        start += took
    return draw_waterfall(
        spans, f"How epoch {record.id} spent its time", "Seconds by view and phase.", width=860
    )
