"""The command line on a real project, in the JVM that the other tests use."""

from __future__ import annotations

import json
import runpy
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from viewkeeper.cli.main import app

pytestmark = [
    pytest.mark.spark,
    # py4j leaves a socket behind for each thread that ends.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

Ask = Callable[..., Any]


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Path:
    """A project as `viewkeeper init` makes it, with its table of orders."""
    folder = tmp_path / "shop"
    assert CliRunner().invoke(app, ["init", str(folder)]).exit_code == 0
    runpy.run_path(str(folder / "make_orders.py"))
    return folder


@pytest.fixture
def ask(shop: Path) -> Ask:
    """Runs a command on the project; its JSON document, when the exit code is the expected one."""

    def run(*arguments: str, exit_code: int = 0) -> Any:
        shown = CliRunner().invoke(app, [*arguments, "--json", "--project", str(shop)])
        assert shown.exit_code == exit_code, shown.output
        return json.loads(shown.stdout)

    return run


def strategies(document: Any) -> dict[str, str]:
    return {view["view"].rsplit(".", 1)[-1]: view["strategy"] for view in document["views"]}


def test_what_a_project_expects_of_rows(shop: Path, ask: Ask) -> None:
    settings = shop / "viewkeeper.yml"
    expected = "views:\n  sales_by_customer:\n    expectations:\n      many: {expect: customer IS NULL}\n"
    settings.write_text(settings.read_text("utf-8") + "\n" + expected, encoding="utf-8")
    ask("refresh")
    views = [view for epoch in ask("history")["epochs"] for view in epoch["views"]]
    broken = [view["violations"] for view in views if view["view"].endswith("sales_by_customer")]
    assert broken[0]["many"] > 0


def test_expectations_of_no_view_are_an_error(shop: Path, ask: Ask) -> None:
    settings = shop / "viewkeeper.yml"
    expected = "views:\n  sales:\n    expectations:\n      many: {expect: customer IS NULL}\n"
    settings.write_text(settings.read_text("utf-8") + "\n" + expected, encoding="utf-8")
    assert ask("refresh", exit_code=1)["error"]["code"] == "VK-PROJECT"


def test_a_project_from_its_first_refresh_to_repair(shop: Path, ask: Ask) -> None:
    first = ask("refresh")
    assert len(first["applied"]) == 2
    assert ask("refresh")["applied"] == []

    runpy.run_path(str(shop / "make_orders.py"))
    epochs = len(ask("history")["epochs"])
    plan = ask("plan", "--policy", "incremental")
    assert strategies(plan) == {"orders_by_day": "incremental", "sales_by_customer": "incremental"}
    assert len(ask("history")["epochs"]) == epochs, "plan touches nothing"

    epoch = ask("refresh", "--policy", "incremental")["epoch"]
    assert strategies(epoch) == {"orders_by_day": "incremental", "sales_by_customer": "incremental"}
    assert epoch["id"] == ask("history", "--limit", "1")["epochs"][0]["id"]
    assert all(not view["stale"] for view in ask("status")["views"])

    verified = ask("verify")
    assert verified["ok"] and {view["missing"] + view["extra"] for view in verified["views"]} == {0}
    assert ask("explain", "orders_by_day")["incremental"]
    (view,) = [each for each in epoch["views"] if each["view"].endswith("orders_by_day")]
    assert view["prices"][view["method"]] > 0
    shown = CliRunner().invoke(app, ["history", "orders_by_day", "--project", str(shop)])
    assert shown.exit_code == 0 and view["method"] in shown.stdout
    kept_up = ask("maintain", "--keep-epochs", "1", "--keep-days", "0")["views"]
    assert {each["reason"] for each in kept_up} == {None} and max(each["expired"] for each in kept_up) > 0
    assert ask("repair", "orders_by_day")["epoch"]["id"] > epoch["id"]
    assert set(strategies(ask("refresh", "--full")["epoch"]).values()) == {"full"}


def test_propagate_now_and_install_later(shop: Path, ask: Ask) -> None:
    ask("refresh")
    assert ask("propagate")["id"] is None, "nothing changed"
    runpy.run_path(str(shop / "make_orders.py"))
    kept = ask("propagate", "--policy", "incremental")
    assert strategies(kept) == {"orders_by_day": "incremental", "sales_by_customer": "incremental"}
    epoch = ask("refresh", "--propagated")["epoch"]
    assert epoch["source_versions"] == kept["source_versions"]
    assert ask("verify")["ok"]
    assert ask("refresh", "--propagated", exit_code=1)["error"]["code"] == "VK-NOTHING-PROPAGATED"


def test_the_lattice_is_shown_and_extended(shop: Path, ask: Ask) -> None:
    """The key of the orders determines the rest: a view by the key could carry it, for others to use."""
    folder = shop / "transformations"
    for file in folder.glob("*.sql"):
        file.unlink()
    query = "SELECT {0}, count(*) AS n FROM orders GROUP BY {0}"
    for name, keys in (("fine", "customer, day"), ("coarse", "customer"), ("by_id", "order_id")):
        (folder / f"{name}.sql").write_text(f"CREATE MATERIALIZED VIEW {name} AS {query.format(keys)};\n")
    ask("refresh")
    shown = ask("explain", "--lattice")
    assert [(edge["upper"][-4:], edge["lower"][-6:]) for edge in shown["edges"]] == [("fine", "coarse")]
    (proposed,) = ask("lattice", "extend")["extensions"]
    assert proposed["view"].endswith("by_id") and set(proposed["columns"]) == {"customer", "day"}
    ask("lattice", "extend", "--apply")
    assert "GROUP BY order_id, customer, day" in (folder / "by_id.sql").read_text()
    assert len(ask("refresh")["applied"]) == 1
    assert ask("lattice", "extend")["extensions"] == []


def test_cubes_and_constraints_of_a_project(shop: Path, ask: Ask) -> None:
    (shop / "viewkeeper.yml").write_text(
        """
keys: {orders: [order_id]}
foreign_keys:
  - {table: orders, columns: [customer], references: orders, referenced_columns: [customer]}
dependencies:
  - {table: orders, columns: [order_id], determine: [customer, day]}
cubes:
  n_by: {query: "SELECT customer, day, count(*) AS n FROM orders GROUP BY ROLLUP (customer, day)"}
"""
    )
    assert [each.rsplit(".", 1)[-1] for each in ask("refresh")["applied"]][-3:] == [
        "n_by_customer_day", "n_by_customer", "n_by_all",
    ]  # fmt: skip
    assert ask("refresh")["applied"] == []
    assert ask("verify")["ok"]
    found = ask("verify", "--constraints", exit_code=1)["constraints"]
    # A customer has many orders: to refer to customers as if they were a key there is the mistake.
    assert [each["ok"] for each in found] == [True, False, True, True]
    assert found[1]["constraint"] == "orders: customer is a key" and found[1]["example"]
    shown = CliRunner().invoke(app, ["verify", "--constraints", "--project", str(shop)])
    assert shown.exit_code == 1 and "broken" in shown.stdout
    (shop / "viewkeeper.yml").write_text("keys: {no_such_table: [id]}\n")
    assert ask("verify", "--constraints", exit_code=1)["error"]["code"] == "VK-UNKNOWN-TABLE"


def test_a_view_that_differs_is_told_by_the_exit_code(shop: Path, ask: Ask) -> None:
    ask("refresh")
    runpy.run_path(str(shop / "make_orders.py"))
    ask("refresh", "--policy", "incremental")
    assert ask("verify")["ok"]
    with sqlite3.connect(shop / "warehouse" / "ledger.db") as ledger:
        # As if an epoch had published other rows than it computed: those of an epoch before.
        ledger.execute(
            "UPDATE vk_state SET snapshot = (SELECT snapshot FROM vk_state AS first "
            "WHERE first.view = vk_state.view AND first.snapshot IS NOT NULL ORDER BY epoch_id LIMIT 1) "
            "WHERE view LIKE '%orders_by_day'"
        )
    found = ask("verify", exit_code=1)
    assert not found["ok"]
    shown = CliRunner().invoke(app, ["verify", "--project", str(shop)])
    assert shown.exit_code == 1
    assert "differs" in shown.stdout and "viewkeeper repair" in shown.stdout


def test_plan_names_what_refresh_would_define(ask: Ask) -> None:
    assert len(ask("plan")["pending"]) == 2
    assert ask("status")["views"] == [], "plan defined nothing"


def test_a_view_that_left_the_project_is_dropped_only_with_prune(shop: Path, ask: Ask) -> None:
    ask("refresh")
    (shop / "transformations" / "sales_by_customer.sql").unlink()
    ask("refresh")
    assert len(ask("status")["views"]) == 2
    ask("refresh", "--prune")
    assert [view["view"] for view in ask("status")["views"]] == ["lake.default.orders_by_day"]


def test_people_get_tables_and_plain_lines(shop: Path, ask: Ask) -> None:
    ask("refresh")
    runpy.run_path(str(shop / "make_orders.py"))
    shown = CliRunner().invoke(app, ["refresh", "--project", str(shop)])
    assert shown.exit_code == 0
    assert "orders_by_day" in shown.stdout and "published" in shown.stdout
    assert "compute" in shown.stderr, "progress goes to standard error"
    for command in (["status"], ["verify"], ["history"], ["explain", "orders_by_day"], ["plan"]):
        again = CliRunner().invoke(app, [*command, "--project", str(shop)])
        assert again.exit_code == 0, again.output
        assert "orders_by_day" in again.stdout


def test_errors_of_a_project_change_nothing(shop: Path, ask: Ask) -> None:
    ask("refresh")
    before = ask("status")
    assert ask("explain", "orders_by_dya", exit_code=1)["error"]["hint"]
    bad = shop / "transformations" / "zz_bad.sql"
    bad.write_text("CREATE MATERIALIZED VIEW zz AS SELECT custommer FROM orders")
    error = ask("refresh", exit_code=1)["error"]
    assert error["code"].startswith("VK-") and error["code"] != "VK-INTERNAL"
    assert ask("status") == before


def test_the_demo_comes_out_exact(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shown = CliRunner().invoke(app, ["demo", "--rows", "2000", "--folder", str(folder), "--json"])
    assert shown.exit_code == 0, shown.output
    document = json.loads(shown.stdout)
    assert document["verified"] and document["rows"] == 2000


def test_views_of_another_namespace_go_by_their_last_name(shop: Path, ask: Ask) -> None:
    spec = shop / "spark-pipeline.yml"
    spec.write_text(
        spec.read_text(encoding="utf-8").replace("database: default", "database: mart"), encoding="utf-8"
    )
    for file in shop.rglob("*.sql"):
        text = file.read_text(encoding="utf-8").replace("FROM orders\n", "FROM lake.default.orders\n")
        file.write_text(text, encoding="utf-8")
    ask("refresh")
    assert ask("explain", "orders_by_day")["view"] == "lake.mart.orders_by_day"
    assert ask("explain", "orders_by_day", "--stored")["view"] == "lake.mart.orders_by_day"
    assert ask("verify", "orders_by_day")["ok"]
    assert ask("history", "orders_by_day")["epochs"]
