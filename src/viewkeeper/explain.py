"""Explains a plan by walking the very steps that the executor runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.analyse.analysis import Reason
from viewkeeper.install import bags, groups, overwrite, replacing
from viewkeeper.install.counts import Counts
from viewkeeper.integrate.prices import RemotePrice
from viewkeeper.learning import held
from viewkeeper.ledger.records import EpochRecord
from viewkeeper.library import Library
from viewkeeper.markup import block, code, folded, html
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.methods import Method
from viewkeeper.plan.references import staged_by
from viewkeeper.plan.steps import (
    CheckRows,
    ComputeBag,
    ComputeGroups,
    ComputeReplacement,
    ComputeRows,
    ComputeVisible,
    EpochPlan,
    Extract,
    Install,
    Publish,
    Share,
    Step,
    Strategy,
    ViewPlan,
)
from viewkeeper.sql.printer import print_relation
from viewkeeper.windows import Window


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a view is kept: whether by deltas, why not, what the next refresh would do, and its SQL."""

    view: str
    incremental: bool
    reason: str | None
    strategy: str
    sql: str
    text: str
    plan: EpochPlan
    head: tuple[str, ...] = ()
    """What there is to say before the steps, line by line."""

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        steps = told_steps(self.plan, self.view)
        titles = "".join(
            f"<li>{html(step.title)}{folded('SQL', *map(code, step.sql)) if step.sql else ''}</li>"
            for step in steps
        )
        head = "<br>".join(html(line) for line in self.head)
        return block(f"<p><b>{html(self.view)}</b></p><p>{head}</p>", f"<ol>{titles}</ol>" if titles else "")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "view": self.view,
            "incremental": self.incremental,
            "reason": self.reason,
            "strategy": self.strategy,
            "sql": self.sql,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What a refresh would do. ``str()`` is for people, ``to_json()`` for machines."""

    epoch: EpochPlan
    window: Window | None = None
    remote: Mapping[str, RemotePrice] = field(default_factory=dict)
    """Of views over remote tables: what it takes to leave them there, and to copy them."""

    @property
    def views(self) -> tuple[ViewPlan, ...]:
        return self.epoch.views

    def to_json(self) -> Any:
        """The steps themselves; they can be read back."""
        return CODEC.encode(self.epoch)

    def __str__(self) -> str:
        lines = list(_plan_lines(self.epoch))
        if self.remote:
            lines.append("Remote tables")
        for view, price in self.remote.items():
            lines += [f"  {view}", *(f"    {line}" for line in price.lines())]
        return "\n".join([*lines, f"Window   {self.window}"] if self.window else lines)


def explain_view(
    name: str,
    plan: EpochPlan,
    reason: Reason | None,
    window: Window | None,
    *,
    hypothetical: bool,
    priced: RemotePrice | None = None,
    state: Sequence[str] = (),
    planned: str | None = None,
    actual: Sequence[Mapping[int, int]] = (),
) -> Explanation:
    """The explanation of one view out of a plan; ``planned``: when that was carried out, if it was, and
    ``actual``: what the deltas of its joins' relations held then."""
    view = plan.view(name)
    steps = told_steps(plan, name)
    sql = "\n\n".join(f"-- {step.title}\n{text}" for step in steps for text in step.sql)
    head = [
        f"view {name}",
        f"  kept     {'by full recompute: ' + str(reason) if reason else 'incrementally'}",
    ]
    if planned is not None:
        head.append(f"  planned  {planned}")
    if hypothetical:
        head.append("  now      nothing changed; below is what a change of every source would do")
    else:
        head.extend(f"  {line}" for line in _view_lines(view))
    if window is not None:
        head.append(f"  window   {window}")
    if priced is not None:
        head += ["  remote", *(f"    {line}" for line in priced.lines())]
    if state:
        head += ["  state", *(f"    {line}" for line in state)]
    for each, rows in zip(view.propagations, actual or [{}] * len(view.propagations), strict=True):
        head += ["  joins", *(f"    {line}" for line in each.lines(rows))]
    lines = [*head, "  steps", *(line for at, step in enumerate(steps, 1) for line in _told(at, step))]
    why = str(reason) if reason else view.reason
    strategy = Strategy.UNCHANGED if hypothetical else view.strategy
    text = "\n".join([*lines, "", sql])
    verdict = tuple(line.removeprefix("  ") for line in head[1:])
    return Explanation(name, reason is None, why, strategy.value, sql, text, plan, verdict)


def kept_state(library: Library, name: str) -> list[str]:
    """The inner results of a view that are kept as hidden views, who shares them, and what they hold."""
    lines = []
    for hidden in library.hidden_parents(name):
        others = [child for child in library.graph.children(hidden) if child != name]
        shared = f", shared with {', '.join(others)}" if others else ""
        query = library.views[hidden].definition.query.splitlines()
        lines += [f"{hidden} keeps{shared}", *(f"  {line}" for line in query)]
    return lines


def explain_stored(name: str, record: EpochRecord, reason: Reason | None) -> Explanation:
    """The explanation of one view out of the plan of an epoch."""
    when = record.published_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    plan: EpochPlan = CODEC.decode(record.plan)
    planned = f"for epoch {record.id}, published {when}"
    told_of = next((each.estimates for each in record.views if each.view == name), {})
    actual = held(plan.view(name), told_of)
    return explain_view(name, plan, reason, None, hypothetical=False, planned=planned, actual=actual)


