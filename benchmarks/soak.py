"""``viewkeeper run`` on the retail warehouse of the demo, for ten minutes, with a writer and a killer.

The writer sells, takes back and corrects every few seconds; the killer sends SIGKILL every minute, and starts
the service again at once. After each kill every view has to be within its target lag again before two lags
have passed; every epoch that was published is verified, row by row, at the versions that it recorded; and the
memory of the service's process tree must not grow from one life to the next.

    python benchmarks/soak.py
    python benchmarks/soak.py --minutes 10 --no-kills      # memory over one long life
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import viewkeeper as vk
from report import save, table
from viewkeeper.cli.retail import VIEWS, Retail
from viewkeeper.verifying import verified

SPEC = "name: soak\nstorage: storage\nlibraries: [{glob: {include: views/**}}]\n"
SETTINGS = """\
target_lag: {lag} seconds
service: {{listen: "127.0.0.1:0", poll: 2 seconds, lineage: {{file: lineage.jsonl}}}}
"""
MEMORY = "1g"
_FIRST_SECONDS = 300
FLAT = 1.25
"""The last life may need that much more memory than the first ones, at most."""


@dataclass
class Life:
    """One run of the service, from its start to its end."""

    began: float
    met_after: float | None = None
    """Seconds until every view was within its lag."""
    rss: list[int] = field(default_factory=list)
    """MiB of the process tree, every second."""


class Keeper:
    """The service, and what is measured of it while the writer goes on."""

    def __init__(self, folder: Path, lag: float) -> None:
        self.folder = folder
        self.lag = lag
        self.lives: list[Life] = []
        self.log = folder / "service.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._watching, daemon=True)

    def start(self) -> None:
        self._begin()
        self._watch.start()

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._begin()

    def end(self) -> int:
        """Ask it to end; its exit code."""
        assert self._process is not None
        self._done.set()
        self._watch.join()
        self._process.terminate()
        return self._process.wait(180)

    def wait_until_met(self, seconds: float) -> None:
        """Until every view is within its lag, or so long."""
        until = time.monotonic() + seconds
        while self.lives[-1].met_after is None and time.monotonic() < until:
            time.sleep(1)

    def leave(self) -> None:
        """Leave no process behind, whatever went wrong."""
        self._done.set()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _begin(self) -> None:
        log = self.log.open("wb")
        command = [sys.executable, "-m", "viewkeeper", "run", "--log", "json", "--project", str(self.folder)]
        environment = {**os.environ, "VIEWKEEPER_DRIVER_MEMORY": MEMORY}
        self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        log.close()
        self.lives.append(Life(time.monotonic()))

    def _watching(self) -> None:
        while not self._done.wait(1.0):
            life, process = self.lives[-1], self._process
            assert process is not None
            life.rss.append(resident_mib(process.pid))
            if life.met_after is None and self._is_met():
                life.met_after = time.monotonic() - life.began

    def _is_met(self) -> bool:
        """Whether the service says that every view is within its lag."""
        address = re.search(rb"http://[\d.:]+", self.log.read_bytes())
        if address is None:
            return False
        try:
            with urllib.request.urlopen(address[0].decode() + "/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return False
        lags = re.findall(r"^viewkeeper_view_lag_seconds\{.*\} (\S+)$", text, re.MULTILINE)
        return len(lags) == len(VIEWS) and all(float(lag) <= self.lag for lag in lags)


def resident_mib(pid: int) -> int:
    """What a process and its children hold in memory."""
    total = 0
    for each in tree(pid):
        try:
            status = Path(f"/proc/{each}/status").read_text()
        except OSError:
            continue
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        total += int(found[1]) if found else 0
    return total // 1024


def tree(pid: int) -> list[int]:
    """A process, and all below it."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return [pid]
    return [pid, *(each for child in children for each in tree(int(child)))]


class Writer:
    """Changes the sources a little, again and again; verifies what was published meanwhile."""

    def __init__(self, warehouse: vk.Warehouse, retail: Retail) -> None:
        self.warehouse = warehouse
        self.retail = retail
        self.changes = 0
        self.seen = 0
        self.wrong: list[str] = []
        self.verified = 0

    def change(self) -> None:
        self.changes += 1
        at, spark = self.changes, self.retail.spark
        self.retail.sell(self.retail.rows + 200 * at, 200, "99")
        if at % 3 == 0:
            spark.sql(f"DELETE FROM pos WHERE date >= DATE'2026-04-01' AND pmod(hash(price, {at}), 500) = 0")
        if at % 5 == 0:
            spark.sql(f"UPDATE stores SET city = 'city {at % 20}' WHERE storeID = {at % 100}")

    def verify(self) -> None:
        """Every epoch since the last time, at the versions that it recorded."""
        shop = self.warehouse._maintainer.shop
        for epoch in reversed(self.warehouse.history()):
            if epoch.id <= self.seen:
                continue
            self.seen = epoch.id
            library = shop.library(epoch.id)
            names = [view.view for view in epoch.views if view.strategy != "unchanged"]
            for found in verified(shop.engine, library, names, only_possible=False):
                self.verified += 1
                if not found.ok:
                    self.wrong.append(str(found))


