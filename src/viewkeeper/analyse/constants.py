"""Rows that stand in the query itself: VALUES, and ``range`` of numbers."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.relations import Constant
from viewkeeper.analyse.expressions import Reader, whole_number
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
    name = called.name.lower()
    numbers = [number for each in called.expressions if (number := whole_number(each)) is not None]
    if name != "range" or len(numbers) != len(called.expressions):
        raise reader.stop(ReasonCode.TABLE_FUNCTION, node, name)
    output = Output("id", names.fresh("id"))
    text = f"SELECT * FROM range({', '.join(map(str, numbers))})"
    return Built(Constant((output.column,), text, len(range(*numbers[:3]))), (output,))
