"""The oracle, for tests of views: whatever happens to the sources, a view must hold what its query gives.

:func:`check_view` tries a view of yours out; nothing but copies is changed::

    from viewkeeper.testing import check_view


    def test_daily_sales(warehouse):
        check_view(warehouse, "daily_sales", cycles=10, seed=7)

:func:`random_case` makes up tables, views and changes, an :class:`Oracle` runs them, and :func:`check` finds
the smallest case that fails. A case is plain data and has a text, which :func:`parse_case` reads back.
"""

from viewkeeper.testing.cases import Case, Cycle, View, parse_case
from viewkeeper.testing.checking import WrongResult, check, check_view, random_case
from viewkeeper.testing.oracle import Failure, Oracle, Outcome

__all__ = [
    "Case",
    "Cycle",
    "Failure",
    "Oracle",
    "Outcome",
    "View",
    "WrongResult",
    "check",
    "check_view",
    "parse_case",
    "random_case",
]
