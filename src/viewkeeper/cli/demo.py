"""``viewkeeper demo``: the retail warehouse, a few days of changes, and deltas against recomputing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.cli.output import Output
from viewkeeper.cli.progress import showing
from viewkeeper.cli.retail import DAYS, VIEWS, Retail
from viewkeeper.cli.tables import refresh_table, summary_line, verification_table
from viewkeeper.errors import SetupError
from viewkeeper.events import Event
from viewkeeper.plan.situation import Aggregates, Options
from viewkeeper.results import Epoch
from viewkeeper.warehouse import Warehouse, connect

_MARK = ".viewkeeper-demo"


_WAYS = (
    ("by deltas", "incremental", Options()),
    ("by recomputing each view", "full", Options(Aggregates.ALONE)),
    ("by recomputing them from each other", "full", Options()),
)


def run_demo(output: Output, folder: Path, rows: int) -> int:
    """The whole demo; 1 if a view came out wrong."""
    _clear(folder)
    tell = _Storyteller(output)
    receive: list[Callable[[Event], None]] = []
    warehouse = connect(folder, on_event=lambda event: receive[-1](event) if receive else None)
    try:
        return _tell_story(tell, warehouse, receive, folder, rows)
    finally:
        warehouse.close()


def _tell_story(
    tell: _Storyteller,
    warehouse: Warehouse,
    receive: list[Callable[[Event], None]],
    folder: Path,
    rows: int,
) -> int:
    with tell.step("Starting Spark"):
        retail = Retail(warehouse.spark, rows)
    with tell.step(f"Making {rows:,} sales of {DAYS} days, with stores and items"):
        retail.create()
    for name, query in VIEWS.items():
        with tell.step(f"Creating the view {name}"):
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    before = warehouse.history(limit=1)[0].id

    def refresh(policy: str | None = None) -> tuple[Epoch, float]:
        start = time.monotonic()
        with tell.progress(receive):
            epoch = warehouse.refresh(policy=policy)
        return epoch, time.monotonic() - start

    with tell.step("A day passes: sales, returns, corrections, and a store moves to another city"):
        retail.pass_day(1)
    tell.output.say("\nWhat a refresh would do (viewkeeper plan):\n", str(warehouse.plan()), "")
    epoch, _ = refresh()
    tell.output.say(refresh_table(epoch.views), summary_line(epoch))

    tell.output.say("\nEvery view against its query, recomputed at the same versions (viewkeeper verify):")
    found = warehouse.verify()
    tell.output.say(verification_table(found))

    # The first refresh of each kind also warmed up the JVM; these are measured on equal terms.
    seconds: dict[str, float] = {}
    with tell.step("Three more such days, refreshed in three ways"):
        for day, (way, policy, options) in enumerate(_WAYS, start=2):
            retail.pass_day(day)
            warehouse.options = options
            _, seconds[way] = refresh(policy)
    deltas = seconds[_WAYS[0][0]]
    lines = [f"  {way:<36}{taken:6.1f} s  {taken / deltas:5.1f}" for way, taken in seconds.items()]
    tell.output.say("", *lines, "")
    exact = all(each.ok for each in found)
    document = {"rows": rows, "seconds": seconds, "verified": exact}
    tell.output.answer(document, *([] if exact else ["A view differs from its query: please report it."]))
    tell.output.say(_NEXT.format(folder=folder, before=before))
    return 0 if exact else 1


_NEXT = """\
What to try next, in Python:

  import viewkeeper as vk
  wh = vk.connect("{folder}")
  wh.sql("SELECT * FROM city_totals ORDER BY TotalQuantity DESC").show()
  wh.sql("DELETE FROM pos WHERE storeID = 3")
  print(wh.plan())
  print(wh.refresh().views)
  wh.at({before}).sql("SELECT * FROM sR_sales").show()      # as it was before all this
  print(wh.explain("SiC_sales"))                     # the SQL that keeps it

Or begin a project of your own: viewkeeper init my-project"""


class _Storyteller:
    """Says what happens while it happens; silent with ``--json``."""

    def __init__(self, output: Output) -> None:
        self.output = output

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        start = time.monotonic()
        self.output.note(f"{text} …")
        yield
        self.output.note(f"  {time.monotonic() - start:.1f} s")

    @contextmanager
    def progress(self, receive: list[Callable[[Event], None]]) -> Iterator[None]:
        """Let the warehouse's events be shown while the block runs."""
        if self.output.json or not self.output.notes.is_terminal:
            yield  # without a terminal the steps' lines are enough
            return
        with showing(self.output.notes) as shown:
            receive.append(shown)
            try:
                yield
            finally:
                receive.pop()


def _clear(folder: Path) -> None:
    """Begin anew; only a folder that an earlier demo made is removed."""
    if folder.exists():
        if not (folder / _MARK).is_file() and any(folder.iterdir()):
            raise SetupError(
                f"{folder} exists, and no demo made it",
                code="VK-SETUP-FOLDER",
                hint="Name another with --folder.",
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()
