"""What may not be a view, each with its code, its place, and before Spark is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shop import PINS, Referee, read, resolve

from viewkeeper.analyse.parsing import tokenize
from viewkeeper.analyse.reading import analyse
from viewkeeper.analyse.refusals import refuse_bare_functions, refuse_special_dates
from viewkeeper.errors import DefinitionError

CASES = [
    ("", "VK-NOT-A-QUERY", None),
    ("-- nothing", "VK-NOT-A-QUERY", None),
    ("DROP TABLE pos", "VK-NOT-A-QUERY", "DROP"),
    ("CREATE TABLE t AS SELECT 1", "VK-NOT-A-QUERY", "CREATE"),
    ("SHOW TABLES", "VK-NOT-A-QUERY", "SHOW"),
    ("ADD JAR 'x.jar'", "VK-NOT-A-QUERY", "ADD JAR"),
    ("INSERT INTO pos SELECT * FROM pos", "VK-NOT-A-QUERY", "INSERT"),
    ("WITH a AS (SELECT 1) INSERT INTO pos SELECT * FROM a", "VK-NOT-A-QUERY", "INSERT"),
    ("WITH a AS (SELECT 1) DELETE FROM pos", "VK-NOT-A-QUERY", "DELETE"),
    ("WITH a AS (SELECT 1) UPDATE pos SET qty = 1", "VK-NOT-A-QUERY", "UPDATE"),
    (
        "WITH a AS (SELECT 1) MERGE INTO pos USING a ON true WHEN MATCHED THEN DELETE",
        "VK-NOT-A-QUERY",
        "MERGE",
    ),
    ("FROM pos INSERT OVERWRITE stores SELECT 1", "VK-NOT-A-QUERY", "INSERT"),
    ("SELECT 1; SELECT 2", "VK-NOT-A-QUERY", ";"),
    ("SELECT TRANSFORM(qty) USING 'cat' AS (x) FROM pos", "VK-NOT-A-QUERY", "USING"),
    ("SELECT * INTO t FROM pos", "VK-NOT-A-QUERY", "INTO"),
    ("SELEC qty FROM pos", "VK-SYNTAX", "SELEC"),
    ("SELECT 'open FROM pos", "VK-SYNTAX", None),
    ("SELECT rand() FROM pos", "VK-NONDETERMINISTIC", "rand"),
    ("SELECT qty FROM pos WHERE `Rand` (3) > 0.5", "VK-NONDETERMINISTIC", "`Rand`"),
    ("SELECT uuid /* id */ () FROM pos", "VK-NONDETERMINISTIC", "uuid"),
    ("SELECT system.builtin.current_timestamp() FROM pos", "VK-NONDETERMINISTIC", "current_timestamp"),
    ("SELECT qty FROM pos WHERE d >= DATE 'Today'", "VK-NONDETERMINISTIC", "'Today'"),
    ("SELECT qty FROM pos WHERE d >= to_date('yesterday')", "VK-NONDETERMINISTIC", "'yesterday'"),
    ("SELECT qty FROM pos WHERE d < CAST('now' AS TIMESTAMP)", "VK-NONDETERMINISTIC", "'now'"),
    ("SELECT qty FROM pos WHERE d >= DATE 'yesterday UTC'", "VK-NONDETERMINISTIC", "'yesterday UTC'"),
    ("SELECT qty FROM pos WHERE d >= to_date(('today'))", "VK-NONDETERMINISTIC", "'today'"),
    ("SELECT qty FROM pos WHERE d >= to_timestamp_ltz('now')", "VK-NONDETERMINISTIC", "'now'"),
    ("SELECT qty FROM pos WHERE d >= to_timestamp_ntz('today')", "VK-NONDETERMINISTIC", "'today'"),
    ("SELECT qty FROM pos WHERE d >= TIMESTAMP '12:30:00'", "VK-NONDETERMINISTIC", "'12:30:00'"),
    ("SELECT qty FROM pos WHERE d >= to_timestamp('T1:30')", "VK-NONDETERMINISTIC", "'T1:30'"),
    ("SELECT qty, p._file FROM pos p", "VK-NONDETERMINISTIC", "_file"),
    ("SELECT qty + unknown(_metadata.file_path) FROM pos", "VK-NONDETERMINISTIC", "_metadata"),
    ("SELECT d AS current_date, datediff(current_date, d) AS a FROM pos", "VK-NONDETERMINISTIC", None),
    ("SELECT note AS user, upper(user) AS u FROM pos", "VK-NONDETERMINISTIC", None),
    ("SELECT qty FROM pos -- files in C:\\data\\\nWHERE qty > 0", "VK-SYNTAX", None),
    ("SELECT current_user() FROM pos", "VK-NONDETERMINISTIC", "current_user"),
    ("SELECT qty FROM pos WHERE note = user", "VK-NONDETERMINISTIC", "user"),
    ("SELECT unix_timestamp() FROM pos", "VK-NONDETERMINISTIC", "unix_timestamp"),
    ("SELECT aes_encrypt(note, concat('a', 'b')) FROM pos", "VK-NONDETERMINISTIC", "aes_encrypt"),
    ("SELECT first(qty) FROM pos", "VK-NONDETERMINISTIC", "first"),
    ("SELECT any_value(qty) FILTER (WHERE qty > 1) FROM pos", "VK-NONDETERMINISTIC", "any_value"),
    ("SELECT qty FROM pos TABLESAMPLE (10 PERCENT)", "VK-NONDETERMINISTIC", "TABLESAMPLE"),
    ("SELECT reflect('java.lang.Runtime', 'x') FROM pos", "VK-FORBIDDEN-FUNCTION", "reflect"),
    ("SELECT java_method('a', 'b') FROM pos", "VK-FORBIDDEN-FUNCTION", "java_method"),
    ("SELECT try_reflect('a', 'b') FROM pos", "VK-FORBIDDEN-FUNCTION", "try_reflect"),
    ("SELECT * FROM parquet.`/etc/x`", "VK-PATH-READ", "parquet"),
    ("SELECT * FROM pos JOIN csv.`s3://b/x` c ON true", "VK-PATH-READ", "csv"),
    ("SELECT * FROM json.data", "VK-PATH-READ", "json"),
    ("SELECT * FROM `org.example.Source`.`/data`", "VK-PATH-READ", "`org.example.Source`"),
    ("SELECT * FROM read_files('/x')", "VK-PATH-READ", "read_files"),
    ("SELECT qty FROM pos VERSION AS OF 5", "VK-PINNED-TABLE", "VERSION"),
    ("SELECT qty FROM pos FOR SYSTEM_TIME AS OF '2024-01-01'", "VK-PINNED-TABLE", "SYSTEM_TIME"),
    ("SELECT qty FROM pos WITH (`start-snapshot-id` = '1')", "VK-PINNED-TABLE", "pos"),
    ("SELECT qty FROM no_such_table", "VK-UNKNOWN-TABLE", "no_such_table"),
    ("SELECT qty FROM IDENTIFIER('pos')", "VK-NOT-UNDERSTOOD", "IDENTIFIER"),
    ("SELECT IDENTIFIER('reflect')('a') FROM pos", "VK-NOT-UNDERSTOOD", "IDENTIFIER"),
    ("SELECT qty FROM shop.pos, lake.shop.pos", "VK-NOT-UNDERSTOOD", "lake"),
]


@pytest.mark.parametrize(("query", "code", "at"), CASES)
def test_refused(query: str, code: str, at: str | None) -> None:
    with pytest.raises(DefinitionError) as refusal:
        read(query)
    assert refusal.value.code == code
    if at is not None:
        assert refusal.value.position is not None
        assert query[refusal.value.position.start :].startswith(at)


@pytest.mark.parametrize(
    "query",
    [
        query
        for query, code, _ in CASES
        if code in ("VK-NOT-A-QUERY", "VK-PATH-READ", "VK-FORBIDDEN-FUNCTION")
    ],
)
def test_spark_never_sees_it(query: str) -> None:
    referee = Referee()
    with pytest.raises(DefinitionError):
        analyse(query, session=PINS, resolve=resolve, referee=referee)
    assert referee.asked == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT user AS a FROM odd",
        "SELECT unix_timestamp(d) AS a FROM pos",
        "SELECT transform(tags, x -> x) AS a FROM pos",
        "SELECT aes_encrypt(note, 'k', 'ECB') AS a FROM pos",
        "SELECT aes_encrypt(note, 'k', 'GCM', 'DEFAULT', 'iv') AS a FROM pos",
        "SELECT qty AS a FROM pos JOIN stores USING (store)",
        "SELECT 'rand()' AS a FROM pos -- now()",
        "SELECT qty AS a FROM pos;",
        "(SELECT qty AS a FROM pos)",
    ],
)
def test_not_refused(query: str) -> None:
    assert read(query).reason is None


def test_first_value_over_an_order_is_a_window() -> None:
    assert read("SELECT first_value(qty) OVER (ORDER BY item) FROM pos").reason is None


@pytest.mark.parametrize(
    ("columns", "given", "code"),
    [
        (("a", "A"), (), "VK-DUPLICATE-COLUMN"),
        (("a", "b"), ("x", "X"), "VK-DUPLICATE-COLUMN"),
        (("a", "b"), ("x",), "VK-COLUMN-COUNT"),
        (("a", "_vk_w"), (), "VK-RESERVED-NAME"),
    ],
)
def test_columns_of_the_view(columns: tuple[str, ...], given: tuple[str, ...], code: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        analyse(
            "SELECT store, qty FROM pos",
            session=PINS,
            resolve=resolve,
            referee=Referee(columns),
            columns=given,
        )
    assert refusal.value.code == code


def test_tables_that_the_refilled_text_does_not_read_alike() -> None:
    schemas = iter([[("a", "int")], [("a", "string")]])
    with pytest.raises(DefinitionError) as refusal:
        analyse("SELECT qty AS a FROM pos", session=PINS, resolve=resolve, referee=lambda _: next(schemas))
    assert refusal.value.code == "VK-NOT-UNDERSTOOD"


@pytest.mark.parametrize(
    ("plan", "refused"),
    [
        ("Filter (day#1 >= cast(today as date))", True),
        ("Project [coalesce(at#1, cast( Today  as timestamp_ntz))]", True),
        ("Filter (word#1 = today)", False),
        ("Project [cast(today#7 as date) AS d#8]", False),
    ],
)
def test_words_that_spark_reads_as_dates(plan: str, refused: bool) -> None:
    text = tokenize("SELECT 'Now' AS n FROM pos WHERE day >= ' today'")
    if not refused:
        refuse_special_dates(text, lambda: plan)
        return
    with pytest.raises(DefinitionError) as error:
        refuse_special_dates(text, lambda: plan)
    assert error.value.code == "VK-NONDETERMINISTIC"
    assert str(error.value.position) == "line 1, column 41"


def test_times_without_a_day_are_times_of_today() -> None:
    text = tokenize("SELECT '9:15' AS n FROM pos WHERE at >= '12:30:00'")
    refuse_special_dates(text, lambda: "Filter (word#1 = 12:30:00)")
    refuse_special_dates(text, lambda: "Filter (at#1 >= cast(2026-01-01 12:30:00 as timestamp))")
    with pytest.raises(DefinitionError) as error:
        refuse_special_dates(text, lambda: "Filter (at#1 >= cast(12:30:00 as timestamp))")
    assert str(error.value.position) == "line 1, column 41"


def test_no_plan_is_asked_for_without_such_a_word() -> None:
    refuse_special_dates(tokenize("SELECT today FROM pos"), lambda: pytest.fail("it was"))


def test_a_clock_needs_a_time_zone() -> None:
    with pytest.raises(DefinitionError) as refused:
        read("SELECT qty AS a FROM pos WHERE d < current_date", pins=replace(PINS, time_zone="Nowhere/Else"))
    assert refused.value.code == "VK-TIME-ZONE"


@pytest.mark.parametrize(
    ("query", "plan", "refused"),
    [
        ("FROM pos |> SELECT qty, current_user AS who", "Project [qty#1, current_user() AS who#2]", True),
        ("SELECT f(qty), current_time AS at FROM pos", "Project [f(qty#1), current_time(6) AS at#2]", True),
        ("FROM odd |> SELECT user AS who", "Project [user#1 AS who#2]", False),
        ("FROM odd |> SELECT qty", "never asked for: current_user()", False),
    ],
)
def test_functions_without_parentheses_in_queries_that_cannot_be_read(
    query: str, plan: str, refused: bool
) -> None:
    def check() -> None:
        refuse_bare_functions(tokenize(query), lambda: plan)

    if not refused:
        check()
        return
    with pytest.raises(DefinitionError) as refusal:
        check()
    assert refusal.value.code == "VK-NONDETERMINISTIC"


@pytest.mark.parametrize("call", ["collect_list(qty)", "`collect_set`(qty)", "mode(qty)", "listagg(note)"])
def test_what_depends_on_the_order_of_rows_is_no_window(call: str) -> None:
    reason = read(f"SELECT {call} OVER (PARTITION BY store ORDER BY d) AS a FROM pos").reason
    assert reason is not None
    assert reason.code == "WINDOW_FUNCTION"
