"""What was estimated of joins is compared with what happened, told, and learned from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from world import ORDERED_LINES, assert_exact

import viewkeeper as vk
from viewkeeper.cli.main import app
from viewkeeper.plan.propagation import Propagation
from viewkeeper.plan.steps import Share
from viewkeeper.warehouse import Warehouse

pytestmark = [
    pytest.mark.spark,
    # py4j leaves a socket behind for each thread that ends.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

CONDITIONS = (
    "customer.c = orders.c",
    "line.o = orders.o",
    "line.s = supplier.s",
    "supplier.n = nation.n",
)
CHAIN = "customer ⋈ orders ⋈ line ⋈ supplier"
VIEWS = {
    "chain": "SELECT name, orders.o, day, qty, supplier.n FROM customer, orders, line, supplier "
    "WHERE customer.c = orders.c AND line.o = orders.o AND line.s = supplier.s",
    "per_region": "SELECT region, COUNT(*) AS suppliers, SUM(s) AS total "
    "FROM supplier JOIN nation ON supplier.n = nation.n GROUP BY region",
}
SHARING = {
    "pairs": "SELECT name, o FROM customer JOIN orders ON customer.c = orders.c",
    "per_name": "SELECT name, COUNT(*) AS orders, MAX(day) AS last "
    "FROM customer JOIN orders ON customer.c = orders.c GROUP BY name",
}
DRAWN = re.compile(
    r"Δ\(?(?P<part>[^)]*?)\)?  about (?P<about>[\d,]+) rows(?:, (?P<held>[\d,]+) in that epoch)?"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    assert CliRunner().invoke(app, ["init", str(folder)]).exit_code == 0
    return folder


@pytest.fixture
def shop(open_warehouse: Callable[..., Warehouse], project: Path) -> Warehouse:
    warehouse = open_warehouse(project / "warehouse")
    for table, (columns, rows) in ORDERED_LINES.items():
        warehouse.spark.sql(
            f"CREATE TABLE {table} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '3', "
            "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
        )
        warehouse.spark.sql(f"INSERT INTO {table} {rows}")
    return warehouse


class Truth:
    """What the tables held, and hold: the sizes of deltas, worked out without any rule of ours."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._spark = warehouse.spark
        for table in ORDERED_LINES:
            rows = self._spark.table(table)
            was = self._spark.createDataFrame(rows.collect(), rows.schema)
            was.createOrReplaceTempView(f"was_{table}")

    def delta(self, part: str) -> int:
        """How many rows of the joined tables are there that were not, and were there that are not."""
        tables = part.split(" ⋈ ")
        before, now = self._joined(tables, "was_"), self._joined(tables, "")
        changes = (f"{now} EXCEPT ALL {before}", f"{before} EXCEPT ALL {now}")
        return sum(self._spark.sql(f"SELECT COUNT(*) FROM ({each})").collect()[0][0] for each in changes)

    @staticmethod
    def _joined(tables: Iterable[str], prefix: str) -> str:
        named = {*tables}
        inside = [each for each in CONDITIONS if {*re.findall(r"(\w+)\.", each)} <= named]
        columns = [
            f"{table}.{entry.split(' ')[0]} AS {table}_{entry.split(' ')[0]}"
            for table in sorted(named)
            for entry in ORDERED_LINES[table][0].split(", ")
        ]
        read = ", ".join(f"{prefix}{table} AS {table}" for table in sorted(named))
        return f"(SELECT {', '.join(columns)} FROM {read} WHERE {' AND '.join(['true', *inside])})"


