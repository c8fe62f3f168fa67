"""Bad rows that were set aside: kept in a table, each with its file, its line and what is wrong with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from viewkeeper.sources.file_listing import Listing, urls_of
from viewkeeper.sources.file_reader import FileReader
from viewkeeper.sql.quoting import quote_path

_NAMESPACE = "_viewkeeper"


def quarantine_table(catalog: str, source: str) -> tuple[str, ...]:
    """Where the bad rows of a source are; a generated name, since tables become folders."""
    return (catalog, _NAMESPACE, "q_" + hashlib.sha256(source.encode()).hexdigest()[:20])


class Quarantine:
    """The bad rows of the files that a source has now. They are set aside before an epoch is published;
    should it not be, the next one sets them aside again."""

    def __init__(self, spark: SparkSession, catalog: str, source: str) -> None:
        self._spark = spark
        self._table = quote_path(quarantine_table(catalog, source))

    def take(self, reader: FileReader, listing: Listing, read: Sequence[Listing]) -> int:
        """Set the bad rows of the files that were read aside; how many there are now of all files."""
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._table} "
            "(file STRING, line BIGINT, record STRING, reason STRING) USING iceberg"
        )
        urls = urls_of(self._spark, listing)
        read_again = {path for files in read for path in files.files}
        kept = [url for path, url in urls.items() if path not in read_again]
        # One commit: what is kept, and what is bad in the files that were read.
        bad = reader.bad_rows(listing.of(sorted(read_again & set(listing.files)))) if read_again else None
        before = self._spark.table(self._table)
        staying = before.where(before.file.isin(kept)) if kept else before.limit(0)
        rows = staying if bad is None else staying.unionByName(bad)
        rows.localCheckpoint().writeTo(self._table).overwrite(lit(True))
        return self._spark.table(self._table).count()

    def drop(self) -> None:
        """Forget them."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._table} PURGE")
