"""Copies a table out of a snapshot, over JDBC: several connections read a range of its blocks each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.errors import SetupError
from viewkeeper.sources.postgres_server import Server, quoted, text_literal
from viewkeeper.sources.postgres_types import PostgresType
from viewkeeper.sql.quoting import quote

_BLOCKS_PER_RANGE = 20_000
"""About 160 MB."""
_MOST_RANGES = 8
_FETCH_ROWS = 10_000
_DRIVER = "org.postgresql.Driver"


class Copying:
    """One table, of which these columns are wanted, and these rows, as far as the server can tell."""

    def __init__(
        self,
        spark: SparkSession,
        server: Server,
        table: str,
        types: Mapping[str, PostgresType],
        wanted: str = "",
    ) -> None:
        self._spark = spark
        self._server = server
        self._table = table
        self._types = types
        self._wanted = [wanted] if wanted else []

    def rows(self, snapshot: str, condition: str = "") -> DataFrame:
        """The rows of a snapshot, which must last until they are read."""
        columns = ", ".join(
            f"{kind.as_text(quoted(name))} AS {quoted(f'_vk_c{at}')}"
            for at, (name, kind) in enumerate(self._types.items())
        )
        texts = reduce(
            DataFrame.unionAll,
            (
                self._read(f"SELECT {columns} FROM {self._table}{_where([*self._wanted, part])}", snapshot)
                for part in ([condition] if condition else self._ranges())
            ),
        )
        return texts.selectExpr(
            *(
                f"{kind.value(f'_vk_c{at}')} AS {quote(name)}"
                for at, (name, kind) in enumerate(self._types.items())
            )
        )

    def _ranges(self) -> list[str]:
        """Conditions that part the table by its blocks; of a partitioned one nothing is known."""
        (blocks,) = self._server.one(
            f"SELECT CASE WHEN relkind = 'r' AND current_setting('server_version_num')::int >= 140000 "
            f"THEN pg_relation_size(oid) / current_setting('block_size')::int ELSE 0 END "
            f"FROM pg_class WHERE oid = {text_literal(self._table)}::regclass"
        )
        parts = min(_MOST_RANGES, int(blocks) // _BLOCKS_PER_RANGE + 1)
        if parts == 1:
            return [""]
        edges = [int(blocks) * at // parts for at in range(parts)]
        return [
            f"ctid >= '({start},0)'::tid" + (f" AND ctid < '({end},0)'::tid" if end is not None else "")
            for start, end in zip(edges, [*edges[1:], None], strict=True)
        ]

    def _read(self, query: str, snapshot: str) -> DataFrame:
        options = self._server.options
        begin = (
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SET TRANSACTION SNAPSHOT {text_literal(snapshot)}; SET TimeZone TO 'UTC'; "
            "SET DateStyle TO 'ISO, MDY'; SET extra_float_digits TO 1; SET bytea_output TO 'hex'; "
            "SET row_security TO off"
        )
        given = {
            "url": f"jdbc:postgresql://{options.host}:{options.port}/{options.database}",
            "driver": _DRIVER,
            "query": query,
            "user": options.user,
            "password": options.secret() or "",
            "sslmode": options.sslmode,
            "ApplicationName": "viewkeeper",
            "fetchsize": str(_FETCH_ROWS),
            "sessionInitStatement": begin,
        }
        try:
            return self._spark.read.format("jdbc").options(**given).load()
        except Exception as error:
            if "ClassNotFoundException" in str(error):
                raise SetupError(
                    "Spark lacks the JDBC driver of PostgreSQL",
                    code="VK-SETUP-JDBC",
                    hint="Add org.postgresql:postgresql to spark.jars.packages.",
                ) from None
            raise self._server.refused(error) from None


def _where(conditions: Sequence[str]) -> str:
    given = [each for each in conditions if each]
    return f" WHERE {' AND '.join(given)}" if given else ""
