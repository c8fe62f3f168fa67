"""The sources of a project on the command line: declared, listed, checked and installed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from postgres_server import PASSWORD, PostgresInstance, prepared
from viewkeeper.cli.main import app

pytestmark = [
    pytest.mark.spark,
    # py4j leaves a socket behind for each thread that ends.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

SPEC = (
    "name: shop\nstorage: storage\ndatabase: default\nlibraries:\n  - glob: {include: transformations/**}\n"
)
CONNECTION = "connection: {warehouse: warehouse}\n"
FILES = "sources:\n  orders: {kind: files, options: {path: inbox, format: csv, header: true, mode: %s}}\n"
VIEW = "CREATE MATERIALIZED VIEW by_name AS SELECT name, SUM(qty) AS qty FROM orders GROUP BY name;\n"


class Project:
    """A project folder, and a command line on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        (folder / "transformations").mkdir(parents=True)
        (folder / "inbox").mkdir()
        (folder / "spark-pipeline.yml").write_text(SPEC)

    def settings(self, text: str) -> None:
        (self.folder / "viewkeeper.yml").write_text(CONNECTION + text)

    def view(self, name: str, sql: str) -> None:
        (self.folder / "transformations" / f"{name}.sql").write_text(sql)

    def deliver(self, name: str, *rows: str) -> None:
        file = self.folder / "inbox" / name
        file.write_text("".join(f"{row}\n" for row in rows))
        stamp = 1_700_000_000 + len(self.said)
        os.utime(file, (stamp, stamp))

    def run(self, *arguments: str, exit_code: int = 0) -> Result:
        shown = CliRunner().invoke(app, [*arguments, "--project", str(self.folder)])
        self.said += [shown.output, repr(shown.exception)]
        assert shown.exit_code == exit_code, shown.output
        return shown

    def ask(self, *arguments: str, exit_code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", exit_code=exit_code).stdout)


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    return Project(tmp_path / "shop")


@pytest.fixture
def files(project: Project) -> Project:
    project.settings(FILES % "replace")
    project.view("by_name", VIEW)
    project.deliver("1.csv", "id,name,qty", "1,a,3", "2,b,4")
    return project


def test_a_project_declares_its_sources_before_the_views_that_read_them(files: Project) -> None:
    pending = ["declared source orders", "created lake.default.by_name"]
    assert files.ask("plan")["pending"] == pending
    assert files.ask("sources")["sources"] == [], "plan declares nothing"
    assert files.ask("refresh")["applied"] == pending
    assert files.ask("refresh")["applied"] == [], "what is there as it was written stays"
    assert files.ask("verify")["ok"]


def test_sources_are_listed_with_what_was_seen_of_them(files: Project) -> None:
    assert "No sources are declared" in files.run("sources").stdout
    files.run("refresh")
    (listed,) = files.ask("sources")["sources"]
    assert (listed["name"], listed["kind"], listed["behind"]) == ("orders", "files", False)
    assert listed["views"] == ["lake.default.orders"]
    assert listed["options"]["path"] == str(files.folder / "inbox")
    assert listed["version"] == listed["seen"] and listed["seen_at"]
    files.deliver("2.csv", "id,name,qty", "3,c,5")
    files.run("refresh")
    (later,) = files.ask("sources")["sources"]
    assert later["version"] != listed["version"]
    shown = files.run("sources").stdout
    assert "orders" in shown and "files" in shown and "taken in" in shown


def test_sources_are_checked_by_name_or_all_of_them(files: Project) -> None:
    assert files.ask("sources", "check") == {"format": 1, "ok": True, "problems": {}}
    assert "No sources are declared" in files.run("sources", "check").stdout
    files.run("refresh")
    assert files.ask("sources", "check") == {"format": 1, "ok": True, "problems": {"orders": []}}
    assert "orders: all is well" in files.run("sources", "check", "orders").stdout
    files.deliver("2.csv")
    found = files.ask("sources", "check", exit_code=1)
    assert not found["ok"] and "2.csv is empty" in found["problems"]["orders"][0]
    shown = files.run("sources", "check", "orders", exit_code=1)
    assert "2.csv is empty" in shown.stdout
    error = files.ask("sources", "check", "orders", "odrers", exit_code=1)["error"]
    assert (error["code"], error["hint"]) == ("VK-UNKNOWN-SOURCE", "Declared are: orders.")


def test_a_source_that_is_written_otherwise_is_declared_anew(files: Project) -> None:
    files.run("refresh")
    files.settings(FILES % "snapshot")
    assert files.ask("plan")["pending"] == ["declared anew source orders"]
    assert files.ask("sources")["sources"][0]["options"]["mode"] == "replace", "plan declares nothing"
    assert files.ask("refresh")["applied"] == ["declared anew source orders"]
    assert files.ask("sources")["sources"][0]["options"]["mode"] == "snapshot"
    assert files.ask("verify")["ok"]


def test_a_source_that_left_the_project_is_dropped_only_with_prune(files: Project) -> None:
    files.run("refresh")
    files.settings("")
    (files.folder / "transformations" / "by_name.sql").unlink()
    kept = files.ask("refresh")["applied"]
    assert kept == [
        "lake.default.by_name is not in the project (--prune drops it)",
        "source orders is not in the project (--prune drops it)",
    ]
    assert len(files.ask("sources")["sources"]) == 1
    assert files.ask("refresh", "--prune")["applied"] == [
        "dropped lake.default.by_name",
        "dropped source orders",
    ]
    assert (files.ask("sources")["sources"], files.ask("status")["views"]) == ([], [])


def test_a_source_that_cannot_be_declared_changes_nothing(files: Project) -> None:
    files.settings(FILES.replace("header", "haeder") % "replace")
    error = files.ask("refresh", exit_code=1)["error"]
    assert error["code"] == "VK-SOURCE-OPTION" and "haeder" in error["message"]
    files.settings("sources:\n  orders: {kind: fils, options: {path: inbox}}\n")
    assert files.ask("refresh", exit_code=1)["error"]["code"] == "VK-SOURCE-KIND"
    files.settings("sources:\n  orders: {kinds: files}\n")
    assert "viewkeeper.yml:3" in files.ask("refresh", exit_code=1)["error"]["message"]
    files.settings("sources: {}\n")
    assert files.ask("sources")["sources"] == []


def test_the_folder_may_be_named_before_the_command(files: Project) -> None:
    """An option that is taken and then forgotten would check another project than was meant."""
    files.run("refresh")
    shown = CliRunner().invoke(app, ["sources", "--project", str(files.folder), "--json", "check"])
    assert shown.exit_code == 2 or json.loads(shown.stdout)["problems"] == {"orders": []}


# PostgreSQL.


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresInstance]:
    instance = prepared(tmp_path_factory.mktemp("pg"))
    instance.sql("ALTER SYSTEM SET max_slot_wal_keep_size = '1GB'", "SELECT pg_reload_conf()")
    # Else everybody is let in, whatever the password.
    (instance.folder / "pg_hba.conf").write_text(
        "host all postgres 127.0.0.1/32 trust\nhost all,replication all 127.0.0.1/32 scram-sha-256\n"
        "host replication all 127.0.0.1/32 scram-sha-256\n"
    )
    instance.sql("SELECT pg_reload_conf()")
    yield instance
    instance.stop("immediate")


