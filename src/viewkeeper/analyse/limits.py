"""LIMIT and OFFSET: the rows whose number in the order lies between two bounds.

Rows that tie are told apart by all their columns, so that which of them are shown is a matter of the rows
alone. Rows that agree on all columns are interchangeable.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.algebra import first_rows
from viewkeeper.analyse.expressions import Reader, whole_number
from viewkeeper.analyse.inputs import Built
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Names


def is_limited(node: exp.Expr) -> bool:
    """Whether a query has LIMIT or OFFSET."""
    return node.args.get("limit") is not None or node.args.get("offset") is not None


def ordered_by(node: exp.Expr) -> Sequence[exp.Ordered]:
    """What a query or a window is ordered by."""
    order = node.args.get("order")
    return () if order is None else order.expressions


def limited(
    built: Built, order: Sequence[tuple[str, str]], node: exp.Expr, reader: Reader, names: Names
) -> Built:
    """The query with as many rows as LIMIT says, after those that OFFSET leaves out."""
    most, skipped = (_number(node, key, reader) for key in ("limit", "offset"))
    if most is None and not skipped:
        return built
    given = {name for name, _ in order}
    others = [(output.column, "") for output in built.outputs if output.column not in given]
    total = (*order, *dict.fromkeys(others))
    number = names.fresh("row_number")
    return Built(first_rows.limited(built.relation, total, number, skipped or 0, most), built.outputs)


def _number(node: exp.Expr, key: str, reader: Reader) -> int | None:
    clause = node.args.get(key)
    if clause is None:
        return None
    number = whole_number(clause.args.get("expression"))
    if number is None:
        raise reader.stop(ReasonCode.LIMIT, clause, key.upper())
    return number
