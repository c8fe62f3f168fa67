"""What stands for a table in one view's rules: source versions, parents' storage, staged deltas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from viewkeeper.algebra.conditions import conditions_alone, is_on_table, stored_predicate
from viewkeeper.algebra.deltas import Delta, apply, change_between, consolidate, deleted, inserted, plus
from viewkeeper.algebra.empty_terms import Extents, apart, checked_references, left_out
from viewkeeper.algebra.estimates import known_sum
from viewkeeper.algebra.expressions import Expression, Node
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.relations import (
    Field,
    Filter,
    Join,
    Moment,
    Nothing,
    Project,
    Relation,
    Scan,
    Staged,
    TableAt,
)
from viewkeeper.algebra.scalars import WEIGHT, Named, column, keep
from viewkeeper.define.clock import is_clock, literal
from viewkeeper.plan.common_deltas import CommonDeltas, Problem
from viewkeeper.plan.layout import Layout
from viewkeeper.plan.propagation import Propagation, propagation
from viewkeeper.plan.situation import Counted, Situation, Span, ViewInput
from viewkeeper.plan.steps import Extract, Share, Step, Strategy


@dataclass(frozen=True, slots=True)
class ParentOutcome:
    """What the epoch does with a view that others read: the staged names of its delta and its rows."""

    strategy: Strategy
    delta: str | None
    rows: str | None
    delta_estimate: int | None
    """About how many rows its delta has: nothing is known by it but how to read that."""


class Bench(Protocol):
    """What is planned so far, as far as the leaves of a view add to it."""

    @property
    def situation(self) -> Situation: ...

    @property
    def extracts(self) -> Mapping[Span, Extract]:
        """The deltas that will be extracted."""

    def add(self, step: Step) -> None: ...

    def name(self, what: str) -> str:
        """A new name to stage something under."""

    def compute_common(
        self, view: ViewInput, relation: Join, what: str, rows: int, counts: str | None
    ) -> Staged:
        """Add the steps that compute the delta of a part that several views need; ``counts``: what the view
        calls it, if its rows are to be counted."""


class ViewLeaves:
    """The leaves of one view in one epoch; the steps that they need are added on demand."""

    def __init__(
        self,
        view: ViewInput,
        bench: Bench,
        parents: Mapping[str, tuple[ViewInput, ParentOutcome]],
        changed_rows: int | None,
        common: CommonDeltas,
        *,
        counts_parts: bool = True,
    ) -> None:
        self._view = view
        self._bench = bench
        self._situation = bench.situation
        self._parents = parents
        # What a rule shares are keys or groups of the changed rows: there are at most as many.
        self._changed_rows = changed_rows
        self._common = common
        self._counts_parts = counts_parts
        self._propagations: list[tuple[Join, Propagation]] = []
        self._counting: dict[Join, dict[int, str]] = {}

    def old(self, scan: Scan) -> Relation:
        """The rows that the view was last computed from."""
        if scan.table in self._parents:
            parent, _ = self._parents[scan.table]
            return fields_asked(self._shown(parent, self._view.vector[scan.table]), scan)
        return self._source_at(scan, self._view.vector[scan.table])

    def new(self, scan: Scan) -> Relation:
        """The rows that the epoch moves to; of a parent never its branch, but V_old ⊎ ΔV."""
        if scan.table not in self._parents:
            return self._source_at(scan, self._situation.versions[scan.table])
        parent, outcome = self._parents[scan.table]
        if outcome.rows is not None:
            return fields_asked(_staged(outcome.rows, parent.layout.columns), scan)
        current = self._shown(parent, parent.snapshot)
        if outcome.delta is None:
            return fields_asked(current, scan)
        return fields_asked(apply(current, _staged_delta(outcome.delta, parent, outcome)), scan)

    def delta(self, scan: Scan) -> Delta | None:
        """ΔR between the two; for a parent, what it went through while this view was not refreshed, too."""
        if scan.table in self._parents:
            change = self._parent_delta(scan.table)
        else:
            change = self._extracted(self._span(scan.table))
        if change is None:
            return None
        return Delta(fields_asked(change.relation, scan, WEIGHT))

    def insert_only(self, scan: Scan) -> bool:
        if scan.table in self._parents:
            return self._parent_delta(scan.table) is None
        change = self._situation.changes.get(self._span(scan.table))
        return change is None or change.deleted == 0

    def size(self, scan: Scan) -> int | None:
        """Rows of the table now."""
        if scan.table in self._parents:
            return self._parents[scan.table][0].rows
        return self._situation.rows.get(scan.table)

    def old_size(self, scan: Scan) -> int | None:
        """Rows of the table before what came and went; of what a parent goes through in this epoch neither is
        known by itself."""
        rows, change = self.size(scan), self._situation.changes.get(self._span(scan.table))
        if rows is None or change is None:
            return rows
        return max(0, rows - change.inserted + change.deleted)

    def pruned_size(self, relation: Filter) -> int | None:
        """As it was asked for."""
        return self._situation.pruned.get(relation)

    def delta_size(self, scan: Scan) -> int | None:
        """Rows of the delta, at most."""
        if scan.table not in self._parents:
            change = self._situation.changes.get(self._span(scan.table))
            return 0 if change is None else change.inserted + change.deleted
        _, outcome = self._parents[scan.table]
        missed = self._situation.changes.get(self._span(scan.table))
        return known_sum((outcome.delta_estimate, 0 if missed is None else missed.inserted + missed.deleted))

    def excludes(self, relation: Filter) -> bool:
        """As it was asked of the metadata of sources."""
        if not self._situation.excluded or not is_on_table(relation):
            return False
        scan, predicate = stored_predicate(relation)
        if scan.table in self._parents or scan.table not in self._view.vector:
            return False
        return (self._span(scan.table), predicate) in self._situation.excluded

    def untouched(self, scan: Scan) -> bool:
        """Its version is the same, or another one of the same rows."""
        table, known = scan.table, self._view.vector
        if table not in known:
            return False
        if table in self._parents:
            parent, outcome = self._parents[table]
            return outcome.strategy is Strategy.UNCHANGED and parent.snapshot == known[table]
        if known[table] == self._situation.versions[table]:
            return True
        return self._situation.changes.get(self._span(table), self) is None

    def distinct(self, scan: Scan) -> Mapping[str, float]:
        """Of sources only; of a view the rows have to do."""
        return self._situation.distinct.get(scan.table, {})

    def types(self, scan: Scan) -> Mapping[str, str]:
        """Of sources as they were when the view was defined; of a view those that it is stored with."""
        if scan.table in self._parents:
            layout = self._parents[scan.table][0].layout
            if layout.top is not None:
                return {}  # what is stored are other columns than those that it shows
            stored = (field.stored for field in layout.fields)
            return dict(zip(stored, layout.types, strict=True))
        return self._situation.types.get(scan.table, {})

    def widths(self, scan: Scan) -> Mapping[str, float]:
        """Of sources only."""
        return self._situation.widths.get(scan.table, {})

    def expression(self, relation: Join, sizes: JoinSizes) -> Expression:
        """As the options say; what was chosen is kept, to be explained."""
        problem = Problem(self._view, relation, sizes, self._span)

        def empty(tree: Node) -> Iterator[tuple[int, int]]:
            return left_out(relation, tree, sizes.changed, self.extents)

        chosen = self._common.solved(
            problem,
            lambda given: propagation(
                sizes,
                self._situation.options.joins,
                given,
                self._counted,
                empty,
                apart(relation, sizes.changed, self.extents),
            ),
        )
        if isinstance(chosen.expression, Node):
            checked = checked_references(relation, chosen.expression, sizes.changed, self.extents)
            chosen = replace(chosen, checked=tuple((part, str(reference)) for part, reference in checked))
        self._propagations.append((relation, chosen))
        return chosen.expression

    def propagations(self, whole: str | None = None) -> tuple[Propagation, ...]:
        """What was chosen for the joins, each with the results that tell what its sets hold. ``whole``: the
        result that holds all that came out, if the rule adds nothing to a join and takes nothing away."""
        is_alone = len(self._propagations) == 1
        return tuple(
            replace(chosen, counting=tuple(self._told_by(relation, chosen, whole if is_alone else None)))
            for relation, chosen in self._propagations
        )

    def _told_by(self, relation: Join, chosen: Propagation, whole: str | None) -> Iterator[tuple[int, str]]:
        for place, child in enumerate(relation.inputs):
            # Under conditions of its own, less of the table's delta is joined than was extracted.
            if (
                chosen.changed[place]
                and isinstance(child, Scan)
                and conditions_alone(relation, place) is None
            ):
                name = self._delta_name(child)
                if name is not None:
                    yield 1 << place, name
        if whole is not None:
            yield (1 << len(relation.inputs)) - 1, whole
        yield from self._counting.get(relation, {}).items()

    def _delta_name(self, scan: Scan) -> str | None:
        """The result that is the delta of a table, and nothing else."""
        step = self._bench.extracts.get(self._span(scan.table))
        if scan.table not in self._parents:
            return None if step is None else step.name
        return self._parents[scan.table][1].delta if step is None else None

    def extents(self, scan: Scan, column: str) -> Extents | None:
        """Of sources only."""
        if scan.table in self._parents or scan.table not in self._view.vector:
            return None
        span = self._span(scan.table)
        known = self._situation.extents.get((span, column))
        unreferred = frozenset(
            reference
            for reference, came, version in self._situation.unreferred
            if came == span and column in reference.key and self._view.vector.get(reference.child) == version
        )
        return known if not unreferred else replace(known or Extents(), unreferred=unreferred)

    @property
    def corrections(self) -> Mapping[str, float]:
        """As the ledger remembers it of this view."""
        return {part: counted.factor for part, counted in self._counted.items()}

    def part_delta(self, relation: Join, relations: int, delta: Delta) -> Delta:
        """Counted once, so that it need not be guessed from then on."""
        problem = self._common.problems.get((self._view.name, relation))
        part = problem.sizes.name(relations) if problem is not None else None
        if problem is None or part is None or not self._is_to_count(part):
            return delta
        name = self._bench.name("part")
        self._counting.setdefault(relation, {})[relations] = name
        self._bench.add(Share(name, self._view.name, f"Δ({part})", delta.relation, counts=part))
        return Delta(_staged(name, delta.relation.columns, round(problem.sizes.delta(relations))))

    @property
    def _counted(self) -> Mapping[str, Counted]:
        return self._situation.learned.get(self._view.name, {})

    def _is_to_count(self, part: str) -> bool:
        return self._counts_parts and part not in self._counted

    def common_delta(self, relation: Join, relations: int) -> Delta | None:
        """Of what several views need; computed by whichever comes first."""
        problem = self._common.problems.get((self._view.name, relation))
        if problem is None:
            return None
        part = problem.sizes.name(relations)
        counts = part if self._is_to_count(part) else None
        found = self._common.delta(
            problem,
            relations,
            lambda join, what, rows: self._bench.compute_common(self._view, join, what, rows, counts),
        )
        if found is None:
            return None
        staged, change = found
        self._counting.setdefault(relation, {})[relations] = staged.name
        return change

    def share(
        self, relation: Relation, what: str, parts: tuple[str, ...] = (), counts: str | None = None
    ) -> Staged:
        """Stage it: the rule reads it more than once."""
        name = self._bench.name("shared")
        self._bench.add(Share(name, self._view.name, what, relation, parts, counts=counts))
        return _staged(name, relation.columns, self._changed_rows)

    def _span(self, table: str) -> Span:
        """What the view has not seen yet; of a parent, what its storage went through before this epoch."""
        if table in self._parents:
            parent, _ = self._parents[table]
            return parent.storage, self._view.vector[table], parent.snapshot
        return table, self._view.vector[table], self._situation.versions[table]

    def _parent_delta(self, table: str) -> Delta | None:
        parent, outcome = self._parents[table]
        layout = parent.layout
        missed = self._extracted(self._span(table))
        if missed is not None and (layout.in_parts or layout.top is not None):
            # Parts that came say nothing of their groups, nor some groups of what is made of all of them.
            before, now = (parent.stored_at(at) for at in (self._view.vector[table], parent.snapshot))
            missed = difference(layout, layout.whole(now), layout.whole(before))
        elif missed is not None:
            known = tuple(Field(field.stored, field.name) for field in layout.fields)
            rows = Project(
                missed.relation,
                (*(Named(field.name, column(field.stored)) for field in known), *keep([WEIGHT])),
            )
            missed = layout.shown_change(Delta(rows))
        in_epoch = None if outcome.delta is None else _staged_delta(outcome.delta, parent, outcome)
        return plus((missed, in_epoch))

    def _extracted(self, span: tuple[str, str | None, str | None]) -> Delta | None:
        step = self._bench.extracts.get(span)
        if step is None:
            return None
        return Delta(_staged(step.name, (*step.columns, WEIGHT), step.inserted + step.deleted))

    def _source_at(self, scan: Scan, version: str | None) -> Relation:
        if is_clock(scan.table):
            assert version is not None, "a clock always shows something"
            return Moment(scan.columns[0], literal(scan.table, version))
        if scan.table in self._situation.relations:
            return Staged(self._situation.relations[scan.table], scan.fields)
        if version is None:
            # Never written. Not "the table as it is now, without its rows": Spark 4.1 cannot analyse a query
            # over a staged result and a table that both read without a version, in another session each.
            types = self._situation.unwritten[scan.table]
            by_name = {name.casefold(): kind for name, kind in types.items()}
            kinds = tuple(by_name[field.stored.casefold()] for field in scan.fields)
            return Nothing(scan.columns, kinds)
        return TableAt(
            scan.table,
            version,
            scan.fields,
            self._situation.read_options.get(scan.table, ()),
            self._situation.rows.get(scan.table),
        )

    @staticmethod
    def _shown(parent: ViewInput, snapshot: str | None) -> Relation:
        return parent.layout.shown(parent.stored_at(snapshot))


def _staged(name: str, columns: tuple[str, ...], rows: int | None = None) -> Staged:
    return Staged(name, tuple(Field(column, column) for column in columns), rows)


def _staged_delta(name: str, parent: ViewInput, outcome: ParentOutcome) -> Delta:
    return Delta(_staged(name, (*parent.layout.columns, WEIGHT), outcome.delta_estimate))


def fields_asked(relation: Relation, scan: Scan, *more: str) -> Relation:
    """The columns that the scan asks for, under the names it gives them."""
    if isinstance(relation, Staged):
        by_name = {field.name.casefold(): field.stored for field in relation.fields}
        chosen = tuple(Field(by_name[field.stored.casefold()], field.name) for field in scan.fields)
        return Staged(relation.name, (*chosen, *(Field(name, name) for name in more)), relation.rows)
    by_fold = {name.casefold(): name for name in relation.columns}
    items = tuple(Named(field.name, column(by_fold[field.stored.casefold()])) for field in scan.fields)
    return Project(relation, (*items, *keep(more)))


def difference(layout: Layout, new: Relation, old: Relation) -> Delta:
    """The delta of what a view shows, between two states of what is stored of it, in whole groups: of those
    that were touched, or of all where what is shown is made of all of them."""
    if layout.top is not None:
        return change_between(layout.shown(old), layout.shown(new))
    both = plus((layout.shown_change(inserted(new)), layout.shown_change(deleted(old))))
    assert both is not None
    return consolidate(both)
