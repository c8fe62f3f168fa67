"""What tests call: random views, or views of one's own, against the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from viewkeeper.testing.cases import Case, Cycle, View
from viewkeeper.testing.changes import Changes
from viewkeeper.testing.copies import copy_of
from viewkeeper.testing.oracle import Oracle, Outcome
from viewkeeper.testing.shrinking import shrink
from viewkeeper.testing.tables import random_tables
from viewkeeper.testing.views import Views
from viewkeeper.warehouse import Warehouse


class WrongResult(AssertionError):
    """A view did not hold what its query gives; the message ends in the smallest case that shows it."""

    def __init__(self, seed: int, outcome: Outcome, smallest: Case) -> None:
        self.seed = seed
        self.smallest = smallest
        told = "\n".join(str(failure) for failure in outcome.failures)
        super().__init__(f"seed {seed}: {told}\n\nThe smallest case that was found to fail:\n\n{smallest}")


def random_case(seed: int, *, views: int = 20, cycles: int = 3, tables: int = 3, rows: int = 8) -> Case:
    """Random tables, views and changes; the same seed gives the same case."""
    random = Random(seed)
    made = random_tables(random, tables)
    changes = Changes(made, random, rows)
    generator = Views(made, random)
    setup = changes.fill()
    every = tuple(generator.view(f"v{at + 1}") for at in range(views))
    return Case(setup, every, tuple(_random_cycle(changes, every, random) for _ in range(cycles)))


def _random_cycle(changes: Changes, views: Sequence[View], random: Random) -> Cycle:
    """Mostly all views by deltas; sometimes only some of them, which then lag behind, or another policy."""
    some: tuple[str, ...] = ()
    if random.random() < 0.25:
        some = tuple(view.name for view in views if random.random() < 0.3)
    policy = random.choices(("incremental", "auto", "full"), (18, 2, 1))[0]
    return Cycle(changes.cycle(), some, policy)


def check(oracle: Oracle, case: Case, *, seed: int = 0, random: bool = False, attempts: int = 60) -> Outcome:
    """Run a case; when it fails, find the smallest that does and raise :class:`WrongResult`.

    ``random``: views that Spark has no meaning for are passed over.
    """
    outcome = oracle.run(case, skip_invalid=random)
    if outcome.ok:
        return outcome
    views = [view for view in case.views if view.name not in outcome.skipped]
    cycles = case.cycles[: max(failure.cycle for failure in outcome.failures)]
    ran = tuple(
        replace(cycle, statements=tuple(s for s in cycle.statements if s not in outcome.skipped))
        for cycle in cycles
    )
    suspects = Case(case.tables, tuple(views), ran)

    kinds = {failure.kind for failure in outcome.failures}

    def fails(smaller: Case) -> bool:
        try:
            return any(failure.kind in kinds for failure in oracle.run(smaller).failures)
        except Exception:  # a statement that cannot be run any more: too much was left out
            return False

    # What failed first is the likeliest to fail alone.
    alone = suspects.only(outcome.failures[0].views)
    raise WrongResult(seed, outcome, shrink(alone if fails(alone) else suspects, fails, attempts=attempts))


def check_view(
    warehouse: Warehouse,
    view: str,
    *,
    tables: Iterable[str] | None = None,
    cycles: int = 5,
    seed: int = 0,
    rows: int = 20,
) -> Outcome:
    """Try a view of yours out: copies of a few rows of its tables are changed at random, ``cycles`` times,
    and after each refresh the view, and the views that it reads, must hold what their queries give.

    Only copies are changed, in a namespace and with a ledger of their own; the warehouse is not touched.
    ``tables``: change only these (default: all that it reads). Raises :class:`WrongResult`, an
    ``AssertionError``, with the seed and the smallest case that fails.

    ::

        def test_daily_sales(warehouse):
            check_view(warehouse, "daily_sales", cycles=10, seed=7)
    """
    random = Random(seed)
    copied = copy_of(warehouse, view, random, rows)
    changing = copied.tables if tables is None else copied.chosen(tables)
    changes = Changes(changing, random, rows)
    case = Case(copied.setup, copied.views, tuple(Cycle(changes.cycle()) for _ in range(cycles)))
    return check(Oracle(warehouse.spark, copied.catalog), case, seed=seed)
