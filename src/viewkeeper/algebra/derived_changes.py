"""prepare-changes of a view from the summary-delta of another one (Mumick et al. 1997, Theorem 5.1), and its
rows from the other's rows.

Along an edge v₁ → v₂ of the lattice, joined with the tables D:

    pc_v₂ = π(σ(sd_v₁ ⋈ D_new))                       if no d ∈ D changed
    pc_v₂ = π(σ(sd_v₁ ⋈ D_new)) ⊎ π(σ(v₁_old ⋈ ΔD))   otherwise

A row of sd_v₁ stands for Y changed rows (its COUNT(*)), a row of v₁_old for as many as its group has, times
the weight of ΔD. What v₁ keeps is passed on; an aggregate over its keys becomes SUM(A·Y) for SUM(A), and Y
where A is not NULL for COUNT(A).

What deletions may take from MIN(A), A being a key of v₁, is the A of a group that shrank; or, if it is known
which groups of v₁ are gone, of one of those: as long as the group is there, A is. Then few groups of v₂ have
lost their extremum, and have to be computed anew.

    pc_v₂ = π(σ(sd_v₁ ⋈ D)) ⊎ π_{keys, A gone}(σ(T_v₁[op = D] ⋈ D))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.aggregates import GROUP_COUNT, Combine, Kept
from viewkeeper.algebra.lattice import Edge
from viewkeeper.algebra.relations import Filter, Join, Project, Relation, UnionAll
from viewkeeper.algebra.rules.restrict import restrict
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, column, compose, words
from viewkeeper.algebra.summary_delta import (
    OPERATION,
    Groups,
    as_stored,
    contribution,
    fragile,
    gone,
    net_changes,
    odd_times,
    summary_delta,
)


@dataclass(frozen=True, slots=True)
class Joined:
    """A table that an edge joins: its rows, what they were, its delta, and how its columns are called there
    (by the names that all views share)."""

    new: Relation
    old: Relation
    delta: Relation | None
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Upper:
    """The view above: its summary-delta (``None``: nothing changed), and its rows before the change."""

    summary_delta: Relation | None
    insert_only: bool
    old: Relation
    touched: Relation | None = None
    """Its touched groups with their operations, where these are there to be read."""


def can_derive(edge: Edge, groups: Groups, *, joins_changed: bool) -> bool:
    """Whether the edge gives exact changes. When a joined table changed, values that only came and went must
    cancel out, for which they have to be known, and not just their extremum in each group above."""
    return not joins_changed or all(edge.sources[kept.name].kept is None for kept in fragile(groups.kept))


def derived_changes(
    edge: Edge, groups: Groups, upper: Upper, tables: Sequence[Joined], *, insert_only: bool
) -> Relation:
    """pc of the lower view, in the form that its summary-delta is aggregated from."""
    terms = _Terms(edge, groups, upper, tables, insert_only)
    if all(table.delta is None for table in tables):
        return terms.unchanged_tables()
    return terms.changed_tables()


def derived_rows(
    edge: Edge, groups: Groups, above: Relation, tables: Sequence[Joined], keys: Relation | None = None
) -> Relation:
    """v₂ = γ_{keys₂}(σ(v₁ ⋈ D)): the lower view, or its groups of these keys, from the upper rows."""
    all_new = _Terms(edge, groups, Upper(above, True, above), tables, insert_only=True).unchanged_tables()
    if keys is not None:
        all_new = restrict(all_new, keys)
    return as_stored(groups, summary_delta(groups, all_new, insert_only=True))


@dataclass(frozen=True, slots=True)
class _Terms:
    edge: Edge
    groups: Groups
    upper: Upper
    tables: Sequence[Joined]
    insert_only: bool

    def unchanged_tables(self) -> Relation:
        """The summary-delta above is net, group by group: what it holds can be passed on as it is."""
        assert self.upper.summary_delta is not None, "something changed"
        joined = self._joined(self.upper.summary_delta, self._new())
        items = [*self._keys(), *(Named(kept.name, self._value(kept)) for kept in self.groups.all_kept)]
        if not self.insert_only:
            items += [Named(gone(kept.name), self._gone(kept)) for kept in fragile(self.groups.kept)]
        prepared = Project(joined, tuple(items))
        vanished = self._vanished()
        return prepared if vanished is None else UnionAll((prepared, vanished))

    def _vanished(self) -> Relation | None:
        """What the groups above that are gone take with them; the rest of their change is in their
        summary-delta."""
        by_key = (
            [] if self.insert_only else [kept for kept in fragile(self.groups.kept) if self._of_key(kept)]
        )
        if self.upper.touched is None or not by_key:
            return None
        gone_groups = Filter(self.upper.touched, compose(column(OPERATION), " = 'D'"))
        nothing = words("NULL")
        items = [*self._keys(), *(Named(kept.name, nothing) for kept in self.groups.all_kept)]
        for kept in fragile(self.groups.kept):
            argument = self.edge.sources[kept.name].argument
            taken = nothing if argument is None or kept not in by_key else self._here(argument)
            items.append(Named(gone(kept.name), taken))
        return Project(self._joined(gone_groups, self._new()), tuple(items))

    def _of_key(self, kept: Kept) -> bool:
        """Whether it is an aggregate over keys of the view above."""
        return self.edge.sources[kept.name].kept is None

    def changed_tables(self) -> Relation:
        """All terms with their weight, and what cancels out removed."""
        terms: list[tuple[Relation, Scalar]] = []
        if self.upper.summary_delta is not None:
            terms.append((self._joined(self.upper.summary_delta, self._new()), words("1")))
        for at, table in enumerate(self.tables):
            if table.delta is not None:
                # The first tables as they are now, those behind as they were: the n-term expression.
                others = [*self._new()[:at], table.delta, *(each.old for each in self.tables[at + 1 :])]
                terms.append((self._joined(self.upper.old, others), column(WEIGHT)))
        parts = [
            Project(
                relation,
                (*self._keys(), *(Named(k.name, self._weighted(k, w)) for k in self.groups.all_kept)),
            )
            for relation, w in terms
        ]
        return net_changes(self.groups, UnionAll(tuple(parts)), insert_only=self.insert_only)

    def _new(self) -> list[Relation]:
        return [table.new for table in self.tables]

    def _joined(self, rows: Relation, tables: Sequence[Relation]) -> Relation:
        joined: Relation = Project(rows, tuple(Named(_above(name), column(name)) for name in rows.columns))
        if tables:
            joined = Join((joined, *tables), tuple(self._here(each) for each in self.edge.on))
        for condition in self.edge.where:
            joined = Filter(joined, self._here(condition))
        return joined

    def _keys(self) -> list[Named]:
        return [Named(name, self._here(self.edge.keys[name])) for name in self.groups.keys]

    def _here(self, scalar: Scalar) -> Scalar:
        """An expression of the edge over the columns as they are called here."""
        by = {name: column(here) for table in self.tables for name, here in table.names.items()}
        return scalar.substitute({name: by.get(name, column(_above(name))) for name in scalar.columns})

    def _value(self, kept: Kept) -> Scalar:
        """What a row of the summary-delta above contributes."""
        source = self.edge.sources[kept.name]
        if source.kept is not None:
            return column(_above(source.kept))
        assert source.argument is not None
        argument, rows = self._here(source.argument), column(_above(GROUP_COUNT))
        if kept.combine in (Combine.ADD, Combine.XOR):
            return contribution(kept, argument, rows=rows)
        return compose("CASE WHEN ", rows, " > 0 THEN ", argument, " END")

    def _gone(self, kept: Kept) -> Scalar:
        """What a row of the summary-delta above took away; of MIN(A) with a key A: the groups that shrank."""
        source = self.edge.sources[kept.name]
        if source.kept is not None:
            if self.upper.insert_only:
                return words(f"CAST(NULL AS {self.groups.type_of(kept.name)})")
            return column(_above(gone(source.kept)))
        assert source.argument is not None
        if self.upper.touched is not None:
            return words("NULL")  # see _vanished
        rows = column(_above(GROUP_COUNT))
        return compose("CASE WHEN ", rows, " < 0 THEN ", self._here(source.argument), " END")

    def _weighted(self, kept: Kept, weight: Scalar) -> Scalar:
        """What a row of the upper view contributes, taken so many times; to an extremum the value itself."""
        source = self.edge.sources[kept.name]
        if source.kept is None:
            assert source.argument is not None
            rows = compose(column(_above(GROUP_COUNT)), " * ", weight)
            return contribution(kept, self._here(source.argument), rows=rows)
        above = column(_above(source.kept))
        if kept.combine is Combine.XOR:
            return odd_times(above, weight)
        # A sum has up to 27 digits; times a BIGINT, with 20, it would lose some of its scale.
        return compose(above, " * CAST(", weight, " AS INT)")


def _above(name: str) -> str:
    """A column of the upper view, under a name that no table's column has."""
    return f"_vk_up_{name}"