@pytest.fixture
def bank(
    project: Project, server: PostgresInstance, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Project]]:
    """The project with a database as its source; however it ends, the password was told nowhere."""
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    server.sql("CREATE SCHEMA shop AUTHORIZATION keeper")
    server.sql(
        "SET ROLE keeper",
        'CREATE TABLE shop."Accounts" (id INT PRIMARY KEY, name TEXT, qty INT)',
        """INSERT INTO shop."Accounts" VALUES (1, 'a', 3), (2, 'b', 4)""",
    )
    project.view("by_name", VIEW.replace("FROM orders", "FROM lake.bank.Accounts"))

    def make(capture: str, password: str = "{env: VK_TEST_PASSWORD}") -> Project:
        project.settings(
            f"sources:\n  bank:\n    kind: postgres\n    options:\n      capture: {capture}\n"
            f"      host: 127.0.0.1\n      port: '{server.port}'\n      database: postgres\n"
            f"      user: keeper\n      password: {password}\n      sslmode: disable\n"
            "      tables: shop.Accounts\n"
        )
        return project

    yield make
    kept = [path for path in project.folder.rglob("*") if path.is_file() and path.name != "viewkeeper.yml"]
    project.said += [path.read_bytes().decode("latin-1") for path in kept]
    for (slot,) in server.sql("SELECT slot_name FROM pg_replication_slots"):
        server.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    for (publication,) in server.sql("SELECT pubname FROM pg_publication"):
        server.sql(f'DROP PUBLICATION "{publication}"')
    server.sql("DROP SCHEMA shop CASCADE", "DROP SCHEMA IF EXISTS viewkeeper CASCADE")
    assert not [said[:500] for said in project.said if PASSWORD in said]


