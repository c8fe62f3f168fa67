"""A declared source: a name, a kind, and options that are checked before anything is touched.

::

    CREATE SOURCE orders USING files OPTIONS (path '/deliveries/orders/*.csv', format 'csv', mode 'append')

What has no history of its own gets a *base view* under the source's name: the warehouse's copy, which the
extractor keeps up by deltas, and which views read like any other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from viewkeeper.errors import DefinitionError, SetupError
from viewkeeper.sql.quoting import show_path

SOURCES = "_sources"
"""Stands in the place of a catalog in the names of tables that are no tables of Spark's."""

FORMATS = ("csv", "json", "parquet", "orc", "avro")
_PARSED = ("csv", "json")
_READER_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "csv": (
        "header", "sep", "delimiter", "quote", "escape", "comment", "encoding", "multiLine", "lineSep",
        "locale", "nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf", "dateFormat",
        "timestampFormat", "timestampNTZFormat", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace",
        "maxColumns", "maxCharsPerColumn",
    ),
    "json": (
        "multiLine", "encoding", "lineSep", "locale", "dateFormat", "timestampFormat", "timestampNTZFormat",
        "allowComments", "allowSingleQuotes", "allowUnquotedFieldNames", "allowNumericLeadingZeros",
        "primitivesAsString",
    ),
}  # fmt: skip
"""Spark's options for reading that a source may set; the others would change what is read in silence."""


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A source as it was declared, with what was found out when it was: schemas are pinned then."""

    name: str
    kind: str
    options: tuple[tuple[str, str], ...]
    tables: tuple[str, ...] = ()
    """The tables of a source that has several."""
    facts: tuple[tuple[str, str], ...] = ()
    """What was found out when it was declared."""
    remote: tuple[str, ...] = ()
    """Its tables that are not copied: views are swept over them."""

    @property
    def all_tables(self) -> tuple[str, ...]:
        """Its tables that have a base view, as they stand in the version vectors of views."""
        if not self.tables and not self.remote:
            return (show_path((SOURCES, self.name)),)
        return tuple(show_path((SOURCES, self.name, table)) for table in self.tables)

    @property
    def remote_tables(self) -> tuple[str, ...]:
        """Those that are not copied."""
        return tuple(show_path((SOURCES, self.name, table)) for table in self.remote)

    def fact(self, name: str) -> str | None:
        return dict(self.facts).get(name)


def _names(value: object) -> object:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


Names = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_names)]
SWEEP = "sweep"
"""The kind of what nobody declares: the join behind a view of remote tables."""


def _parted(value: object) -> object:
    """Parts at commas that stand neither in brackets nor in quotes.

    >>> _parted("public.a (x, y) WHERE (z IN ('(', ',')), b")
    ("public.a (x, y) WHERE (z IN ('(', ','))", 'b')
    """
    if not isinstance(value, str):
        return value
    parts, depth, quote = [""], 0, ""
    for char in value:
        if quote or char in "'\"`":
            quote = (quote if char != quote else "") if quote else char
        else:
            depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(part.strip() for part in parts)


_WANTED = re.compile(
    r"(?P<path>[^()]+?)\s*(?:\((?P<columns>[^()]*)\))?\s*(?:\bWHERE\s*\((?P<where>.*)\))?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class WantedTable:
    """What is wanted of a table: some of its columns, some of its rows; all, where nothing is said."""

    schema: str
    name: str
    columns: tuple[str, ...] = ()
    where: str | None = None

    @classmethod
    def of(cls, text: str) -> WantedTable:
        """As in PostgreSQL's CREATE PUBLICATION.

        >>> WantedTable.of("public.orders (id, total) WHERE (total > 0)")
        WantedTable(schema='public', name='orders', columns=('id', 'total'), where='total > 0')
        """
        found = _WANTED.fullmatch(text)
        if found is None:
            raise ValueError(f"write a table as schema.name (column, …) WHERE (condition), not {text!r}")
        schema, _, name = found["path"].rpartition(".")
        columns = tuple(part.strip() for part in found["columns"].split(",")) if found["columns"] else ()
        if "" in (name, *columns) or found["columns"] == "" or (found["where"] or "x").isspace():
            raise ValueError(f"a name is missing in {text!r}")
        return cls(schema or "public", name, columns, found["where"])


Tables = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_parted)]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FileOptions(_Options):
    """``USING files``."""

    path: str = Field(min_length=1)
    """A file, a folder with all that is in it, or a glob; on any filesystem that Spark reads."""
    format: Literal["csv", "json", "parquet", "orc", "avro"]
    mode: Literal["append", "replace", "snapshot"] = "append"
    """*append*: files come, and stay as they are. *replace*: they come, go and are rewritten. *snapshot*:
    each delivery is the whole table."""
    delivery: Literal["all", "latest file", "latest folder"] = "all"
    """Of mode *snapshot*: what the delivery is, of all that is there; the latest is the last by name."""
    key: Names = ()
    columns: Names = ()
    """The columns to keep; all, if none are named."""
    where: str | None = Field(default=None, min_length=1)
    """The rows to keep."""
    columns_types: str | None = Field(default=None, alias="schema", min_length=1)
    """The columns of the files, as DDL; looked up once if it is not given."""
    on_bad_rows: Literal["fail", "quarantine"] = "fail"
    checksum: bool = False
    """Tell files by their content, too: some tools rewrite them without changing time and size."""
    reader: dict[str, str] = Field(default_factory=dict)
    """Options for Spark's reader."""

    @model_validator(mode="before")
    @classmethod
    def _with_reader_options(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Options of Spark's reader stand among ours."""
        known = {name.casefold(): name for name in _READER_OPTIONS.get(str(given.get("format")), ())}
        ours = {key: value for key, value in given.items() if key.casefold() not in known}
        if "reader" in ours:
            raise ValueError("reader: no such option")
        reader = {known[key.casefold()]: value for key, value in given.items() if key not in ours}
        return {**ours, "reader": reader} if reader else ours

    @model_validator(mode="after")
    def _suits_format(self) -> FileOptions:
        if not self.path.startswith("/") and "://" not in self.path:
            raise ValueError("path: write it from the root, or as a URL")
        if self.on_bad_rows == "quarantine" and self.format not in _PARSED:
            raise ValueError(f"on_bad_rows: rows of {self.format} files are never bad, only whole files are")
        if self.delivery != "all" and self.mode != "snapshot":
            raise ValueError("delivery: only in mode 'snapshot' is a delivery the whole table")
        return self


class _WithPassword(_Options):
    """Who connects, and where the password is kept; never the password itself."""

    user: str | None = Field(default=None, min_length=1)
    password_env: str | None = Field(default=None, min_length=1)
    """The environment variable that holds the password."""
    password_file: str | None = Field(default=None, min_length=1)
    """The file that holds it."""

    @model_validator(mode="before")
    @classmethod
    def _no_plain_secret(cls, given: dict[str, Any]) -> dict[str, Any]:
        if "password" in given:
            raise ValueError(
                "password: it would be kept as it is; name the environment variable that holds it "
                "(password_env), or the file (password_file)"
            )
        if "password_env" in given and "password_file" in given:
            raise ValueError("password_env, password_file: name one of them")
        return given

    def secret(self) -> str | None:
        """The password, from where it is kept."""
        if self.password_env is not None:
            value = os.environ.get(self.password_env)
            if not value:
                raise SetupError(
                    f"the environment variable {self.password_env} is not set",
                    code="VK-SETUP-SECRET",
                    hint="A source refers to it; set it before you run viewkeeper.",
                )
            return value
        if self.password_file is not None:
            try:
                return Path(self.password_file).read_text(encoding="utf-8").rstrip("\n")
            except OSError as error:
                raise SetupError(
                    f"the file {self.password_file} cannot be read: {error.strerror}",
                    code="VK-SETUP-SECRET",
                    hint="A source keeps its password there.",
                ) from error
        return None


class PostgresOptions(_WithPassword):
    """``USING postgres``."""

    host: str = Field(min_length=1)
    port: int = Field(default=5432, ge=1, le=65535)
    database: str = Field(min_length=1)
    user: str = Field(min_length=1)
    sslmode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    capture: Literal["log", "trigger", "diff"] = "log"
    """*log*: from the server's log, by logical replication. *trigger*: from a table that triggers fill.
    *diff*: by comparing with what was seen; SELECT is all that it takes."""
    publication: str | None = Field(default=None, min_length=1)
    """A publication of these tables that somebody made for us; without one we make, and drop, our own."""
    tables: Tables = ()
    """Tables with their schema; each gets a base view, in a namespace of the source's name. What is kept of
    one may be narrowed, as in a publication: ``public.orders (id, total) WHERE (total > 0)``."""
    remote: Tables = ()
    """Tables that are not copied: views over them are swept."""
    connections: int = Field(default=4, ge=1, le=100)
    """So many at most, at a time, while a view is swept."""
    statement_seconds: int = Field(default=60, ge=1)
    """A question that takes longer is given up."""
    rows_per_answer: int = Field(default=1_000_000, ge=1)
    """An answer with more rows is not taken."""
    rest_seconds: int = Field(default=60, ge=0)
    """After three failures in a row the server is left alone for so long."""
    patience: int = Field(default=0, ge=0)
    """For so many seconds a refresh waits for a server that does not answer."""

    @field_validator("tables", "remote")
    @classmethod
    def _are_tables(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for each in given:
            WantedTable.of(each)
        return given

    @model_validator(mode="after")
    def _has_tables(self) -> PostgresOptions:
        if not self.tables and not self.remote:
            raise ValueError("tables: name those to copy, or name some that stay where they are (remote)")
        if self.remote and self.capture == "diff":
            raise ValueError("remote: comparing needs a copy; take capture 'log' or 'trigger'")
        if any(WantedTable.of(each).where for each in self.remote):
            raise ValueError("remote: a condition belongs into the view")
        return self

    def over(self, tables: tuple[str, ...]) -> PostgresOptions:
        """The same server, and other tables of it."""
        return self.model_copy(update={"tables": tables, "remote": ()})

    @property
    def wanted(self) -> tuple[WantedTable, ...]:
        """Each table that is copied; its schema is *public* if none is named."""
        return tuple(WantedTable.of(each) for each in self.tables)

    @property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """Schema and name of each table."""
        return tuple((each.schema, each.name) for each in self.wanted)


_URL = re.compile(r"jdbc:(?P<database>[a-z0-9]+):(?P<rest>[^?;()]+)(?:[?;](?P<settings>.*))?", re.IGNORECASE)
_ORACLES = re.compile(r"(thin|oci\d?):", re.IGNORECASE)
"""How Oracle's URLs begin."""
_URL_SETTINGS = frozenset(
    {"ssl", "sslmode", "usessl", "requiressl", "encrypt", "databasename", "currentschema", "servertimezone"}
)
"""What a URL may set; drivers have settings that run programs, read files and load classes."""
_TABLE = re.compile(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*){0,2}")


class JdbcOptions(_WithPassword):
    """``USING jdbc``: one table of any database that has a JDBC driver; SELECT is all that it takes."""

    url: str
    table: str
    driver: str | None = Field(default=None, pattern=r"^[\w.$]+$")
    """The class of the driver, where Spark does not find it by the URL."""
    key: Names = ()
    columns: Names = ()
    """The columns to keep; all, if none are named."""
    where: str | None = Field(default=None, min_length=1)
    """The rows to keep."""

    @model_validator(mode="after")
    def _reads_one_table(self) -> JdbcOptions:
        found = _URL.fullmatch(self.url)
        if found is None:
            raise ValueError("url: write jdbc:, the database's name, and where it is")
        for each in re.split("[&;]", found["settings"] or ""):
            name = each.partition("=")[0].strip()
            if name and name.casefold() not in _URL_SETTINGS:
                raise ValueError(f"url: {name} may not be set in it; {', '.join(sorted(_URL_SETTINGS))} may")
        who, at, _ = _ORACLES.sub("", found["rest"]).rpartition("@")
        if at and re.search("[:/]", who.removeprefix("//")):
            raise ValueError("url: a password in it would be kept as it is; use password_env")
        if _TABLE.fullmatch(self.table) is None:
            raise ValueError("table: the name of a table, with its schema if need be")
        return self


MODELS: Mapping[str, type[_Options]] = {
    "files": FileOptions,
    "postgres": PostgresOptions,
    "jdbc": JdbcOptions,
}


def checked_options(definition: SourceDefinition) -> BaseModel:
    """The options of a source, by the model of its kind; every mistake is named."""
    model = MODELS.get(definition.kind)
    if model is None:
        raise DefinitionError(
            f"source {definition.name}: there is no kind {definition.kind!r}",
            code="VK-SOURCE-KIND",
            hint=f"Kinds are {', '.join(MODELS)}.",
        )
    names = [name for name, _ in definition.options]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DefinitionError(
            f"source {definition.name}: the option {twice} stands there twice", code="VK-SOURCE-OPTION"
        )
    try:
        return model.model_validate(dict(definition.options))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        told = f"{where}: {said}" if where else said
        raise DefinitionError(
            f"source {definition.name}: {told}",
            code="VK-SOURCE-OPTION",
            hint=f"Options of {definition.kind}: {', '.join(_option_names(model))}.",
        ) from None  # it quotes what was given, a password perhaps


def _option_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items() if name != "reader"]
