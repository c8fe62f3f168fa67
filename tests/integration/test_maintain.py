"""Upkeep of storage tables: fewer files, the same rows, and nothing forgotten that an epoch still shows."""

from __future__ import annotations

import pytest
from world import assert_exact, assert_tidy

from viewkeeper.errors import DefinitionError, RefreshError, ViewkeeperError
from viewkeeper.events import Event, PointPassed
from viewkeeper.plan.upkeep import WORTH_EXPIRING
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

MANY = 9


@pytest.fixture
def busy(sales: Warehouse) -> Warehouse:
    """Two views, one over the other, after many small refreshes."""
    sales.sql("CREATE MATERIALIZED VIEW rows AS SELECT store, item, qty FROM sales")
    sales.sql("CREATE MATERIALIZED VIEW by_store AS SELECT store, sum(qty) AS q FROM rows GROUP BY store")
    for at in range(MANY):
        sales.spark.sql(f"INSERT INTO sales VALUES ({at}, 'nut', {at})")
        sales.refresh(policy="incremental")
    return sales


def total(warehouse: Warehouse, epoch: int) -> int:
    found: int = warehouse.at(epoch).sql("SELECT count(*) FROM rows").collect()[0][0]
    return found


def test_small_files_are_rewritten_and_old_epochs_stay(busy: Warehouse) -> None:
    epochs = [epoch.id for epoch in busy.history()]
    before = {epoch: total(busy, epoch) for epoch in epochs[:3]}
    found = {each.view.rsplit(".", 1)[-1]: each for each in busy.maintain()}
    rows = found["rows"]
    assert rows.files_before > MANY > rows.files_after
    assert "small files" in (rows.reason or "")
    assert (rows.expired, rows.dropped) == (0, 0)
    assert {epoch: total(busy, epoch) for epoch in before} == before
    assert_exact(busy)

    # Nothing is left to do, for those who read the view neither; and it goes on from there.
    assert {each.reason for each in busy.maintain("rows")} == {None}
    assert {view.strategy for view in busy.refresh().views} == {"unchanged"}
    busy.spark.sql("DELETE FROM sales WHERE item = 'nut' AND qty = 3")
    assert {view.strategy for view in busy.refresh(policy="incremental").views} == {"incremental"}
    assert_exact(busy)
    assert_tidy(busy)


def test_what_old_epochs_left_is_removed(busy: Warehouse) -> None:
    newest, before, *_, oldest = [epoch.id for epoch in busy.history()]
    rows = {newest: total(busy, newest), before: total(busy, before)}
    busy.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW by_store AS SELECT store, max(qty) AS q FROM rows GROUP BY store"
    )
    found = {each.view.rsplit(".", 1)[-1]: each for each in busy.maintain(keep_epochs=4, keep_days=0)}
    assert found["rows"].expired > MANY - 4
    assert found["by_store"].dropped == 0, "its old storage is what the second last epoch shows"
    assert {epoch: total(busy, epoch) for epoch in rows} == rows
    with pytest.raises(ViewkeeperError) as refused:
        total(busy, oldest)
    assert refused.value.code == "VK-EPOCH-EXPIRED"
    assert busy.maintain("by_store", keep_epochs=1, keep_days=0)[0].dropped == 1
    busy.spark.sql("INSERT INTO sales VALUES (1, 'nut', 100)")
    busy.refresh(policy="incremental")
    assert_exact(busy)
    assert_tidy(busy)


def test_a_view_says_how_long_its_epochs_can_be_read(busy: Warehouse) -> None:
    busy.sql(
        "ALTER MATERIALIZED VIEW rows SET TBLPROPERTIES "
        "('viewkeeper.keep-epochs' = '4', 'viewkeeper.keep-days' = '0')"
    )
    oldest = busy.history()[-1].id
    rows = total(busy, oldest)
    busy.maintain(keep_epochs=100)
    assert total(busy, oldest) == rows, "what is asked for goes before"
    found = {each.view.rsplit(".", 1)[-1]: each.expired for each in busy.maintain()}
    assert found["rows"] > MANY - 6
    assert found["by_store"] == 0
    assert_exact(busy)


def test_old_epochs_are_forgotten_after_an_epoch_where_a_view_says_which(busy: Warehouse) -> None:
    asked = "'viewkeeper.maintain' = 'auto', 'viewkeeper.keep-epochs' = '2', 'viewkeeper.keep-days' = '0'"
    busy.sql(f"CREATE MATERIALIZED VIEW brief TBLPROPERTIES ({asked}) AS SELECT item, qty FROM sales")
    first = busy.history()[0].id
    storage = busy._library().states["lake.default.brief"].storage
    kept = []
    for qty in range(WORTH_EXPIRING + 4):
        busy.spark.sql(f"INSERT INTO sales VALUES (1, 'nut', {qty})")
        busy.refresh(policy="incremental")
        kept.append(busy.spark.table(f"{storage}.snapshots").count())
    assert max(kept) > WORTH_EXPIRING > min(kept[WORTH_EXPIRING:])
    with pytest.raises(ViewkeeperError) as refused:
        busy.at(first).sql("SELECT count(*) FROM brief")
    assert refused.value.code == "VK-EPOCH-EXPIRED"
    assert total(busy, first), "of others nothing is forgotten"
    assert_exact(busy)
    assert_tidy(busy)


