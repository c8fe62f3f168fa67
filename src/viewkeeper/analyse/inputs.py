"""What a part of a query offers to the rest of it: relations, conditions, and the names of their columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.relations import Filter, Join, Relation
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.functions import WITHOUT_PARENTHESES
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Output, Scope

_OR = re.compile(r"\bor\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Built:
    """A query, or a part of one, as a relation; its columns in order as the query knows them."""

    relation: Relation
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What FROM and WHERE have put together so far."""

    relations: tuple[Relation, ...]
    conjuncts: tuple[Scalar, ...]
    scope: Scope

    def relation(self) -> Relation:
        """All of it as one relation."""
        if len(self.relations) > 1:
            return Join(self.relations, self.conjuncts)
        return Filter(self.relations[0], all_of(self.conjuncts)) if self.conjuncts else self.relations[0]

    def where(self, conjuncts: Sequence[Scalar]) -> Inputs:
        """The same with more conditions."""
        return replace(self, conjuncts=(*self.conjuncts, *conjuncts))


def inputs_of(relation: Relation, scope: Scope) -> Inputs:
    """One relation as what FROM has put together; a join as its inputs."""
    if isinstance(relation, Join):
        return Inputs(relation.inputs, relation.conjuncts, scope)
    return Inputs((relation,), (), scope)


def column_lookup(scope: Scope) -> Callable[[Sequence[str]], tuple[tuple[str | Column, ...], int] | None]:
    """The lookup of plain columns."""

    def lookup(parts: Sequence[str]) -> tuple[tuple[str | Column, ...], int] | None:
        found = scope.resolve(parts)
        return ((Column(found[0].column),), found[1]) if found else None

    return lookup


def alias_lookup(
    aliases: Mapping[str, Scalar], scope: Scope, parts: Sequence[str]
) -> tuple[tuple[str | Column, ...], int] | None:
    """What stands to the left in the same select list; functions that need no parentheses go before it."""
    alias = aliases.get(scope.fold(parts[0]))
    if alias is None or parts[0].lower() in WITHOUT_PARENTHESES:
        return None
    return (alias.parts if alias.is_column else ("(", *alias.parts, ")")), 1


def only(reader: Reader, node: exp.Expr, *allowed: str) -> None:
    """Stop at any clause that is not one of these: a clause overlooked would be a wrong answer."""
    for key, value in node.args.items():
        if not value or key in allowed:
            continue
        first = value[0] if isinstance(value, list) else value
        where = first if isinstance(first, exp.Expr) else node
        match key:
            case "laterals":
                raise reader.stop(ReasonCode.LATERAL_VIEW, where, "LATERAL VIEW")
            case "limit" | "offset":
                raise reader.stop(ReasonCode.LIMIT, where, key.upper())
            case _:
                raise reader.not_understood(where, key.strip("_").upper())


def all_of(conjuncts: Sequence[Scalar]) -> Scalar:
    """The conditions as one."""
    if len(conjuncts) == 1:
        return conjuncts[0]
    parts: list[str | Column] = []
    for conjunct in conjuncts:
        loose = any(_OR.search(part) for part in conjunct.parts if isinstance(part, str))
        parts += [" AND "] if parts else []
        parts += ["(", *conjunct.parts, ")"] if loose else conjunct.parts
    return Scalar(tuple(parts))
