"""viewkeeper: SQL materialized views on Apache Spark that keep themselves fresh.

The flow, and where it lives::

    define/ ─► analyse/ ─► plan/ ─► execute/ ─► install/ ─► ledger/
    views      SQL to      steps,    steps to    deltas to   epochs, published
               algebra     pure      Spark SQL   storage     in one transaction

Begin with :mod:`viewkeeper.warehouse`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.explain import Explanation, Plan
    from viewkeeper.plan.methods import Method
    from viewkeeper.plan.situation import Aggregates, Joins, Options
    from viewkeeper.results import Epoch, History, Verification, ViewRefresh, ViewStatus
    from viewkeeper.warehouse import Warehouse, connect

__version__ = "0.1.0"
__all__ = [
    "Aggregates",
    "Epoch",
    "Explanation",
    "History",
    "Joins",
    "Method",
    "Options",
    "Plan",
    "Verification",
    "ViewRefresh",
    "ViewStatus",
    "ViewkeeperError",
    "Warehouse",
    "connect",
]

# Loaded when first asked for, so that `viewkeeper --help` need not wait for a SQL parser and a database.
_HOME = {
    "Aggregates": "plan.situation",
    "Joins": "plan.situation",
    "Method": "plan.methods",
    "Options": "plan.situation",
    "ViewkeeperError": "errors",
    "Explanation": "explain",
    "Plan": "explain",
    "Warehouse": "warehouse",
    "connect": "warehouse",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'viewkeeper' has no attribute {name!r}")
    return getattr(import_module(f"viewkeeper.{_HOME.get(name, 'results')}"), name)