@pytest.mark.parametrize(
    ("name", "value"),
    [("keep-epochs", "0"), ("keep-epochs", "ten"), ("keep-days", "-1"), ("keep-days", "nan")],
)
def test_a_retention_that_is_none_is_refused(busy: Warehouse, name: str, value: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        busy.sql(f"ALTER MATERIALIZED VIEW rows SET TBLPROPERTIES ('viewkeeper.{name}' = '{value}')")
    assert raised.value.code == "VK-UPKEEP-POLICY"


def test_storage_that_is_not_there_any_more_needs_no_upkeep(busy: Warehouse) -> None:
    """Its view was dropped, and another one has the name; or fewer epochs were kept at an earlier time."""
    busy.sql("DROP MATERIALIZED VIEW by_store")
    busy.sql("CREATE MATERIALIZED VIEW by_store AS SELECT store, max(qty) AS q FROM rows GROUP BY store")
    assert {each.dropped for each in busy.maintain()} == {0}
    busy.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW by_store AS SELECT store, min(qty) AS q FROM rows GROUP BY store"
    )
    assert busy.maintain("by_store", keep_epochs=1, keep_days=0)[0].dropped == 1
    assert busy.maintain("by_store", keep_epochs=50)[0].dropped == 0
    assert_exact(busy)
    assert_tidy(busy)


def test_what_a_lagging_view_needs_is_kept(busy: Warehouse) -> None:
    for qty in (50, 51):
        busy.spark.sql(f"INSERT INTO sales VALUES (1, 'nut', {qty})")
        busy.refresh("rows", policy="incremental")
    busy.maintain("rows", keep_epochs=1, keep_days=0)
    assert {view.strategy for view in busy.refresh(policy="incremental strict").views} <= {
        "incremental",
        "unchanged",
    }
    assert_exact(busy)


def test_a_compaction_that_was_not_published_is_adopted(
    busy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(event: Event) -> None:
        if isinstance(event, PointPassed) and "compacted" in event.what:
            raise KeyboardInterrupt

    monkeypatch.setattr(busy, "_emit", die)
    with pytest.raises(KeyboardInterrupt):
        busy.maintain("rows")
    monkeypatch.undo()
    busy.spark.sql("DELETE FROM sales WHERE item = 'nut' AND qty = 3")
    busy.refresh(policy="incremental")
    assert_exact(busy)
    assert_tidy(busy)


def test_upkeep_after_an_epoch_where_a_view_asks_for_it(busy: Warehouse) -> None:
    bloom = "write.parquet.bloom-filter-enabled.column.item"
    properties = f"TBLPROPERTIES ('viewkeeper.maintain' = 'auto', '{bloom}' = 'true')"
    busy.sql(f"CREATE MATERIALIZED VIEW kept {properties} AS SELECT item, qty FROM sales")
    busy.sql("CREATE MATERIALIZED VIEW left AS SELECT item, qty FROM sales")
    for qty in range(12):
        busy.spark.sql(f"INSERT INTO sales VALUES (1, 'nut', {qty})")
        busy.refresh("kept", "left", policy="incremental")
    files = {
        name: busy.spark.table(f"{busy._library().states[f'lake.default.{name}'].storage}.files").count()
        for name in ("kept", "left")
    }
    assert files["kept"] < 8 < files["left"]
    storage = busy._library().states["lake.default.kept"].storage
    shown = {row["key"] for row in busy.spark.sql(f"SHOW TBLPROPERTIES {storage}").collect()}
    assert bloom in shown
    assert_exact(busy)
    with pytest.raises(DefinitionError) as raised:
        busy.sql(
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('viewkeeper.maintain' = 'daily') AS SELECT 1 AS x"
        )
    assert raised.value.code == "VK-UPKEEP-POLICY"


def test_a_write_during_a_compaction_is_not_taken_for_ours(
    busy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = busy._ledger.states()["lake.default.rows"].storage

    def write(event: Event) -> None:
        if isinstance(event, PointPassed) and "storage of lake.default.rows compacted" in event.what:
            busy.spark.sql(f"INSERT INTO {storage} SELECT * FROM {storage} LIMIT 1")

    shown = busy.sql("SELECT * FROM rows").count()
    monkeypatch.setattr(busy, "_emit", write)
    with pytest.raises(RefreshError) as raised:
        busy.maintain("rows")
    assert raised.value.code == "VK-FOREIGN-WRITE"
    monkeypatch.undo()
    assert busy.sql("SELECT * FROM rows").count() == shown