def soak(arguments: argparse.Namespace, folder: Path) -> int:
    (folder / "views").mkdir()
    (folder / "spark-pipeline.yml").write_text(SPEC)
    (folder / "viewkeeper.yml").write_text(SETTINGS.format(lag=round(arguments.lag)))
    for name, query in VIEWS.items():
        (folder / "views" / f"{name}.sql").write_text(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    warehouse = vk.connect(folder / "warehouse")
    retail = Retail(warehouse.spark, arguments.rows)
    retail.create()
    keeper, writer = Keeper(folder, arguments.lag), Writer(warehouse, retail)
    keeper.start()
    try:
        return watched(arguments, keeper, writer)
    finally:
        keeper.leave()
        warehouse.close()


def watched(arguments: argparse.Namespace, keeper: Keeper, writer: Writer) -> int:
    """Write and kill while the time lasts, then look at what came of it. The time begins when the views are
    there and fresh for the first time."""
    keeper.wait_until_met(_FIRST_SECONDS)
    until = time.monotonic() + 60 * arguments.minutes
    kill_at = time.monotonic() + arguments.kill_every
    while time.monotonic() < until:
        began = time.monotonic()
        writer.change()
        writer.verify()
        if not arguments.no_kills and time.monotonic() >= kill_at:
            keeper.kill()
            kill_at = time.monotonic() + arguments.kill_every
        time.sleep(max(0.0, arguments.write_every - (time.monotonic() - began)))
    keeper.wait_until_met(arguments.cycles * arguments.lag)
    exit_code = keeper.end()
    writer.verify()
    lease = writer.warehouse.ledger.holder()
    return report(arguments, keeper, writer, exit_code, released=lease is None)


def report(
    arguments: argparse.Namespace, keeper: Keeper, writer: Writer, exit_code: int, *, released: bool
) -> int:
    limit = arguments.cycles * arguments.lag
    late = [life for life in keeper.lives[1:] if life.met_after is None or life.met_after > limit]
    rows: list[dict[str, object]] = [
        {
            "life": number,
            "lag met again after, s": "never" if life.met_after is None else f"{life.met_after:.1f}",
            "memory, MiB: median": f"{statistics.median(life.rss):.0f}" if life.rss else "",
            "most": max(life.rss, default=""),
        }
        for number, life in enumerate(keeper.lives, start=1)
    ]
    most = [max(life.rss) for life in keeper.lives if life.rss and life.met_after is not None]
    flat = arguments.no_kills or not most or most[-1] <= FLAT * max(most[: max(1, len(most) // 2)])
    lease, memory = "free" if released else "HELD", "flat" if flat else "GROWING"
    remarks = [
        f"{arguments.minutes:.0f} minutes, {writer.changes} changes, {writer.seen} epochs, "
        f"{len(keeper.lives) - 1} kills. Target lag {arguments.lag:.0f} s, to be met again within "
        f"{limit:.0f} s of a kill, which starting Spark is part of: {'missed' if late else 'held'}. "
        f"{writer.verified} refreshes of views verified at the versions that their epochs recorded, "
        f"{len(writer.wrong)} wrong. Ended with {exit_code}, lease {lease}, memory {memory}."
    ]
    if arguments.no_kills:
        rss = keeper.lives[0].rss
        minutes = [f"{statistics.median(rss[at : at + 60]):.0f}" for at in range(0, len(rss), 60)]
        remarks.append(f"MiB by minute: {' '.join(minutes)}.")
    print(table(rows), *remarks, *writer.wrong, sep="\n\n")
    if arguments.save:
        name = "soak-one-life" if arguments.no_kills else "soak"
        save(name, "The service, with a writer and a killer", rows, *remarks)
    return 0 if not late and flat and not writer.wrong and not exit_code and released else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kill-every", type=float, default=60, help="seconds")
    parser.add_argument("--write-every", type=float, default=5, help="seconds")
    parser.add_argument("--lag", type=float, default=30, help="seconds")
    parser.add_argument("--cycles", type=float, default=2, help="lags after which it has to be met again")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--no-kills", action="store_true")
    parser.add_argument("--save", action="store_true", help="write what was found to benchmarks/results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return soak(arguments, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