def run(project: Path, *arguments: str) -> str:
    shown = CliRunner().invoke(app, [*arguments, "--project", str(project)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def drawn(project: Path, view: str) -> dict[str, tuple[int, int | None]]:
    """What explain says of a view's last epoch: of each delta about how many rows, and how many it held."""
    found = DRAWN.finditer(run(project, "explain", view, "--stored"))
    return {each["part"]: (_number(each["about"]), each["held"] and _number(each["held"])) for each in found}


def held(project: Path, view: str) -> dict[str, int]:
    return {part: rows for part, (_, rows) in drawn(project, view).items() if rows is not None}


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def estimates(project: Path, *arguments: str) -> list[dict[str, Any]]:
    found = json.loads(run(project, "history", "--estimates", "--json", *arguments))["estimates"]
    assert isinstance(found, list)
    return found


def the_propagation(plan: vk.Plan, view: str) -> Propagation:
    (found,) = (each for each in plan.views if each.view.endswith(f".{view}"))
    (propagation,) = found.propagations
    return propagation


def test_what_was_counted_is_told_and_corrects_the_next_plan(shop: Warehouse, project: Path) -> None:
    for name, query in VIEWS.items():
        shop.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    assert estimates(project) == []

    # Rows come, and the customers that come are not the usual ones: each has many orders.
    truth = Truth(shop)
    shop.spark.sql("INSERT INTO customer VALUES (3, 'twin'), (4, 'twin'), (5, 'twin')")
    shop.spark.sql("INSERT INTO orders SELECT INT(100 + id), 3, 2 FROM range(40)")
    shop.spark.sql("INSERT INTO line SELECT INT(100 + id % 40), INT(id % 4), 1 FROM range(80)")
    shop.spark.sql("INSERT INTO supplier VALUES (9, 1), (10, 1), (11, 2)")
    planned = the_propagation(shop.plan("chain", policy="incremental"), "chain")
    first = shop.refresh(policy="incremental")
    assert_exact(shop)
    chain = held(project, "chain")
    assert chain == {part: truth.delta(part) for part in chain}
    inner = {planned.name(mask) for mask, _ in planned.rows if 1 < mask.bit_count() < 4}
    assert inner and {CHAIN, *inner} <= chain.keys(), "the view, and every part of its tree"
    assert any("⋈" not in part for part in chain), "a table whose delta is staged"
    per_region = held(project, "per_region")
    assert per_region["supplier ⋈ nation"] == truth.delta("supplier ⋈ nation"), "as the groups count it"

    # All ways to ask tell the same.
    told = {each["part"]: each for each in estimates(project, "chain")}
    assert {part: each["actual"] for part, each in told.items()} == chain
    for part, (about, _) in drawn(project, "chain").items():
        if part in told:
            assert told[part]["estimated"] == about
            assert told[part]["factor"] == round((chain[part] + 1) / (about + 1), 3)
            assert (told[part]["epoch"], told[part]["view"]) == (first.id, "lake.default.chain")
    everything = estimates(project)
    assert everything == [each.to_dict() for each in shop.estimates()]
    assert everything == [*told.values(), *estimates(project, "per_region")]
    shown = [line.split() for line in run(project, "history", "--estimates", "chain").splitlines()]
    for part, each in told.items():
        factor = f"{(each['actual'] + 1) / (each['estimated'] + 1):.2f}"
        figures = [f"{each['estimated']:,}", f"{each['actual']:,}", factor]
        assert [str(first.id), "chain", *part.split(), *figures] in shown

    # The next plan is corrected by it; what is known by now is not counted again. (Of what comes in one term
    # and goes in another, both would be counted: here nothing does.)
    truth = Truth(shop)
    shop.spark.sql("INSERT INTO customer VALUES (3, 'again'), (6, 'again')")
    shop.spark.sql("DELETE FROM orders WHERE o = 7")
    shop.spark.sql("UPDATE line SET qty = qty + 100 WHERE o = 14")
    shop.spark.sql("UPDATE nation SET region = 'r9' WHERE n = 2")
    plan = shop.plan("chain", policy="incremental")
    corrected = the_propagation(plan, "chain")
    before = dict(corrected.uncorrected)
    for mask, rows in corrected.rows:
        part = corrected.name(mask)
        if part in told and mask.bit_count() > 1:
            uncorrected = dict(planned.uncorrected)[mask]
            factor = (told[part]["actual"] + 1) / (uncorrected + 1)
            assert rows == pytest.approx(before[mask] * factor, rel=0.05, abs=2 * factor)
    assert any(rows != before[mask] for mask, rows in corrected.rows)
    known = {part for part in told if "⋈" in part}
    counted_anew = {step.counts for step in plan.epoch.steps if isinstance(step, Share) and step.counts}
    assert not counted_anew & known

    second = shop.refresh(policy="incremental")
    assert_exact(shop)
    chain = held(project, "chain")
    assert chain[CHAIN] == truth.delta(CHAIN) == second.view("chain").delta_rows
    assert chain == {part: truth.delta(part) for part in chain}
    assert "supplier ⋈ nation" not in held(project, "per_region"), "rows went, too: nobody counted them"
    assert {each["epoch"] for each in estimates(project, "chain")} == {first.id, second.id}


def test_a_part_that_views_share_is_counted_once_and_told_of_both(shop: Warehouse, project: Path) -> None:
    for name, query in SHARING.items():
        shop.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    truth = Truth(shop)
    shop.spark.sql("INSERT INTO customer VALUES (3, 'twin'), (99, 'new')")
    shop.spark.sql("INSERT INTO orders SELECT INT(100 + id), 3, 2 FROM range(40)")
    shop.spark.sql("DELETE FROM orders WHERE o = 7")
    plan = shop.plan(policy="incremental")
    (share,) = (step for step in plan.epoch.steps if isinstance(step, Share) and step.counts)
    assert "for several views" in share.what
    shop.refresh(policy="incremental")
    assert_exact(shop)
    for view in SHARING:
        lines = run(project, "explain", view, "--stored").splitlines()
        rows = truth.delta("customer ⋈ orders")
        (told,) = (line for line in lines if "in that epoch" in line)
        assert told.endswith(f"{rows:,} in that epoch, computed once for several views")
        assert any(line.endswith("read customer 0, orders 0 times; n − 1 is 1") for line in lines)
        (estimate,) = estimates(project, view)
        assert (estimate["part"], estimate["actual"]) == ("customer ⋈ orders", rows)

    truth = Truth(shop)
    shop.spark.sql("INSERT INTO orders SELECT INT(200 + id), 3, 2 FROM range(10)")
    shop.spark.sql("INSERT INTO customer VALUES (98, 'new')")
    again = shop.plan(policy="incremental")
    assert not [step for step in again.epoch.steps if isinstance(step, Share) and step.counts]
    for view in SHARING:
        propagation = the_propagation(again, view)
        ((_, uncorrected),) = (each for each in propagation.uncorrected if each[0] == 0b11)
        assert dict(propagation.rows)[0b11] != uncorrected

    # It is told of what was computed before it was installed, too.
    shop.propagate(policy="incremental")
    epoch = shop.refresh(propagated=True)
    assert_exact(shop)
    for view in SHARING:
        newest = estimates(project, view)[0]
        assert (newest["epoch"], newest["actual"]) == (epoch.id, truth.delta("customer ⋈ orders"))


def test_groups_that_are_stored_in_parts_tell_it_too(shop: Warehouse, project: Path) -> None:
    shop.sql(
        "CREATE MATERIALIZED VIEW appended TBLPROPERTIES ('viewkeeper.install' = 'sdappend') AS "
        "SELECT region, COUNT(*) AS suppliers FROM supplier JOIN nation ON supplier.n = nation.n "
        "GROUP BY region"
    )
    truth = Truth(shop)
    shop.spark.sql("INSERT INTO supplier VALUES (9, 1), (10, 1), (11, 2)")
    shop.spark.sql("INSERT INTO nation VALUES (1, 'r9')")
    epoch = shop.refresh(policy="incremental")
    assert epoch.view("appended").method == "sdappend"
    assert_exact(shop)
    assert held(project, "appended")["supplier ⋈ nation"] == truth.delta("supplier ⋈ nation")
