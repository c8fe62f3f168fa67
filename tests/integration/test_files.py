"""Files as a source: deliveries come, are rewritten and go, and the views over them stay exact."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from viewkeeper.errors import ViewkeeperError
from viewkeeper.events import EpochStarted, Event, Phase, StepFinished
from viewkeeper.warehouse import Warehouse

HEADER = "id,name,qty\n"


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "deliveries"
    folder.mkdir()
    return folder


def deliver(inbox: Path, name: str, *rows: str, header: str = HEADER) -> Path:
    file = inbox / name
    file.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    # Rewritten within the same millisecond and with as many bytes, a file cannot be told from what it was.
    stamp = deliver.clock = getattr(deliver, "clock", 1_700_000_000) + 1  # type: ignore[attr-defined]
    os.utime(file, (stamp, stamp))
    return file


def declare(wh: Warehouse, inbox: Path, **options: str) -> None:
    told = {"path": str(inbox), "format": "csv", "header": "true", **options}
    listed = ", ".join(f"{key} '{value}'" for key, value in told.items())
    wh.sql(f"CREATE SOURCE orders USING files OPTIONS ({listed})")


def rows(wh: Warehouse, table: str = "orders") -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in wh.sql(f"SELECT * FROM {table}").collect())


def told(error: pytest.ExceptionInfo[ViewkeeperError]) -> str:
    return f"{error.value.code} {error.value.message}"


def test_appended_files_are_inserts_and_views_follow_them(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3", "2,b,4", "2,b,4")
    declare(wh, inbox)
    wh.sql("CREATE MATERIALIZED VIEW by_name AS SELECT name, SUM(qty) AS qty FROM orders GROUP BY name")
    assert rows(wh) == {(1, "a", 3): 1, (2, "b", 4): 2}
    deliver(inbox, "a b[1]{2}%20,ü.csv", "3,a,5")
    epoch = wh.refresh()
    assert epoch.view("orders").strategy == "incremental"
    assert (epoch.view("orders").inserted, epoch.view("orders").deleted) == (1, 0)
    assert rows(wh, "by_name") == {("a", 8): 1, ("b", 8): 1}
    assert all(check.ok for check in wh.verify())
    assert [view.strategy for view in wh.refresh().views] == ["unchanged", "unchanged"]
    assert wh.at(epoch.id - 1).sql("SELECT * FROM by_name WHERE name = 'a'").collect()[0]["qty"] == 3


@pytest.mark.parametrize(
    ("mode", "key"), [("replace", None), ("replace", "id"), ("snapshot", None), ("snapshot", "id")]
)
def test_rewritten_and_removed_files_are_compared_with_what_was_seen(
    wh: Warehouse, inbox: Path, mode: str, key: str | None
):
    chance = random.Random(7)
    deliver(inbox, "1.csv", "1,a,3", "2,,4")
    deliver(inbox, "2.csv", "3,c,5", "4,d,")
    declare(wh, inbox, mode=mode, **({"key": key} if key else {}))
    wh.sql("CREATE MATERIALIZED VIEW by_name AS SELECT name, SUM(qty) AS qty FROM orders GROUP BY name")
    for _ in range(3):
        wanted = [(at, chance.choice(["a", "b", ""]), chance.choice(["1", "2", ""])) for at in range(8)]
        wanted = chance.sample(wanted, 5) + ([] if key else [wanted[0], wanted[0]])
        for at, file in enumerate(("1.csv", "3.csv")):
            deliver(inbox, file, *(",".join(map(str, row)) for row in wanted[at::2]))
        (inbox / "2.csv").unlink(missing_ok=True)
        epoch = wh.refresh()
        assert epoch.view("orders").strategy == "incremental"
        expected = Counter((at, name or None, int(qty) if qty else None) for at, name, qty in wanted)
        assert rows(wh) == expected
        assert all(check.ok for check in wh.verify())


def test_of_dated_deliveries_the_latest_is_the_whole_table(wh: Warehouse, inbox: Path):
    deliver(inbox, "2026-01-01.csv", "1,a,3", "2,b,4")
    declare(wh, inbox, mode="snapshot", delivery="latest file", key="id")
    deliver(inbox, "2026-01-02.csv", "2,b,5")
    wh.refresh()
    assert rows(wh) == {(2, "b", 5): 1}


def test_a_file_can_be_told_by_its_content(wh: Warehouse, inbox: Path):
    file = deliver(inbox, "1.csv", "1,a,3")
    before = file.stat()
    declare(wh, inbox, mode="replace", checksum="true")
    file.write_text(HEADER + "1,b,3\n", encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    wh.refresh()
    assert rows(wh) == {(1, "b", 3): 1}


@pytest.mark.parametrize("form", ["json", "parquet", "orc", "avro"])
def test_other_formats(wh: Warehouse, inbox: Path, form: str):
    def write(at: int, query: str) -> None:
        wh.spark.sql(query).coalesce(1).write.format(form).save(str(inbox / f"part={at}"))

    write(1, "SELECT 1 AS id, 'a' AS name, array(1, 2) AS tags")
    wh.sql(f"CREATE SOURCE things USING files OPTIONS (path '{inbox}', format '{form}', mode 'replace')")
    write(2, "SELECT 2 AS id, CAST(NULL AS STRING) AS name, array(3) AS tags")
    wh.refresh()
    for file in (inbox / "part=1").glob("part-*"):
        file.unlink()
    epoch = wh.refresh()
    assert epoch.view("things").deleted == 1
    assert [tuple(row) for row in wh.sql("SELECT id, name, tags FROM things").collect()] == [(2, None, [3])]


def test_only_what_is_asked_for_is_kept(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3", "2,b,4")
    declare(wh, inbox, columns="id, qty", where="qty > 3")
    deliver(inbox, "2.csv", "3,c,2", "4,d,9")
    wh.refresh()
    assert rows(wh) == {(2, 4): 1, (4, 9): 1}


def test_bad_rows_fail_the_refresh_and_are_named(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox)
    before = rows(wh)
    for bad in ("2,b", "2,b,x", "2,b,4,5", '2,"b,4'):
        deliver(inbox, "2.csv", bad)
        with pytest.raises(ViewkeeperError) as refused:
            wh.refresh()
        assert told(refused).startswith("VK-BAD-ROW")
        assert "2.csv" in refused.value.message
        assert bad in refused.value.message
        assert rows(wh) == before
    (inbox / "2.csv").write_bytes(HEADER.encode() + b"2,caf\xe9,4\n")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert "no text in this encoding" in refused.value.message
    deliver(inbox, "2.csv", "2,b,4")
    wh.refresh()
    assert rows(wh) == before + Counter([(2, "b", 4)])


def test_bad_rows_can_be_set_aside_with_file_line_and_reason(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox, on_bad_rows="quarantine", mode="replace")
    assert wh.sources()[0].bad_rows == 0
    (inbox / "2.csv").write_bytes(HEADER.encode() + b"2,b,4\n3,c\n4,caf\xe9,4\n")
    wh.refresh()
    assert rows(wh) == {(1, "a", 3): 1, (2, "b", 4): 1}
    assert wh.sources()[0].bad_rows == 2
    aside = [tuple(row) for row in wh.quarantine("orders").orderBy("line").collect()]
    assert [(Path(file).name, line, reason) for file, line, _, reason in aside] == [
        ("2.csv", 3, "does not fit the columns"),
        ("2.csv", 4, "bytes that are no text in this encoding"),
    ]
    deliver(inbox, "2.csv", "2,b,4", "3,c,5")
    wh.refresh()
    assert wh.sources()[0].bad_rows == 0
    assert wh.quarantine("orders").count() == 0


def empty(inbox: Path) -> None:
    (inbox / "2.csv").write_bytes(b"")


def other_columns(inbox: Path) -> None:
    deliver(inbox, "2.csv", "2,b,4", header="id,nam,qty\n")


def more_columns(inbox: Path) -> None:
    deliver(inbox, "2.csv", "2,b,4,5", header="id,name,qty,more\n")


def rewritten(inbox: Path) -> None:
    deliver(inbox, "1.csv", "1,a,9")


def gone(inbox: Path) -> None:
    deliver(inbox, "2.csv", "2,b,4")
    (inbox / "1.csv").unlink()


def all_gone(inbox: Path) -> None:
    (inbox / "1.csv").unlink()


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (empty, "VK-FILE-EMPTY"),
        (other_columns, "VK-FILE-SCHEMA"),
        (more_columns, "VK-FILE-SCHEMA"),
        (rewritten, "VK-FILE-CHANGED"),
        (gone, "VK-FILE-CHANGED"),
        (all_gone, "VK-FILES-NONE"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_named_and_nothing_changes(
    wh: Warehouse, inbox: Path, harm: Callable[[Path], None], code: str
):
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox)
    before = wh.spark.table("orders").collect()
    harm(inbox)
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == code
    assert refused.value.hint
    assert wh.spark.table("orders").collect() == before


@pytest.mark.parametrize("harm", ["cut off", "column missing", "column retyped"])
def test_files_that_carry_their_schema_must_have_the_sources(wh: Warehouse, inbox: Path, harm: str):
    wh.spark.sql("SELECT 1 AS id, 'a' AS name").coalesce(1).write.parquet(str(inbox / "1"))
    wh.sql(f"CREATE SOURCE things USING files OPTIONS (path '{inbox}', format 'parquet')")
    other = {"cut off": "1 AS id, 'a' AS name", "column missing": "1 AS id"}.get(
        harm, "1L AS id, 'a' AS name"
    )
    wh.spark.sql(f"SELECT {other}").coalesce(1).write.parquet(str(inbox / "2"))
    (file,) = (inbox / "2").glob("part-*")
    if harm == "cut off":
        file.write_bytes(file.read_bytes()[:-10])
        (inbox / "2" / f".{file.name}.crc").unlink()
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == ("VK-FILES-UNREADABLE" if harm == "cut off" else "VK-FILE-SCHEMA")
    assert file.name in refused.value.message
    assert wh.sql("SELECT * FROM things").count() == 1


@pytest.mark.parametrize("harm", ["rewritten", "removed"])
def test_a_file_that_changes_while_it_is_read(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, inbox: Path, harm: str
):
    def meddle(event: Event) -> None:
        if isinstance(event, StepFinished) and event.phase is Phase.INSTALL and armed:
            if harm == "rewritten":
                deliver(inbox, "2.csv", "2,b,9")
            else:
                (inbox / "2.csv").unlink(missing_ok=True)

    armed = False
    wh = open_warehouse(tmp_path / "warehouse", on_event=meddle)
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox)
    deliver(inbox, "2.csv", "2,b,4")
    armed = True
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-FILE-CHANGED"
    assert f"was {harm} while it was read" in refused.value.message
    assert rows(wh) == {(1, "a", 3): 1}


def test_a_file_that_goes_between_listing_and_reading_is_named(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, inbox: Path
):
    def meddle(event: Event) -> None:
        if isinstance(event, EpochStarted) and armed:
            (inbox / "2.csv").unlink()

    armed = False
    wh = open_warehouse(tmp_path / "warehouse", on_event=meddle)
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox)
    deliver(inbox, "2.csv", "2,b,4")
    armed = True
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-FILES-UNREADABLE"
    assert "2.csv" in refused.value.message


def test_a_key_that_comes_twice_is_named(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox, mode="snapshot", key="id")
    deliver(inbox, "1.csv", "1,a,3", "7,b,4", "7,b,5")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-KEY-TWICE"
    assert "(7)" in refused.value.message


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("path 'x', format 'csv', mod 'x'", "VK-SOURCE-OPTION"),
        ("path 'x', format 'xls'", "VK-SOURCE-OPTION"),
        ("format 'csv'", "VK-SOURCE-OPTION"),
        ("path 'x', format 'parquet', on_bad_rows 'quarantine'", "VK-SOURCE-OPTION"),
        ("path 'x', format 'csv', delivery 'latest file'", "VK-SOURCE-OPTION"),
        ("path 'x', format 'csv', mode 'DROPMALFORMED'", "VK-SOURCE-OPTION"),
        ("path '{inbox}', format 'csv', header 'true', key 'nope'", "VK-SOURCE-OPTION"),
        ("path '{inbox}', format 'csv', schema 'id NOSUCHTYPE'", "VK-SOURCE-OPTION"),
        ("path '{inbox}', format 'csv', header 'true', where 'rand() < 0.5'", "VK-NONDETERMINISTIC"),
        (
            "path '{inbox}', format 'csv', header 'true', where \"DATE'2026-01-01' < 'today'\"",
            "VK-NONDETERMINISTIC",
        ),
        ("path '{inbox}', format 'csv', header 'true', where 'now() > id'", "VK-NONDETERMINISTIC"),
        ("path '{inbox}', format 'csv', header 'true', where 'current_date > id'", "VK-NONDETERMINISTIC"),
        ("path '{inbox}', format 'csv', header 'true', where 'nope = 1'", "VK-SOURCE-OPTION"),
        ("path '{inbox}/nowhere', format 'csv'", "VK-FILES-NONE"),
        ("path '{inbox}', format 'parquet'", "VK-FILES-UNREADABLE"),
    ],
)
def test_declarations_that_cannot_be(wh: Warehouse, inbox: Path, options: str, code: str):
    deliver(inbox, "1.csv", "1,a,3")
    with pytest.raises(ViewkeeperError) as refused:
        wh.sql(f"CREATE SOURCE orders USING files OPTIONS ({options.format(inbox=inbox)})")
    assert refused.value.code == code
    assert wh.sources() == []
    assert wh.views() == []


def test_declaring_dropping_and_what_is_in_the_way(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox)
    declared = f"USING files OPTIONS (path '{inbox}', format 'csv', header 'true', mode 'replace')"

    def refused(statement: str) -> str:
        with pytest.raises(ViewkeeperError) as error:
            wh.sql(statement)
        return error.value.code

    assert refused(f"CREATE SOURCE orders {declared}") == "VK-SOURCE-EXISTS"
    wh.sql(f"CREATE SOURCE IF NOT EXISTS orders {declared}")
    assert wh.sources()[0].options["path"] == str(inbox)
    assert "mode" not in wh.sources()[0].options
    wh.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM orders")
    assert refused("DROP SOURCE orders") == "VK-VIEW-IN-USE"
    assert refused("DROP MATERIALIZED VIEW orders") == "VK-VIEW-IN-USE"
    assert refused("CREATE OR REPLACE MATERIALIZED VIEW orders AS SELECT 1 AS a") == "VK-NAME-TAKEN"
    assert refused("DROP SOURCE nope") == "VK-UNKNOWN-SOURCE"
    deliver(inbox, "1.csv", "1,a,3", "2,b,4")
    wh.sql(f"CREATE OR REPLACE SOURCE orders {declared}")
    assert wh.sql("SELECT n FROM n").collect()[0]["n"] == 2
    assert [row["source"] for row in wh.sql("SHOW SOURCES").collect()] == ["orders"]
    wh.sql("DROP MATERIALIZED VIEW n")
    wh.sql("DROP SOURCE orders")
    wh.sql("DROP SOURCE IF EXISTS orders")
    assert (wh.sources(), wh.views()) == ([], [])


def test_what_a_source_without_history_once_held_cannot_be_worked_out_again(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox, mode="replace")
    wh.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM orders")
    assert {check.view.rsplit(".", 1)[-1] for check in wh.verify()} == {"orders", "n"}
    wh.repair("orders")
    deliver(inbox, "1.csv", "1,a,4")
    assert {check.view.rsplit(".", 1)[-1] for check in wh.verify()} == {"n"}
    for act in (lambda: wh.verify("orders"), lambda: wh.repair("orders")):
        with pytest.raises(ViewkeeperError) as refused:
            act()
        assert refused.value.code == "VK-NO-HISTORY"
    wh.refresh("orders", policy="full")
    assert rows(wh) == {(1, "a", 4): 1}


def test_a_source_is_known_to_whoever_opens_the_warehouse_next(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, inbox: Path
):
    deliver(inbox, "1.csv", "1,a,3")
    with open_warehouse(tmp_path / "warehouse") as first:
        declare(first, inbox, mode="replace")
    second = open_warehouse(tmp_path / "warehouse")
    deliver(inbox, "1.csv", "2,b,4")
    epoch = second.refresh()
    assert (epoch.view("orders").inserted, epoch.view("orders").deleted) == (1, 1)
    assert second.check_sources() == {"orders": []}
    (inbox / "1.csv").write_bytes(b"")
    assert "is empty" in second.check_sources("orders")["orders"][0]


def test_propagated_deliveries_are_installed_as_they_were(wh: Warehouse, inbox: Path):
    deliver(inbox, "1.csv", "1,a,3")
    declare(wh, inbox, mode="replace", key="id")
    deliver(inbox, "1.csv", "1,b,3")
    wh.propagate()
    deliver(inbox, "1.csv", "1,c,3")
    wh.refresh(propagated=True)
    assert rows(wh) == {(1, "b", 3): 1}
    wh.refresh()
    assert rows(wh) == {(1, "c", 3): 1}
