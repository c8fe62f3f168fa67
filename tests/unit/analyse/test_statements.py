"""Our statements, read and misread."""

from __future__ import annotations

import pytest

from viewkeeper.analyse.statements import (
    CreateView,
    DropView,
    ExplainView,
    Passthrough,
    RefreshView,
    ShowViews,
    Statement,
    parse_statement,
)
from viewkeeper.define.definitions import ColumnSpec
from viewkeeper.errors import DefinitionError


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("refresh materialized view shop.v", RefreshView(("shop", "v"))),
        ("REFRESH MATERIALIZED VIEW `a``b;`.`c.d` FULL ;", RefreshView(("a`b;", "c.d"), full=True)),
        ("EXPLAIN MATERIALIZED VIEW v", ExplainView(("v",))),
        ("DROP MATERIALIZED VIEW IF EXISTS lake.shop.v", DropView(("lake", "shop", "v"), if_exists=True)),
        ("DROP MATERIALIZED VIEW v", DropView(("v",))),
        ("SHOW MATERIALIZED VIEWS;", ShowViews()),
        ("SHOW TABLES", Passthrough("SHOW TABLES")),
        ("REFRESH TABLE t", Passthrough("REFRESH TABLE t")),
        ("EXPLAIN SELECT 1", Passthrough("EXPLAIN SELECT 1")),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", Passthrough("CREATE OR REPLACE VIEW v AS SELECT 1")),
        ("SELECT 'unfinished", Passthrough("SELECT 'unfinished")),
        ("", Passthrough("")),
    ],
)
def test_reads(sql: str, expected: Statement) -> None:
    assert parse_statement(sql) == expected


def test_create_with_nothing_but_a_query() -> None:
    sql = "create materialized view v as -- why\n  select 1 as a -- end\n;"
    assert parse_statement(sql) == CreateView(("v",), query="select 1 as a", query_start=sql.index("select"))


def test_create_with_everything() -> None:
    sql = """
        CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS lake.shop.`select`
          (a COMMENT 'it\\'s a', `b c`, date)
        REFRESH POLICY incremental strict
        TBLPROPERTIES ('k' = 'v', write.format = 'orc', n = 3)
        PARTITIONED BY (days(ts), bucket(16, id), `x y`)
        COMMENT 'daily'
        WITH NO DATA
        CLUSTER BY (a, `b c`)
        AS WITH c AS (SELECT 1) SELECT * FROM c AS d
    """
    view = parse_statement(sql)
    assert isinstance(view, CreateView)
    assert view.name == ("lake", "shop", "select")
    assert view.replace
    assert view.if_not_exists
    assert not view.with_data
    assert view.columns == (ColumnSpec("a", "it's a"), ColumnSpec("b c"), ColumnSpec("date"))
    assert view.policy == "incremental strict"
    assert view.properties == (("k", "v"), ("write.format", "orc"), ("n", "3"))
    assert view.partitioned_by == ("days(ts)", "bucket(16, id)", "`x y`")
    assert view.cluster_by == ("a", "`b c`")
    assert view.comment == "daily"
    assert view.query == "WITH c AS (SELECT 1) SELECT * FROM c AS d"


@pytest.mark.parametrize("policy", ["auto", "incremental", "incremental strict", "full"])
def test_policies(policy: str) -> None:
    view = parse_statement(f"CREATE MATERIALIZED VIEW v REFRESH POLICY {policy.upper()} AS SELECT 1")
    assert isinstance(view, CreateView)
    assert view.policy == policy


@pytest.mark.parametrize(
    ("sql", "at", "expected"),
    [
        ("CREATE MATERIALIZED TABLE v", "TABLE", "Expected VIEW"),
        ("CREATE MATERIALIZED VIEW AS SELECT 1", "SELECT", "Expected AS"),
        ("CREATE MATERIALIZED VIEW v SELECT 1", "SELECT", "Expected AS, COMMENT"),
        ("CREATE MATERIALIZED VIEW v AS", "AS", "Expected a query, but the text ends"),
        ("CREATE MATERIALIZED VIEW v", "v", "Expected AS"),
        ("CREATE MATERIALIZED VIEW v (a INT) AS SELECT 1", "INT", "Expected )"),
        ("CREATE MATERIALIZED VIEW v COMMENT 3 AS SELECT 1", "3", "a comment in quotes"),
        ("CREATE MATERIALIZED VIEW v COMMENT 'a' COMMENT 'b' AS SELECT 1", "COMMENT 'b'", "only once"),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY often AS SELECT 1", "often", "auto, incremental"),
        ("CREATE MATERIALIZED VIEW v PARTITIONED BY () AS SELECT 1", ")", "a column"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('a' = ) AS SELECT 1", ")", "a value"),
        ("REFRESH MATERIALIZED VIEW", "VIEW", "a name, but the text ends"),
        ("REFRESH MATERIALIZED VIEW v NOW", "NOW", "the end of the statement"),
        ("DROP MATERIALIZED VIEW 'v'", "'v'", "a name"),
        ("SHOW MATERIALIZED VIEW", "VIEW", "Expected VIEWS"),
        ("CREATE SOURCE", "SOURCE", "a name, but the text ends"),
        ("CREATE SOURCE 's' USING files", "'s'", "a name"),
        ("CREATE SOURCE a.b USING files", ".", "Expected USING"),
        ("CREATE SOURCE s", "s", "Expected USING"),
        ("CREATE SOURCE s USING", "USING", "a kind, such as files"),
        ("CREATE SOURCE s USING 'files'", "'files'", "a kind, such as files"),
        ("CREATE SOURCE s USING files (path '/in')", "(", "the end of the statement"),
        ("CREATE SOURCE s USING files OPTIONS", "OPTIONS", "Expected ("),
        ("CREATE SOURCE s USING files OPTIONS ()", ")", "a name"),
        ("CREATE SOURCE s USING files OPTIONS (path)", ")", "a value"),
        ("CREATE SOURCE s USING files OPTIONS (path '/in'", "'/in'", "Expected )"),
        ("CREATE SOURCE s USING files OPTIONS (path '/in',)", ")", "a name"),
        ("CREATE SOURCE s USING files OPTIONS (path '/in' format 'csv')", "format", "Expected )"),
        ("CREATE SOURCE s USING files AS SELECT 1", "AS", "the end of the statement"),
        ("DROP SOURCE", "SOURCE", "a name, but the text ends"),
        ("DROP SOURCE s CASCADE", "CASCADE", "the end of the statement"),
        ("SHOW SOURCES LIKE 'a'", "LIKE", "the end of the statement"),
    ],
)
def test_malformed(sql: str, at: str, expected: str) -> None:
    with pytest.raises(DefinitionError) as error:
        parse_statement(sql)
    assert error.value.code == "VK-SYNTAX"
    assert expected in error.value.message
    assert error.value.position is not None
    assert sql[error.value.position.start :].startswith(at)
