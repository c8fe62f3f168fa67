"""What Spark says of tables and queries: the referee. Analysis only; none of this runs a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from viewkeeper.algebra.relations import Relation
from viewkeeper.define.definitions import SessionPins
from viewkeeper.execute.sessions import Sessions
from viewkeeper.execute.tuning import METADATA
from viewkeeper.sources.iceberg_catalog import Standing, description, told_by_description
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import parse_path, quote_path


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the catalog knows of a table without reading it."""

    provider: str
    is_view: bool
    snapshot: str | None
    rows: int | None


class Catalog:
    """Questions to Spark's catalogs and analyser."""

    def __init__(self, sessions: Sessions, pins: SessionPins) -> None:
        self._sessions = sessions
        self._pins = pins

    @property
    def session(self) -> SparkSession:
        return self._sessions.pinned(self._pins, METADATA)

    def catalogs(self) -> frozenset[str]:
        """The names of the catalogs that can be named first in a table's name."""
        settings = self.session.conf.getAll
        prefix = "spark.sql.catalog."
        named = {key[len(prefix) :] for key in settings if key.startswith(prefix)}
        return frozenset(name for name in named if "." not in name) | {"spark_catalog"}

    def columns(self, parts: tuple[str, ...]) -> tuple[tuple[str, str], ...] | None:
        """The columns of a table or view and their types; ``None`` when there is none of that name."""
        try:
            schema = self.session.table(quote_path(parts)).schema
        except AnalysisException:
            return None
        return tuple((field.name, field.dataType.simpleString()) for field in schema.fields)

    def facts(self, parts: tuple[str, ...]) -> TableFacts | None:
        """What is known of a table; ``None`` when it does not exist."""
        try:
            details = description(self.session, parts)
        except PySparkException:
            return None
        told = told_by_description(details) or Standing(None, None)
        return TableFacts(
            provider=details.get("Provider", ""),
            is_view="View Text" in details
            or details.get("Type") == "VIEW"
            or "# View Information" in details,
            snapshot=told.version,
            rows=told.rows,
        )

    def facts_of(self, table: str) -> TableFacts | None:
        """Of a table by its full name."""
        return self.facts(parse_path(table))

    def names_in(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """The tables and views of a namespace, for suggestions."""
        try:
            tables = self.session.sql(f"SHOW TABLES IN {quote_path(namespace)}").collect()
        except PySparkException:
            return ()
        return [row["tableName"] for row in tables]

    def schema(self, query: str, pins: SessionPins) -> list[tuple[str, str]]:
        """The columns and types of a query, or Spark's own error."""
        fields = self._sessions.pinned(pins).sql(query).schema.fields
        return [(field.name, field.dataType.simpleString()) for field in fields]

    def explained(self, query: str, pins: SessionPins) -> str:
        """The plans that Spark makes of a query."""
        return str(self._sessions.pinned(pins).sql(f"EXPLAIN EXTENDED {query}").collect()[0][0])

    def types(self, relation: Relation, pins: SessionPins) -> Mapping[str, str]:
        """The types of a relation's columns."""
        return dict(
            zip(
                relation.columns,
                (kind for _, kind in self.schema(print_relation(relation), pins)),
                strict=True,
            )
        )
