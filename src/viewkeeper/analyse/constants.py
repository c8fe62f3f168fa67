"""Rows that stand in the query itself: VALUES, and ``range`` of numbers."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.relations import Constant
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.inputs import Built
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Names, Output


def constant(reader: Reader, names: Names, node: exp.Values) -> Built:
    """VALUES as a relation."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    written = [[reader.scalar(value, lambda _: None, ()).parts for value in row] for row in rows]
    outputs = tuple(Output(f"col{at}", names.fresh(f"col{at}")) for at in range(1, len(rows[0]) + 1))
    text = "VALUES " + ", ".join(f"({', '.join(''.join(map(str, each)) for each in row)})" for row in written)
    return Built(Constant(tuple(each.column for each in outputs), text, len(rows)), outputs)


def table_function(reader: Reader, names: Names, node: exp.Table) -> Built:
    """``range`` of constants; other functions in FROM are not followed."""
    called = node.this
    values = [
        each.name for each in called.expressions if isinstance(each, exp.Literal) and not each.is_string
    ]
    name = called.name.lower()
    if name != "range" or len(values) != len(called.expressions) or not all(v.isdecimal() for v in values):
        raise reader.stop(ReasonCode.TABLE_FUNCTION, node, name)
    output = Output("id", names.fresh("id"))
    rows = len(range(*(int(value) for value in values[:3])))
    text = f"SELECT * FROM range({', '.join(values)})"
    return Built(Constant((output.column,), text, rows), (output,))