def _plan_lines(plan: EpochPlan) -> Iterator[str]:
    if plan.changes_nothing:
        yield "Nothing changed."
    extracts = [step for step in plan.steps if isinstance(step, Extract)]
    if extracts:
        yield "What changed"
        for step in extracts:
            why = f"; {step.reason}" if step.reason else ""
            yield f"  {step.table}: up to +{step.inserted:,} −{step.deleted:,} rows, by {step.method}{why}"
    yield "Views"
    width = max((len(view.view) for view in plan.views), default=0)
    for view in plan.views:
        line, *more = _view_lines(view)
        yield f"  {view.view:<{width}}  {line}"
        yield from (f"  {'':<{width}}  {each}" for each in more)


def _view_lines(view: ViewPlan) -> list[str]:
    if view.strategy is Strategy.UNCHANGED:
        return [f"unchanged: {view.reason}"]
    line = view.strategy.value + (f", {view.method.value}" if view.method else "")
    lines = [line + (f": {view.reason}" if view.reason else "")]
    if view.changed and view.changed != (view.view,):
        lines.append(f"because of {', '.join(view.changed)}")
    if view.derived_from is not None:
        lines.append(
            f"its summary-delta is made from that of {view.derived_from}"
            if view.strategy is Strategy.INCREMENTAL
            else f"its rows are made from those of {view.derived_from}"
        )
    work = view.work
    if work.incremental is not None and work.full is not None:
        lines.append(f"work     {work.incremental:,} rows by deltas, {work.full:,} by recomputing")
    if view.prices:
        told = ", ".join(f"{price.method.value} {price.total:.1f} s" for price in view.prices)
        lines.append(f"prices   {told}")
    return lines


def _steps_for(plan: EpochPlan, name: str) -> list[Step]:
    """The view's own steps and those that they read from, in order."""
    names = [step.name for step in plan.steps if not isinstance(step, (Install, Publish))]
    wanted: set[str] = set()
    chosen: list[Step] = []
    for step in reversed(plan.steps):
        own = getattr(step, "view", None) == name
        needed = not isinstance(step, (Install, Publish)) and step.name in wanted
        if own or needed:
            chosen.append(step)
            wanted.update(staged_by(step, names))
    return chosen[::-1]


def _told(at: int, told: ToldStep) -> Iterator[str]:
    """A step, and what it goes through."""
    step = told.step
    yield f"    {at}. {told.title}"
    if isinstance(step, Share):
        yield from (f"       {part}" for part in step.parts)
    if isinstance(step, (Extract, Share)) and step.looked_up:
        yield f"       range of {', '.join(step.looked_up)}: files outside it are not read"


def _title(step: Step) -> str:
    match step:
        case Extract():
            how = "into" if step.staged else "as it is read, under the name"
            return f"extract the delta of {step.table} by {step.method} {how} {step.name}"
        case Share():
            how = "stage" if step.staged else "as it is read, compute"
            return f"{how} the {step.what} of {step.view} as {step.name}"
        case ComputeGroups():
            return f"compute the touched groups of {step.view} as {step.name}"
        case ComputeBag():
            return f"compute the delta of {step.view} as {step.name}"
        case ComputeReplacement():
            return f"compute the rows of {step.view} that are touched anew, as {step.name}"
        case ComputeRows():
            return f"recompute {step.view}"
        case ComputeVisible():
            return f"compute what the readers of {step.view} see change, as {step.name}"
        case CheckRows():
            return f"count the rows of {step.view} that come and break {', '.join(step.expectations)}"
        case Install():
            method = step.method or step.expected
            by = method.value if method else step.installer.value
            return f"install into {step.storage} on the epoch's branch ({by})"
        case Publish():
            return "publish all in one ledger transaction, then fast-forward"


def _step_sql(step: Step) -> tuple[str, ...]:
    match step:
        case Extract():
            return step.statements
        case ComputeGroups() if step.recomputed is not None:
            source = step.recomputed_from or "its rows"
            again = f"-- only if a group is marked R, because its extremum was deleted: from {source}\n"
            return (print_relation(step.relation), again + print_relation(step.recomputed))
        case Share() | ComputeGroups() | ComputeVisible() | CheckRows():
            return (print_relation(step.relation),)
        case ComputeBag(refilled=after) if after is not None and step.reserve is not None:
            again = (
                f"-- only if fewer than {step.reserve.shown:,} rows would be left of those that are kept\n"
            )
            return (print_relation(step.relation), again + print_relation(after))
        case ComputeBag() | ComputeReplacement():
            return (print_relation(step.relation),)
        case ComputeRows():
            # Written straight into the storage, unless other steps read it too.
            return (step.sql,) if step.staged else ()
        case Install():
            return _install_sql(step)
        case Publish():
            return ()


def _install_sql(step: Install) -> tuple[str, ...]:
    """The statements for a change of every kind; the run leaves out what was not counted."""
    every = Counts(inserted=1, deleted=1, updated=1)
    match step.source:
        case ComputeGroups():
            return groups.statements(step, every, step.method or step.expected or Method.SDBATCH)
        case ComputeBag():
            by_key = (step.method or step.expected) is Method.KEYINSTALL
            return (bags.statements_by_key if by_key else bags.statements_by_hash)(step, every)
        case ComputeReplacement():
            return replacing.statements(step, every)
        case ComputeRows() as source:
            return overwrite.statements(step, source.rows)


@dataclass(frozen=True, slots=True)
class ToldStep:
    """A step of a plan in words: what it does, the steps that it reads from (by their place in the list), and
    its SQL."""

    step: Step
    title: str
    reads: tuple[int, ...]
    sql: tuple[str, ...]


def told_steps(plan: EpochPlan, name: str) -> list[ToldStep]:
    """The steps that bring one view up to date, and those that they read from, in order."""
    steps = _steps_for(plan, name)
    places = {step.name: at for at, step in enumerate(steps) if not isinstance(step, (Install, Publish))}
    return [
        ToldStep(step, _title(step), tuple(places[each] for each in staged_by(step, places)), _step_sql(step))
        for step in steps
    ]