Bank = Callable[[str], Project]


def test_a_database_is_followed_from_the_command_line(bank: Bank, server: PostgresInstance) -> None:
    project = bank("log")
    assert project.ask("refresh")["applied"][0] == "declared source bank"
    server.sql("""INSERT INTO shop."Accounts" VALUES (3, 'a', 5)""")
    epoch = project.ask("refresh")["epoch"]
    assert {view["strategy"] for view in epoch["views"]} == {"incremental"}
    (listed,) = project.ask("sources")["sources"]
    assert (listed["kind"], listed["behind"]) == ("postgres", False)
    assert listed["options"]["password_env"] == "VK_TEST_PASSWORD"
    assert project.ask("sources", "check") == {"format": 1, "ok": True, "problems": {"bank": []}}
    server.sql("ALTER ROLE keeper NOREPLICATION")
    try:
        found = project.ask("sources", "check", "bank", exit_code=1)
        assert "ALTER ROLE keeper REPLICATION" in found["problems"]["bank"][0]
    finally:
        server.sql("ALTER ROLE keeper REPLICATION")
    for command in (["sources"], ["status"], ["history"], ["plan"], ["verify"], ["explain", "by_name"]):
        project.run(*command)
    project.settings("")
    project.view("by_name", "CREATE MATERIALIZED VIEW one AS SELECT 1 AS a")
    project.ask("refresh", "--prune")
    assert server.sql("SELECT slot_name FROM pg_replication_slots") == []


def test_tables_that_are_not_copied_are_swept_from_the_command_line(
    bank: Bank, server: PostgresInstance
) -> None:
    project = bank("log")
    server.sql('ALTER TABLE shop."Accounts" REPLICA IDENTITY FULL')
    settings = project.folder / "viewkeeper.yml"
    settings.write_text(settings.read_text().replace("tables: shop.Accounts", "remote: [shop.Accounts]"))
    with settings.open("a") as file:
        file.write("views: {large: {consistency: complete}}\n")
    project.view(
        "large",
        "CREATE MATERIALIZED VIEW large AS SELECT id, name, qty FROM lake.bank.Accounts WHERE qty > 3;\n",
    )
    project.view("by_name", VIEW.replace("FROM orders", "FROM large"))
    assert len(project.ask("refresh")["applied"]) == 3
    assert project.ask("refresh")["applied"] == []
    server.sql("""INSERT INTO shop."Accounts" VALUES (3, 'a', 5)""")
    server.sql("""UPDATE shop."Accounts" SET qty = 9 WHERE id = 1""")
    project.run("refresh")
    assert {view["consistency"] for view in project.ask("status")["views"]} == {"complete", None}
    assert "recommended: " in project.run("explain", "large").output
    assert "recommended: " in project.run("plan").output
    assert {source["kind"] for source in project.ask("sources")["sources"]} == {"postgres", "sweep"}
    assert project.ask("sources", "check")["problems"] == {"bank": []}
    assert project.ask("verify")["ok"]
    project.settings("")
    (project.folder / "transformations" / "large.sql").unlink()
    project.view("by_name", "CREATE MATERIALIZED VIEW one AS SELECT 1 AS a")
    project.ask("refresh", "--prune")
    assert server.sql("SELECT slot_name FROM pg_replication_slots") == []


