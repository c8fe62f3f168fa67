"""ROLLUP, CUBE and GROUPING SETS, spelt out as the sets of keys that they stand for.

Such a query groups every row once for each set, by the keys of that set; the others are NULL there. In the
algebra each row is repeated with the number of the set, and that number is one more key, so that a NULL of
the data and one that stands for "all" are different groups:

    γ_{keys, set}(π_{key_i where set has i, set}(n × R))
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, product

from sqlglot import exp

from viewkeeper.algebra.scalars import Scalar, column, compose, words

Nodes = tuple[exp.Expr, ...]


def has_sets(group: exp.Group) -> bool:
    """Whether there is more than one set of keys."""
    forms = (exp.GroupingSets, exp.Cube, exp.Rollup)
    return any(group.args.get(form) for form in ("grouping_sets", "cube", "rollup")) or any(
        isinstance(node, forms) for node in group.expressions
    )


def spelt_out(group: exp.Group) -> list[Nodes]:
    """The sets of key expressions, in the order in which Spark numbers nothing that could be seen."""
    for form in ("rollup", "cube"):
        for clause in group.args.get(form) or ():
            # GROUP BY a, b WITH ROLLUP
            parts = [(node,) for node in group.expressions]
            return _prefixes(parts) if isinstance(clause, exp.Rollup) else _subsets(parts)
    if group.args.get("grouping_sets"):
        # GROUP BY a, b GROUPING SETS (…): the list before it only names the keys.
        return [each for clause in group.args["grouping_sets"] for each in _alternatives(clause)]
    return [tuple(chain(*choice)) for choice in product(*map(_alternatives, group.expressions))]


def keys_in_order(group: exp.Group) -> list[exp.Expr]:
    """All the keys, as often as they are written, in the order in which GROUPING_ID() counts them: the list
    before GROUPING SETS first, then as they stand in the text."""
    written = [*group.expressions, *(group.args.get("grouping_sets") or ())]
    return [key for node in written for key in _leaves(node)]


def _leaves(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, (exp.GroupingSets, exp.Rollup, exp.Cube)):
        return [key for part in node.expressions for key in _leaves(part)]
    return list(_members(node))


def _alternatives(node: exp.Expr) -> list[Nodes]:
    """The sets that one element of GROUP BY stands for."""
    match node:
        case exp.GroupingSets():
            return [each for part in node.expressions for each in _alternatives(part)]
        case exp.Rollup():
            return _prefixes([_members(part) for part in node.expressions])
        case exp.Cube():
            return _subsets([_members(part) for part in node.expressions])
        case _:
            return [_members(node)]


def _members(node: exp.Expr) -> Nodes:
    """(a, b) as one element; anything else is an element by itself."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


def _prefixes(parts: Sequence[Nodes]) -> list[Nodes]:
    return [tuple(chain(*parts[:length])) for length in range(len(parts), -1, -1)]


def _subsets(parts: Sequence[Nodes]) -> list[Nodes]:
    return [
        tuple(chain(*chosen))
        for length in range(len(parts), -1, -1)
        for chosen in combinations(parts, length)
    ]


def key_in_sets(key: Scalar, sets: Sequence[frozenset[int]], at: int, number: str) -> Scalar:
    """The key where the set of the row has it, NULL elsewhere."""
    having = [str(place) for place, each in enumerate(sets) if at in each]
    if len(having) == len(sets):
        return key
    return compose("CASE WHEN ", column(number), f" IN ({', '.join(having) or '-1'}) THEN ", key, " END")


def is_grouped_away(sets: Sequence[frozenset[int]], at: int, number: str) -> Scalar:
    """GROUPING(key): 1 where the set lacks it."""
    lacking = [str(place) for place, each in enumerate(sets) if at not in each]
    if not lacking:
        return words("CAST(0 AS TINYINT)")
    return compose(
        "CAST(CASE WHEN ", column(number), f" IN ({', '.join(lacking)}) THEN 1 ELSE 0 END AS TINYINT)"
    )


def grouping_id(sets: Sequence[frozenset[int]], keys: Sequence[int], number: str) -> Scalar:
    """GROUPING_ID(keys): their GROUPING bits, the first of them the highest."""
    cases = " ".join(
        f"WHEN {place} THEN {sum((at not in each) << power for power, at in enumerate(reversed(keys)))}"
        for place, each in enumerate(sets)
    )
    return compose("CAST(CASE ", column(number), f" {cases} END AS BIGINT)")
