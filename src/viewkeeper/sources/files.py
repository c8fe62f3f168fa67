"""A folder or glob of files as a source.

Its version is the listing of its files. Files have no history: what was seen before is in the base view, so
that is what a delivery is compared with. In mode *append* that is not needed: files come, and stay as they
are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.define.sources import FileOptions, SourceDefinition, checked_options
from viewkeeper.errors import SourceError
from viewkeeper.sources.contract import Capabilities, Description, Shelf, Statistics
from viewkeeper.sources.differential import Differential, unique
from viewkeeper.sources.extracted import Extracted, QueriedChange, as_problem
from viewkeeper.sources.file_listing import Listing, list_files
from viewkeeper.sources.file_reader import FileReader
from viewkeeper.sources.quarantine import Quarantine


class FilesSource(Extracted):
    """The files of one source. Declared with a schema, or with that of its first files."""

    capabilities = Capabilities(rows_at_version=False, lists_versions=False, acknowledges=False)

    def __init__(self, spark: SparkSession, definition: SourceDefinition, shelf: Shelf, catalog: str) -> None:
        options = checked_options(definition)
        assert isinstance(options, FileOptions)
        self._spark = spark
        self._name = definition.name
        (self._table,) = definition.all_tables
        self._options = options
        self._shelf = shelf
        self._zone = definition.fact("zone") or spark.conf.get("spark.sql.session.timeZone")
        self._reader = FileReader(spark, definition.name, options, definition.fact("schema"), self._zone)
        self._quarantine = None
        if options.on_bad_rows == "quarantine":
            self._quarantine = Quarantine(spark, catalog, definition.name)
        self._listings: dict[str, Listing] = {}
        self._rows_of: dict[str, int | None] = {}
        self._read: list[Listing] = []
        self._seen: str | None = None

    def pinned(self, definition: SourceDefinition) -> SourceDefinition:
        """With the columns of the files, as declared or as the files that are there have them; and the time
        zone of times that are written without one."""
        schema = self._reader.pinned_schema(self._list())
        return replace(definition, facts=(("schema", schema), ("zone", self._zone or "UTC")))

    def show(self, table: str, rows: str | None, version: str | None) -> None:
        self._seen = rows

    def let_go(self) -> None:
        """Nothing is open."""

    def problems(self) -> Sequence[str]:
        """Reading every file would tell more, and take as long as a refresh."""
        try:
            self._reader.relation(self._list())
        except SourceError as error:
            return (as_problem(error),)
        return ()

    def current(self) -> Mapping[str, str | None]:
        listing = self._list()
        self._listings[listing.version] = listing
        self._read = []
        return {self._table: listing.version}

    def describe(self, table: str) -> Description:
        return Description(self._reader.columns, None, self._options.key)

    def statistics(self, table: str, version: str | None) -> Statistics:
        listing = self._listing(version)
        return Statistics(None, listing.bytes, len(listing.files))

    def rows(self, table: str, version: str | None) -> str:
        """All rows of the files of a listing, as they are now."""
        rows = self._relation(self._listing(version))
        return f"({unique(rows, self._options.key)})" if self._options.key else rows

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> QueriedChange | None:
        assert new is not None
        if old == new:
            return None
        before = Listing({}) if old is None else self._listing(old)
        after = self._listing(new)
        added = after.added_since(before)
        changed = [*after.rewritten_since(before), *after.removed_since(before)]
        if self._options.mode == "append" and changed:
            raise self._not_appended(after, changed[0])
        if not changed:
            return None if not added else self._inserted(old, new, after.of(added))
        return self._compared(old, new, after)

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """Raise if a file is not what it was when it was listed: then what was read is neither state."""
        if not self._read:
            return
        listing = self._listing(version[self._table])
        now = self._list()
        for path, state in listing.files.items():
            if now.files.get(path) != state:
                what = "rewritten" if path in now.files else "removed"
                raise SourceError(
                    f"source {self._name}: the file {path} was {what} while it was read",
                    code="VK-FILE-CHANGED",
                    hint="Nothing was changed. Refresh again when the delivery is complete.",
                )
        bad = None
        if self._quarantine is not None:
            bad = self._quarantine.take(self._reader, listing, self._read)
        self._read = []
        # What only ever comes is never compared: nobody will ask how many rows there were.
        rows = None if self._options.mode == "append" else self._reader.row_count(listing)
        self._shelf.save(listing.version, {"files": listing.to_json(), "bad_rows": bad, "rows": rows})

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        """What was listed before is of no use any more."""
        kept = version[self._table]
        if kept is not None:
            self._shelf.forget_others(kept)
            self._listings = {each: found for each, found in self._listings.items() if each == kept}

    def release(self) -> None:
        """Files are left alone; what was set aside goes."""
        if self._quarantine is not None:
            self._quarantine.drop()

    def _relation(self, files: Listing) -> str:
        self._read.append(files)
        return self._reader.relation(files)

    def _inserted(self, old: str | None, new: str, files: Listing) -> QueriedChange:
        rows = self._relation(files)
        if self._options.key:
            rows = f"({unique(rows, self._options.key, f'({self._seen})')})"
        query = f"SELECT *, 1L AS {WEIGHT} FROM {rows}"
        told = f"{len(files.files)} new file{'s' if len(files.files) > 1 else ''}"
        return QueriedChange(self._table, old, new, self._reader.row_count(files), 0, told, (query,))

    def _compared(self, old: str | None, new: str, files: Listing) -> QueriedChange:
        assert self._seen is not None, "there is a base view if there was a version"
        columns = tuple((column.name, column.type) for column in self._reader.columns)
        compared = Differential(f"({self._seen})", self._relation(files), columns, self._options.key)
        form = compared.form(files.bytes)
        keyed = "by key" if self._options.key else "as bags"
        told = f"snapshot differential, {keyed}, {form.value}"
        before = self._rows_of.get(old or "") or self._reader.row_count(self._listing(old))
        rows = self._reader.row_count(files)
        return QueriedChange(self._table, old, new, rows, max(1, before), told, (compared.sql(form),))

    def _list(self) -> Listing:
        listing = list_files(self._spark, self._name, self._options.path, checksum=self._options.checksum)
        if not listing.files:
            raise SourceError(
                f"source {self._name}: there are no files in {self._options.path}",
                code="VK-FILES-NONE",
                hint="Is the place mounted, the pattern right? To empty it, deliver a file without rows.",
            )
        return self._delivered(listing)

    def _delivered(self, listing: Listing) -> Listing:
        """The files of the delivery, of all that are there."""
        last = max(listing.files)
        match self._options.delivery:
            case "latest file":
                return listing.of([last])
            case "latest folder":
                folder, _, _ = last.rpartition("/")
                return listing.of(path for path in listing.files if path.startswith(folder + "/"))
            case _:
                return listing

    def _listing(self, version: str | None) -> Listing:
        assert version is not None
        if version not in self._listings:
            kept = self._shelf.load(version)
            if kept is None:
                raise SourceError(
                    f"source {self._name}: the files of version {version} are not on record",
                    code="VK-SOURCE-EXPIRED",
                    hint="Refresh with the policy full, or let it be auto.",
                )
            self._listings[version] = Listing.of_json(kept["files"])
            self._rows_of[version] = kept.get("rows")
        return self._listings[version]

    def _not_appended(self, after: Listing, path: str) -> SourceError:
        what = "was rewritten" if path in after.files else "is gone"
        return SourceError(
            f"source {self._name}: the file {path} {what}, though its files are only to be added",
            code="VK-FILE-CHANGED",
            hint="Bring it back as it was; or declare the source with mode 'replace', which follows that.",
        )
