"""Lattice-friendly views (Mumick et al. 1997, Section 5.2): columns and aggregates that, added to one view,
let others be derived from it, perhaps without another join.

A column may be added to the keys of a view without changing its groups if the keys determine it: the key of a
dimension determines all its columns (a key that the project declares, or Iceberg's identifier fields), and a
project may declare more (city → region).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeeper.algebra.aggregates import Combine, Kept
from viewkeeper.algebra.lattice import ForeignKey, derives, lacking_aggregates
from viewkeeper.algebra.relations import Aggregate, children
from viewkeeper.algebra.scalars import Scalar, column
from viewkeeper.algebra.stars import Star, qualified, star_of, table_of
from viewkeeper.algebra.summary_delta import Groups
from viewkeeper.analyse.widening import widened
from viewkeeper.define.settings import Settings
from viewkeeper.lattices import declared, is_named
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.sharing import star_of_view


@dataclass(frozen=True, slots=True)
class Extension:
    """Columns and aggregates to add to a view, which views could be derived from it then, and its query with
    them."""

    view: str
    columns: tuple[str, ...]
    lets_derive: tuple[str, ...]
    query: str
    aggregates: tuple[str, ...] = ()

    def __str__(self) -> str:
        more, below = ", ".join((*self.columns, *self.aggregates)), ", ".join(self.lets_derive)
        return f"{self.view}: add {more}, and {below} can be derived from it\n{self.query}"


def extensions(library: Library, settings: Settings) -> list[Extension]:
    """What would make the lattice richer, as far as dependencies are declared."""
    stars = {
        name: star
        for name, view in library.views.items()
        if (star := star_of_view(view.layout, view.definition)) is not None
    }
    foreign_keys = declared(settings, library)
    found: list[Extension] = []
    for upper, star in stars.items():
        view = library.views[upper]
        determined, names = _determined(star, view, settings), _plain_names(star, view)
        columns: dict[str, None] = {}
        aggregates: dict[str, None] = {}
        derived: list[str] = []
        for lower, other in stars.items():
            if lower == upper or derives((lower, other), (upper, star), foreign_keys) is not None:
                continue
            keys = _lacking(other, star, determined)
            calls = _lacking_calls((library.views[lower], other), (view, star), names)
            if (keys or calls) and _would_derive(other, star, keys, calls, foreign_keys):
                columns.update(dict.fromkeys(determined[name] for name in keys))
                aggregates.update(dict.fromkeys(calls or ()))
                derived.append(lower)
        query = widened(view.definition.query, list(columns), list(aggregates)) if derived else None
        if query is not None:
            found.append(Extension(upper, tuple(columns), tuple(derived), query, tuple(aggregates)))
    return found


def _lacking_calls(
    lower: tuple[KnownView, Star], upper: tuple[KnownView, Star], names: Mapping[str, str]
) -> list[str] | None:
    """The aggregates of the lower view that the upper one lacks, as the upper one's query could say them;
    ``None`` where it could not, or where the lower view is as fine as the upper one."""
    lacking = lacking_aggregates(lower[1], upper[1])
    if any(kept.combine is Combine.RECOMPUTE for kept, _ in lacking.values()):
        return None
    there = {name: kept for name, kept in lower[1].kept.items() if name not in lacking}
    if lacking and derives(("", replace(upper[1], kept={})), ("", replace(lower[1], kept=there))) is not None:
        return None
    about = {column for _, arguments in lacking.values() for each in arguments for column in each.columns}
    known = _calls(upper[0])
    calls: list[str] = []
    for function, argument in _calls(lower[0]):
        if not argument.columns & about or (function, argument) in known:
            continue
        if not argument.columns <= names.keys():
            return None
        said = "".join(part if isinstance(part, str) else names[part.name] for part in argument.parts)
        name = "_".join((function, *sorted(names[each] for each in argument.columns)))
        calls.append(f"{function}({said}) AS {name}")
    return calls


def _calls(view: KnownView) -> list[tuple[str, Scalar]]:
    """The aggregates of one argument in a view's query, over the tables' own columns."""
    relation, groups = view.analysis.relation, view.layout.groups
    while relation is not None and not isinstance(relation, Aggregate):
        below = children(relation)
        relation = below[0] if len(below) == 1 else None
    if relation is None or groups is None:
        return []
    plain = [call for call in relation.calls if len(call.arguments) == 1]
    star = star_of(
        Groups(groups.child, groups.keys, tuple(Kept(call, Combine.RECOMPUTE) for call in plain), ())
    )
    found = {} if star is None else star.kept
    return [(call.function, found[call.name][1][0]) for call in plain if call.name in found]


def _columns(star: Star, view: KnownView) -> dict[str, str]:
    """The columns of the view's tables, by their common name."""
    return {
        qualified(table, str(name)): str(name)
        for table in star.tables
        for name, *_ in view.sources.get(table, {}).get("columns", ())
    }


def _plain_names(star: Star, view: KnownView) -> dict[str, str]:
    """How the view's query can name the columns of its tables: those that no other of its tables has."""
    columns = _columns(star, view)
    plain = [name.casefold() for name in columns.values()]
    return {name: here for name, here in columns.items() if plain.count(here.casefold()) == 1}


def _determined(star: Star, view: KnownView, settings: Settings) -> Mapping[str, str]:
    """The columns that the view's keys determine, by their common name: how the query can name them."""
    known = {name for key in star.keys.values() if key.is_column for name in key.columns}
    columns = _columns(star, view)
    closure = set(known)
    while True:
        more = {name for name in columns if name not in closure and _follows(name, closure, view, settings)}
        if not more:
            break
        closure |= more
    # A name that two tables have would have to be qualified, and by what the text does not tell.
    names = _plain_names(star, view)
    return {name: names[name] for name in sorted(closure - known) if name in names}


def _follows(name: str, known: set[str], view: KnownView, settings: Settings) -> bool:
    table = table_of(name)
    rules: list[tuple[tuple[str, ...], tuple[str, ...] | None]] = [
        (key, None) for of, key in settings.keys.items() if is_named(table, of)
    ]
    own = tuple(view.sources.get(table, {}).get("key", ()))
    rules += [(own, None)] if own else []
    rules += [(each.columns, each.determine) for each in settings.dependencies if is_named(table, each.table)]
    return any(
        all(qualified(table, by) in known for by in left)
        and (right is None or name in {qualified(table, each) for each in right})
        for left, right in rules
    )


def _lacking(lower: Star, upper: Star, determined: Mapping[str, str]) -> list[str]:
    """The lower view's columns that the upper one could have among its keys, and has not."""
    wanted = {name for key in lower.keys.values() for name in key.columns}
    return sorted(name for name in wanted if name in determined and upper.key_of(column(name)) is None)


def _would_derive(
    lower: Star,
    upper: Star,
    keys: list[str],
    calls: Sequence[str] | None,
    foreign_keys: list[ForeignKey],
) -> bool:
    more = lacking_aggregates(lower, upper) if calls else {}
    extended = replace(
        upper,
        keys={**upper.keys, **{name: column(name) for name in keys}},
        kept={**upper.kept, **{f"{name} added": kept for name, kept in more.items()}},
    )
    edge = derives(("lower", lower), ("upper", extended), foreign_keys)
    return edge is not None and not edge.needs