def test_what_triggers_need_is_printed_or_run(bank: Bank, server: PostgresInstance) -> None:
    project = bank("trigger")
    error = project.ask("refresh", exit_code=1)["error"]
    assert error["code"] == "VK-SOURCE-SETUP"
    assert "viewkeeper sources install bank" in error["hint"]
    there = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'viewkeeper%'"
    printed = project.ask("sources", "install", "bank")
    assert (printed["source"], printed["run"]) == ("bank", False)
    assert '"shop"."Accounts"' in printed["sql"]
    assert project.run("sources", "install", "bank").stdout.strip() == printed["sql"].strip()
    assert server.sql(there) == [(0,)], "printing runs nothing"
    assert project.ask("sources", "install", "bank", "--run")["run"]
    assert server.sql(there) == [(2,)]
    assert project.ask("sources", "install", "bank", "--run")["run"], "again, it changes nothing"
    assert server.sql(there) == [(2,)]
    project.run("refresh")
    server.sql("""UPDATE shop."Accounts" SET qty = 10 WHERE id = 1""")
    project.run("refresh")
    assert project.ask("verify", "by_name")["ok"]
    assert project.ask("sources", "check")["ok"]


@pytest.mark.parametrize("name", ["bank", "banc"])
def test_only_what_needs_it_is_installed(bank: Bank, name: str) -> None:
    error = bank("log").ask("sources", "install", name, exit_code=1)["error"]
    code = "VK-SOURCE-SETUP" if name == "bank" else "VK-UNKNOWN-SOURCE"
    assert (error["code"], bool(error["hint"])) == (code, True)


def test_who_may_not_install_is_told(bank: Bank, server: PostgresInstance) -> None:
    project = bank("trigger")
    server.sql('ALTER TABLE shop."Accounts" OWNER TO postgres')
    error = project.ask("sources", "install", "bank", "--run", exit_code=1)["error"]
    assert error["code"] == "VK-SOURCE-REFUSED"
    assert "Accounts" in error["message"]
    assert server.sql("SELECT to_regnamespace('viewkeeper')") == [(None,)], "all of it, or nothing"


@pytest.mark.parametrize("capture", ["log", "trigger", "diff"])
def test_a_password_that_is_wrong_missing_or_plain_is_told_and_not_shown(
    bank: Callable[..., Project], monkeypatch: pytest.MonkeyPatch, capture: str
) -> None:
    project = bank(capture)
    commands = [["refresh"], *([["sources", "install", "bank", "--run"]] if capture == "trigger" else [])]
    for command in commands:
        monkeypatch.setenv("VK_TEST_PASSWORD", f"{PASSWORD}x")
        error = project.ask(*command, exit_code=1)["error"]
        assert error["code"] == "VK-SOURCE-UNREACHABLE"
        assert "password authentication failed" in error["message"]
        monkeypatch.delenv("VK_TEST_PASSWORD")
        error = project.ask(*command, exit_code=1)["error"]
        assert error["code"] == "VK-SETUP-SECRET"
        assert "VK_TEST_PASSWORD" in error["message"]
        bank(capture, PASSWORD)
        assert project.ask(*command, exit_code=1)["error"]["code"] == "VK-SOURCE-OPTION"
        assert project.run(*command, exit_code=1)
        bank(capture)
    assert project.ask("sources")["sources"] == []
