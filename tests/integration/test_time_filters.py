"""Views over the last days: rows come and go as time passes, though nobody touches the tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from world import assert_exact

from viewkeeper.errors import DefinitionError
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 10, 22, 30, tzinfo=timezone.utc)

FILTERED = {
    "week": "SELECT id, day FROM sales WHERE day >= current_date - INTERVAL 7 DAYS",
    "window": "SELECT id FROM sales WHERE day BETWEEN date_sub(current_date(), 3) AND curdate()",
    "by_city": "SELECT city, count(*) AS n, sum(qty) AS qty, max(day) AS last FROM sales "
    "WHERE day > date_sub(current_date, 5) GROUP BY city",
    "hours": "SELECT id FROM sales WHERE at > now() - INTERVAL 36 HOURS AND qty > 1",
    "local": "SELECT count(*) AS n FROM sales WHERE CAST(at AS TIMESTAMP_NTZ) <= localtimestamp()",
    "joined": "SELECT s.id, c.name FROM sales s JOIN cities c ON c.city = s.city "
    "WHERE s.day >= current_date - 4 AND c.since <= current_date",
    "unknown": "SELECT id FROM sales WHERE (day = current_date OR qty > 3) IS NOT TRUE",
    "either": "SELECT id FROM sales WHERE day > current_date - 2 OR qty > 4 OR city IS NULL",
    "outer_": "SELECT c.name, s.id FROM cities c LEFT JOIN sales s ON s.city = c.city "
    "WHERE s.day IS NULL OR s.day < current_date",
    "recent": "SELECT city FROM cities c WHERE EXISTS "
    "(SELECT 1 FROM sales s WHERE s.city = c.city AND s.day >= current_date - 1)",
    "latest": "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY city ORDER BY day DESC) AS n "
    "FROM sales WHERE day <= current_date) WHERE n = 1",
}
ELSEWHERE = {
    "age": "SELECT id, datediff(current_date, day) AS days FROM sales",
    "bucket": "SELECT id, CASE WHEN day >= current_date - 2 THEN 'new' ELSE 'old' END AS kind FROM sales",
    "having_": "SELECT city, max(day) AS last FROM sales GROUP BY city HAVING max(day) > current_date - 3",
    "stamped": "SELECT current_timestamp() AS at, count(*) AS n FROM sales GROUP BY 1",
}


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql("CREATE TABLE sales (id INT, city STRING, day DATE, at TIMESTAMP, qty INT)")
    wh.spark.sql("CREATE TABLE cities (city STRING, name STRING, since DATE)")
    wh.spark.sql(
        "INSERT INTO sales SELECT n, CASE WHEN n % 4 = 0 THEN NULL ELSE concat('c', n % 3) END, "
        "CASE WHEN n % 7 = 0 THEN NULL ELSE date_add(DATE '2026-03-01', n) END, "
        "TIMESTAMP '2026-03-01 12:00:00Z' + make_dt_interval(n), "
        "CASE WHEN n % 5 = 0 THEN NULL ELSE n % 6 END "
        "FROM (SELECT CAST(id AS INT) AS n FROM range(30))"
    )
    wh.spark.sql(
        "INSERT INTO cities VALUES ('c0', 'A', DATE '2026-03-01'), ('c1', 'B', DATE '2026-03-13'), "
        "('c2', 'C', NULL), ('c9', 'D', DATE '2026-03-02')"
    )
    return wh


@pytest.fixture
def at(shop: Warehouse) -> Callable[[datetime], None]:
    """Sets the clock."""

    def set_(moment: datetime) -> None:
        shop.clock = lambda: moment

    set_(START)
    return set_


def create(shop: Warehouse, views: dict[str, str]) -> None:
    for name, query in views.items():
        shop.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")


def test_time_passes_alone_and_together_with_changes(shop: Warehouse, at: Callable[[datetime], None]) -> None:
    create(shop, FILTERED)
    assert_exact(shop)
    moment = START
    for days, change in (
        (1, None),
        (1, "INSERT INTO sales VALUES (90, 'c1', DATE '2026-03-12', TIMESTAMP '2026-03-12 01:00:00Z', 5)"),
        (0, "DELETE FROM sales WHERE id % 5 = 2"),
        (3, "UPDATE sales SET day = date_add(day, 2), city = 'c9' WHERE id % 6 = 1"),
        (-4, "INSERT INTO cities VALUES ('c3', 'E', DATE '2026-03-11')"),  # a clock that is put back
        (400, None),
    ):
        moment += timedelta(days=days)
        at(moment)
        if change:
            shop.spark.sql(change)
        epoch = shop.refresh(policy="incremental strict")
        assert {view.strategy for view in epoch.views} <= {"incremental", "unchanged"}
        assert_exact(shop)
    assert shop.sql("SELECT * FROM week").count() == 0


def test_the_rows_are_those_of_the_day(shop: Warehouse, at: Callable[[datetime], None]) -> None:
    create(shop, {"week": FILTERED["week"]})
    for day in ("2026-03-10", "2026-03-17", "2026-04-02"):
        at(datetime.fromisoformat(f"{day}T23:59:59+00:00"))
        shop.refresh(policy="incremental")
        wanted = f"SELECT id, day FROM sales WHERE day >= DATE '{day}' - INTERVAL 7 DAYS"
        rows = {tuple(row) for row in shop.sql("SELECT * FROM week").collect()}
        assert rows == {tuple(row) for row in shop.spark.sql(wanted).collect()}


def test_it_is_the_day_in_the_time_zone_of_the_definition(
    shop: Warehouse, at: Callable[[datetime], None]
) -> None:
    query = "SELECT max(day) AS day FROM sales WHERE day <= current_date"
    shop.sql(f"CREATE MATERIALIZED VIEW here AS {query}")
    shop.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    shop.sql(f"CREATE MATERIALIZED VIEW there AS {query}")
    shop.spark.conf.set("spark.sql.session.timeZone", "UTC")
    days = [str(shop.sql(f"SELECT day FROM {view}").collect()[0][0]) for view in ("here", "there")]
    assert days == ["2026-03-10", "2026-03-11"]
    assert_exact(shop)


def test_within_a_day_nothing_is_done(shop: Warehouse, at: Callable[[datetime], None]) -> None:
    create(shop, {"week": FILTERED["week"]})
    before = shop.history()[0].id
    at(START + timedelta(hours=1))
    assert shop.refresh().id == before
    at(START + timedelta(hours=2))
    assert shop.refresh().id > before
    assert [change.delta_rows for change in shop.history()[0].views] == [1]


def test_elsewhere_the_clock_is_pinned_as_well(shop: Warehouse, at: Callable[[datetime], None]) -> None:
    create(shop, ELSEWHERE)
    for days in (1, 2):
        at(START + timedelta(days=days))
        shop.spark.sql(f"INSERT INTO sales VALUES ({100 + days}, 'c1', DATE '2026-03-12', NULL, 5)")
        shop.refresh()
        assert_exact(shop)
    assert str(shop.sql("SELECT max(at) AS at FROM stamped").collect()[0][0]).startswith("2026-03-12 22:30")


def test_only_the_edges_are_read(shop: Warehouse, at: Callable[[datetime], None]) -> None:
    create(shop, {"week": FILTERED["week"]})
    at(START + timedelta(days=1))
    sql = shop.explain("week").sql
    assert "NOT (day >= (DATE '2026-03-11') - INTERVAL 7 DAYS)" in sql
    assert "coalesce" not in sql


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT system.builtin.current_date() AS d FROM sales", "VK-NONDETERMINISTIC"),
        ("SELECT id FROM sales WHERE unix_timestamp() > qty", "VK-NONDETERMINISTIC"),
        ("SELECT transform(array(day), d -> d > current_date) AS x FROM sales", "VK-NONDETERMINISTIC"),
        ("SELECT id FROM sales WHERE day >= 'today'", "VK-NONDETERMINISTIC"),
        ("SELECT id FROM sales WHERE day >= 'today UTC'", "VK-NONDETERMINISTIC"),
        (
            "SELECT id, percentile_approx(id, 0.5) AS p, current_user AS u FROM sales GROUP BY id",
            "VK-NONDETERMINISTIC",
        ),
        ("FROM sales |> SELECT id, current_time AS t", "VK-NONDETERMINISTIC"),
        (
            "FROM sales |> EXTEND current_date AS current_date |> SELECT id, current_date AS c",
            "VK-NONDETERMINISTIC",
        ),
        ("SELECT id FROM sales WHERE day IN ('2026-03-10', ' Yesterday ')", "VK-NONDETERMINISTIC"),
        ("SELECT id, coalesce(day, 'tomorrow') AS day FROM sales", "VK-NONDETERMINISTIC"),
        ("SELECT id FROM sales WHERE cast(day AS TIMESTAMP) < 'now'", "VK-NONDETERMINISTIC"),
    ],
)
def test_refused(shop: Warehouse, query: str, code: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        shop.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert refused.value.code == code


def test_beside_a_text_today_is_a_word(shop: Warehouse) -> None:
    shop.spark.sql("CREATE TABLE said (day STRING, today STRING)")
    shop.spark.sql("INSERT INTO said VALUES ('today', '2026-01-01'), ('now', '2026-01-01')")
    shop.sql(
        "CREATE MATERIALIZED VIEW words AS SELECT day, 'tomorrow' AS next, CAST(today AS DATE) AS d "
        "FROM said WHERE day = 'today'"
    )
    assert [row.day for row in shop.sql("SELECT day FROM words").collect()] == ["today"]


def test_a_column_is_no_function_in_a_query_that_is_not_read(shop: Warehouse) -> None:
    shop.spark.sql("CREATE TABLE owned (id INT, user STRING)")
    shop.spark.sql("INSERT INTO owned VALUES (1, 'ann')")
    shop.sql("CREATE MATERIALIZED VIEW o AS FROM owned |> SELECT id, user AS who")
    assert [row.who for row in shop.sql("SELECT who FROM o").collect()] == ["ann"]


def test_a_column_of_that_name_goes_first(shop: Warehouse, at: Callable[[datetime], None]) -> None:
    shop.spark.sql("CREATE TABLE days (current_date DATE)")
    shop.spark.sql("INSERT INTO days VALUES (DATE '2020-01-01')")
    shop.sql("CREATE MATERIALIZED VIEW d AS SELECT current_date AS c FROM days")
    assert str(shop.sql("SELECT c FROM d").collect()[0][0]) == "2020-01-01"
