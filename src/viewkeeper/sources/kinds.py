"""The kinds of source that can be declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from viewkeeper.define.sources import SourceDefinition, checked_options
from viewkeeper.sources.contract import ExtractedSource, Shelf
from viewkeeper.sources.files import FilesSource
from viewkeeper.sources.jdbc import JdbcSource
from viewkeeper.sources.postgres import PostgresSource
from viewkeeper.sources.postgres_diff import PostgresDiffSource


def _postgres(
    spark: SparkSession, definition: SourceDefinition, shelf: Shelf, catalog: str
) -> ExtractedSource:
    if dict(definition.options).get("capture") == "diff":
        return PostgresDiffSource(spark, definition, shelf, catalog)
    return PostgresSource(spark, definition, shelf, catalog)


_KINDS: Mapping[str, Callable[[SparkSession, SourceDefinition, Shelf, str], ExtractedSource]] = {
    "files": FilesSource,
    "jdbc": JdbcSource,
    "postgres": _postgres,
}


def open_source(
    spark: SparkSession, definition: SourceDefinition, shelf: Shelf, catalog: str
) -> ExtractedSource:
    """A source by its declaration; refuses kinds and options that there are not. ``catalog``: where it may
    keep tables of its own."""
    checked_options(definition)
    return _KINDS[definition.kind](spark, definition, shelf, catalog)
