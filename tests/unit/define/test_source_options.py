"""Declarations of sources: what is read, and what is refused before anything is touched."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.analyse.statements import (
    CreateSource,
    DropSource,
    Passthrough,
    ShowSources,
    Statement,
    parse_statement,
)
from viewkeeper.declaring import declaration, same_declaration
from viewkeeper.define.settings import SourceSettings
from viewkeeper.define.sources import (
    FileOptions,
    JdbcOptions,
    PostgresOptions,
    SourceDefinition,
    checked_options,
)
from viewkeeper.errors import DefinitionError, SetupError

CANARY = "canary-5up3rs3cr3t"
FILES = {"path": "/in", "format": "csv"}
POSTGRES = {"host": "db", "database": "shop", "user": "keeper", "tables": "public.orders"}


def source(kind: str, options: dict[str, str]) -> SourceDefinition:
    return SourceDefinition("orders", kind, tuple(options.items()))


def files(**options: str) -> FileOptions:
    found = checked_options(source("files", {**FILES, **options}))
    assert isinstance(found, FileOptions)
    return found


def postgres(**options: str) -> PostgresOptions:
    found = checked_options(source("postgres", {**POSTGRES, **options}))
    assert isinstance(found, PostgresOptions)
    return found


def refusal(kind: str, options: dict[str, str]) -> DefinitionError:
    with pytest.raises(DefinitionError) as refused:
        checked_options(source(kind, options))
    assert refused.value.message.startswith("source orders: ")
    assert refused.value.hint
    # What an unhandled error prints, with all that led to it.
    assert CANARY not in "".join(traceback.format_exception(refused.value))
    return refused.value


# Files.


def test_files_with_nothing_but_a_place_and_a_format() -> None:
    found = files()
    assert (found.mode, found.delivery, found.on_bad_rows) == ("append", "all", "fail")
    assert (found.key, found.columns, found.where, found.columns_types, found.reader) == (
        (),
        (),
        None,
        None,
        {},
    )
    assert not found.checksum


def test_files_with_everything() -> None:
    found = files(
        mode="snapshot", delivery="latest folder", key="id, line ", columns="id,line, qty", where="qty > 0",
        schema="id BIGINT, line INT, qty INT", on_bad_rows="quarantine", checksum="true",
        header="true", sep=";", NULLVALUE="-",
    )  # fmt: skip
    assert (found.mode, found.delivery, found.on_bad_rows) == ("snapshot", "latest folder", "quarantine")
    assert (found.key, found.columns) == (("id", "line"), ("id", "line", "qty"))
    assert (found.where, found.columns_types) == ("qty > 0", "id BIGINT, line INT, qty INT")
    assert found.checksum
    assert found.reader == {"header": "true", "sep": ";", "nullValue": "-"}, "as Spark writes them"


@pytest.mark.parametrize("path", ["/in", "/in/*.csv", "s3a://bucket/in/*", "file:///in", "abfss://c@a/in"])
def test_places_that_lead_somewhere(path: str) -> None:
    assert files(path=path).path == path


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "orc", "avro"])
def test_formats(form: str) -> None:
    assert files(format=form).format == form


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"path": ""}, "path"),
        ({"path": "in/orders"}, "path: write it from the root, or as a URL"),
        ({"path": "../in"}, "path: write it from the root, or as a URL"),
        ({"format": "xls"}, "format: Input should be 'csv', 'json', 'parquet', 'orc' or 'avro'"),
        ({"format": "CSV"}, "format"),
        ({"mode": "overwrite"}, "mode: Input should be 'append', 'replace' or 'snapshot'"),
        ({"mode": "PERMISSIVE"}, "mode"),
        ({"delivery": "latest file"}, "delivery: only in mode 'snapshot'"),
        ({"delivery": "latest folder", "mode": "replace"}, "delivery: only in mode 'snapshot'"),
        ({"delivery": "first file", "mode": "snapshot"}, "delivery: Input should be"),
        ({"key": ""}, "key.0"),
        ({"key": "id,"}, "key.1"),
        ({"columns": "id,,qty"}, "columns.1"),
        ({"where": ""}, "where"),
        ({"schema": ""}, "schema"),
        ({"on_bad_rows": "drop"}, "on_bad_rows: Input should be 'fail' or 'quarantine'"),
        ({"on_bad_rows": "quarantine", "format": "parquet"}, "rows of parquet files are never bad"),
        ({"checksum": "perhaps"}, "checksum"),
        ({"mod": "append"}, "mod: Extra inputs are not permitted"),
        ({"columns_types": "id INT"}, "columns_types"),
        ({"reader": "{}"}, "reader: no such option"),
    ],
)
def test_options_of_files_that_cannot_be(options: dict[str, str], told: str) -> None:
    error = refusal("files", {**FILES, **options})
    assert error.code == "VK-SOURCE-OPTION"
    assert told in error.message
    assert "path, format, mode" in (error.hint or "")
    assert "schema" in (error.hint or "")
    assert "reader" not in (error.hint or "")


@pytest.mark.parametrize("missing", ["path", "format"])
def test_files_need_a_place_and_a_format(missing: str) -> None:
    given = {key: value for key, value in FILES.items() if key != missing}
    assert f"{missing}: Field required" in refusal("files", given).message


@pytest.mark.parametrize(
    ("form", "option"),
    [
        ("csv", "enforceSchema"),
        ("csv", "inferSchema"),
        ("csv", "columnNameOfCorruptRecord"),
        ("csv", "ignoreCorruptFiles"),
        ("csv", "pathGlobFilter"),
        ("csv", "modifiedAfter"),
        ("csv", "samplingRatio"),
        ("json", "dropFieldIfAllNull"),
        ("json", "header"),
        ("parquet", "mergeSchema"),
        ("parquet", "encoding"),
        ("orc", "mergeSchema"),
        ("avro", "avroSchema"),
    ],
)
def test_options_of_sparks_reader_that_would_change_what_is_read_in_silence(form: str, option: str) -> None:
    error = refusal("files", {**FILES, "format": form, option: "true"})
    assert error.code == "VK-SOURCE-OPTION"
    assert f"{option}: Extra inputs are not permitted" in error.message


# PostgreSQL.


def test_a_database_with_nothing_but_what_it_takes() -> None:
    found = postgres()
    assert (found.port, found.capture, found.sslmode) == (5432, "log", "prefer")
    assert (found.tables, found.publication) == (("public.orders",), None)
    assert found.secret() is None


def test_a_database_with_everything() -> None:
    found = postgres(
        port="5433", capture="trigger", sslmode="verify-full", publication="theirs", tables="a.b , c",
        password_env="PW",
    )  # fmt: skip
    assert (found.port, found.capture, found.sslmode) == (5433, "trigger", "verify-full")
    assert (found.tables, found.publication, found.password_env) == (("a.b", "c"), "theirs", "PW")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"host": ""}, "host"),
        ({"port": "many"}, "port"),
        ({"port": "0"}, "port"),
        ({"port": "65536"}, "port"),
        ({"database": ""}, "database"),
        ({"user": ""}, "user"),
        ({"password_env": ""}, "password_env"),
        ({"password_file": ""}, "password_file"),
        ({"sslmode": "allow"}, "sslmode: Input should be"),
        ({"capture": "poll"}, "capture: Input should be 'log', 'trigger' or 'diff'"),
        ({"publication": ""}, "publication"),
        ({"tables": ""}, "tables.0"),
        ({"tables": "a,,b"}, "tables.1"),
        ({"table": "a"}, "table: Extra inputs are not permitted"),
        ({"url": "jdbc:postgresql://db/shop"}, "url: Extra inputs are not permitted"),
        ({"options": "-c statement_timeout=0"}, "options: Extra inputs are not permitted"),
        ({"socketFactory": "x"}, "socketFactory: Extra inputs are not permitted"),
        ({"sessionInitStatement": "DROP TABLE t"}, "sessionInitStatement: Extra inputs are not permitted"),
    ],
)
def test_options_of_a_database_that_cannot_be(options: dict[str, str], told: str) -> None:
    error = refusal("postgres", {**POSTGRES, **options})
    assert error.code == "VK-SOURCE-OPTION"
    assert told in error.message
    assert "host, port, database" in (error.hint or "")


@pytest.mark.parametrize(
    ("missing", "told"),
    [*((name, "Field required") for name in ("host", "database", "user")), ("tables", "name")],
)
def test_a_database_needs_an_address_and_tables(missing: str, told: str) -> None:
    given = {key: value for key, value in POSTGRES.items() if key != missing}
    assert f"{missing}: {told}" in refusal("postgres", given).message


@pytest.mark.parametrize("also", [{}, {"capture": "poll"}, {"nonsense": "1"}])
def test_a_plain_password_is_refused_and_told_nowhere(also: dict[str, str]) -> None:
    error = refusal("postgres", {**POSTGRES, "password": CANARY, **also})
    assert error.code == "VK-SOURCE-OPTION"
    assert "password_env" in error.message


def test_a_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_PW", CANARY)
    found = postgres(password_env="VK_PW")
    assert found.secret() == CANARY
    assert CANARY not in repr(found)
    for value in ("", None):
        if value is None:
            monkeypatch.delenv("VK_PW")
        else:
            monkeypatch.setenv("VK_PW", value)
        with pytest.raises(SetupError, match="VK_PW is not set") as refused:
            found.secret()
        assert refused.value.code == "VK-SETUP-SECRET"


def test_a_password_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f" {CANARY}\n", encoding="utf-8")
    assert postgres(password_file=str(file)).secret() == f" {CANARY}"
    with pytest.raises(SetupError, match="cannot be read") as refused:
        postgres(password_file=str(tmp_path / "nowhere")).secret()
    assert refused.value.code == "VK-SETUP-SECRET"


def test_a_password_is_in_one_place() -> None:
    """Which of the two would it be?"""
    error = refusal("postgres", {**POSTGRES, "password_env": "A", "password_file": "/b"})
    assert "password_env" in error.message and "password_file" in error.message


# Any database.


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:sqlite:/data/shop.db",
        "jdbc:postgresql://db:5432/shop?sslmode=require&currentSchema=s",
        "jdbc:sqlserver://db:1433;databaseName=shop;encrypt=true",
        "jdbc:oracle:thin:@//db:1521/shop",
        "jdbc:mysql://db/shop",
    ],
)
def test_addresses_of_databases(url: str) -> None:
    found = checked_options(source("jdbc", {"url": url, "table": "s.orders", "key": "id"}))
    assert isinstance(found, JdbcOptions)
    assert (found.url, found.table, found.key, found.secret()) == (url, "s.orders", ("id",), None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"url": "postgresql://db/shop"}, "url: write jdbc:"),
        ({"url": "jdbc:postgresql:"}, "url: write jdbc:"),
        (
            {"url": "jdbc:postgresql://db/shop?sslmode=require&socketFactory=x"},
            "socketFactory may not be set",
        ),
        ({"url": "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'x'"}, "INIT may not be set"),
        ({"url": f"jdbc:postgresql://db/shop?user=u&password={CANARY}"}, "user may not be set"),
        ({"url": f"jdbc:sqlserver://db;password={CANARY}"}, "password may not be set"),
        ({"url": f"jdbc:mysql://u:{CANARY}@db/shop"}, "url: a password in it would be kept"),
        ({"url": f"jdbc:oracle:thin:u/{CANARY}@//db:1521/shop"}, "url: a password in it would be kept"),
        ({"url": f"jdbc:mysql://address=(host=db)(password={CANARY})/shop"}, "url"),
        ({"url": "jdbc:mysql://(host=db,allowLoadLocalInfile=true)/shop"}, "url"),
        ({"table": "(SELECT 1) AS t"}, "table: the name of a table"),
        ({"table": "t; DROP TABLE u"}, "table: the name of a table"),
        ({"table": "a.b.c.d"}, "table: the name of a table"),
        ({"table": ""}, "table"),
        ({"driver": "no class at all"}, "driver"),
        ({"driver": "a/b"}, "driver"),
        ({"key": "id,"}, "key.1"),
        ({"where": ""}, "where"),
        ({"password": CANARY}, "password_env"),
        ({"password_env": "A", "password_file": "/b"}, "password_file"),
        ({"fetchsize": "1"}, "fetchsize"),
        ({"dbtable": "t"}, "dbtable"),
        ({"sessionInitStatement": "DROP TABLE t"}, "sessionInitStatement"),
    ],
)
def test_options_of_any_database_that_cannot_be(options: dict[str, str], told: str) -> None:
    error = refusal("jdbc", {"url": "jdbc:sqlite:/data/shop.db", "table": "orders", **options})
    assert error.code == "VK-SOURCE-OPTION"
    assert told in error.message


@pytest.mark.parametrize("kind", ["oracle", "", "Files", "_options"])
def test_a_kind_that_there_is_not(kind: str) -> None:
    error = refusal(kind, dict(FILES))
    assert error.code == "VK-SOURCE-KIND"
    assert error.hint == "Kinds are files, postgres, jdbc."


# Statements.


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("create source s using files", CreateSource("s", "files")),
        (
            "CREATE SOURCE orders USING files OPTIONS (path '/in/*.csv', format 'csv', header true);",
            CreateSource("orders", "files", (("path", "/in/*.csv"), ("format", "csv"), ("header", "true"))),
        ),
        (
            "CREATE OR REPLACE SOURCE `a``b; c` USING FILES OPTIONS ('path' = '/it''s', mode=\"append\")",
            CreateSource("a`b; c", "files", (("path", "/it's"), ("mode", "append")), replace=True),
        ),
        (
            "CREATE SOURCE IF NOT EXISTS s USING postgres OPTIONS (port 5433)",
            CreateSource("s", "postgres", (("port", "5433"),), if_not_exists=True),
        ),
        (
            "CREATE -- why\nSOURCE s /* ( */ USING files OPTIONS (sep ';', quote '\\'')",
            CreateSource("s", "files", (("sep", ";"), ("quote", "'"))),
        ),
        ("DROP SOURCE s", DropSource("s")),
        ("drop source if exists `s t`;", DropSource("s t", if_exists=True)),
        ("SHOW SOURCES", ShowSources()),
        ("CREATE TABLE source (a INT)", Passthrough("CREATE TABLE source (a INT)")),
        ("SELECT * FROM source", Passthrough("SELECT * FROM source")),
    ],
)
def test_statements_are_read(sql: str, expected: Statement) -> None:
    assert parse_statement(sql) == expected


def declared(sql: str) -> SourceDefinition:
    statement = parse_statement(sql)
    assert isinstance(statement, CreateSource)
    return declaration(statement)


def test_names_of_options_are_folded_and_their_order_does_not_matter() -> None:
    one = declared("CREATE SOURCE s USING files OPTIONS (PATH '/in', Format 'csv', nullValue '-')")
    other = declared(
        "CREATE OR REPLACE SOURCE s USING Files OPTIONS (format 'csv', nullvalue '-', path '/in')"
    )
    assert same_declaration(one, other)
    options = checked_options(one)
    assert isinstance(options, FileOptions)
    assert options.reader == {"nullValue": "-"}
    assert not same_declaration(one, declared("CREATE SOURCE s USING files OPTIONS (path '/in')"))
    assert not same_declaration(one, declared("CREATE SOURCE t USING files OPTIONS (path '/in')"))


@pytest.mark.parametrize("twice", ["path '/a', path '/b'", "path '/a', PATH '/b'"])
def test_an_option_that_stands_twice_is_refused(twice: str) -> None:
    """Which of the two would it be?"""
    with pytest.raises(DefinitionError) as refused:
        checked_options(declared(f"CREATE SOURCE s USING files OPTIONS (format 'csv', {twice})"))
    assert "path" in refused.value.message


def test_the_tables_of_a_source_are_no_tables_of_sparks() -> None:
    assert source("files", FILES).all_tables == ("_sources.orders",)
    several = SourceDefinition("my bank", "postgres", (), ("accounts", "Mo.ves"))
    assert several.all_tables == ("_sources.`my bank`.accounts", "_sources.`my bank`.`Mo.ves`")


# In viewkeeper.yml.


def settings(**options: Any) -> SourceSettings:
    return SourceSettings.model_validate({"kind": "files", "options": options})


def test_a_project_says_what_a_statement_would(tmp_path: Path) -> None:
    given = settings(path="in/*.csv", format="csv", header=True, checksum=False)
    assert dict(given.told(tmp_path)) == {
        "path": str(tmp_path / "in/*.csv"), "format": "csv", "header": "true", "checksum": "false",
    }  # fmt: skip


@pytest.mark.parametrize("path", ["/elsewhere/in", "s3a://bucket/in"])
def test_a_path_that_does_not_begin_at_the_project_stays(tmp_path: Path, path: str) -> None:
    assert dict(settings(path=path).told(tmp_path))["path"] == path


def test_a_secret_stays_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_PW", CANARY)
    assert settings(password={"env": "VK_PW"}).told(tmp_path) == (("password_env", "VK_PW"),)


def test_a_number_stands_as_a_number(tmp_path: Path) -> None:
    """As everybody writes a port in YAML."""
    assert settings(port=5433).told(tmp_path) == (("port", "5433"),)
