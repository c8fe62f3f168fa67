"""Storage tables and the catalog views over them: the statements that make, publish and remove them.

Storage of a view is an Iceberg table in namespace ``_viewkeeper`` under a generated name; the view's own name
is a catalog view that shows the user's columns. Each statement can be run again without harm.
"""

from __future__ import annotations

import uuid

from viewkeeper.define.definitions import NAMESPACE as NAMESPACE
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.install.row_hash import HASH
from viewkeeper.plan.layout import Layout
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import ident_path, literal, parse_path, quote, quote_path, show_path

_PROPERTIES = {
    # Deletion vectors: a changed row costs a bit, not the rewriting of its file.
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    # Only one epoch writes at a time: what it inserts beside a MERGE is no conflict.
    "write.merge.isolation-level": "snapshot",
    # Lets a session write to the epoch's branch, made on the way from main.
    "write.wap.enabled": "true",
}
_PASSED_ON = ("write.parquet.", "write.target-file-size-bytes", "write.distribution-mode", "write.metadata.")
"""Properties of a view that its storage table gets: bloom filters, compression, sizes of files."""


def new_storage_name(catalog: str) -> str:
    """A generated name: never the user's text."""
    return show_path((catalog, NAMESPACE, f"s_{uuid.uuid4().hex}"))


def new_delta_name(catalog: str) -> str:
    """The table of a delta that is kept to be installed later."""
    return show_path((catalog, NAMESPACE, f"d_{uuid.uuid4().hex}"))


def branch_name(epoch: int) -> str:
    """The branch on which an epoch stages its changes."""
    return f"vk_epoch_{epoch}"


def table_sql(table: str) -> str:
    """A table's name as it stands in a statement."""
    return ident_path(parse_path(table))


def create_storage(storage: str, layout: Layout, definition: ViewDefinition) -> tuple[str, ...]:
    """The statements that make an empty storage table."""
    columns = ", ".join(
        f"{quote(field.stored)} {kind}" for field, kind in zip(layout.fields, layout.types, strict=True)
    )
    if layout.hashed:
        columns += f", {HASH} BIGINT"
    partitioned = (
        f"\nPARTITIONED BY ({', '.join(definition.partitioned_by)})" if definition.partitioned_by else ""
    )
    asked = {key: value for key, value in definition.properties if key.startswith(_PASSED_ON)}
    properties = {**asked, **_PROPERTIES, "viewkeeper.view": show_path(definition.name)}
    listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    create = (
        f"CREATE TABLE {table_sql(storage)} ({columns}) USING iceberg{partitioned}\nTBLPROPERTIES ({listed})"
    )
    if not definition.cluster_by:
        return (create,)
    order = ", ".join(definition.cluster_by)
    return (create, f"ALTER TABLE {table_sql(storage)} WRITE LOCALLY ORDERED BY {order}")


def drop_storage(storage: str) -> str:
    """Removes the table and its files."""
    return f"DROP TABLE IF EXISTS {table_sql(storage)} PURGE"


def create_view(definition: ViewDefinition, layout: Layout, storage: str) -> str:
    """The catalog view under the user's name, over main of the storage table."""
    comments = {column.name: column.comment for column in definition.columns}
    columns = ", ".join(
        quote(name) + (f" COMMENT {literal(comment)}" if (comment := comments.get(name)) else "")
        for name in layout.columns
    )
    comment = f"\nCOMMENT {literal(definition.comment)}" if definition.comment is not None else ""
    properties = {**dict(definition.properties), "viewkeeper.storage-table": storage}
    listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in sorted(properties.items()))
    shown = print_relation(layout.shown(layout.stored(storage, None)))
    return (
        f"CREATE OR REPLACE VIEW {quote_path(definition.name)} ({columns}){comment}\n"
        f"TBLPROPERTIES ({listed})\nAS {shown}"
    )


def drop_view(name: str) -> str:
    """Removes the catalog view."""
    return f"DROP VIEW IF EXISTS {quote_path(parse_path(name))}"


def fast_forward(storage: str, branch: str) -> str:
    """Moves main to where the branch is; does nothing when it is there."""
    parts = parse_path(storage)
    return (
        f"CALL {quote(parts[0])}.system.fast_forward("
        f"table => {literal(quote_path(parts))}, branch => 'main', to => {literal(branch)})"
    )


def set_main(storage: str, snapshot: str) -> str:
    """Moves main to a snapshot, wherever it is."""
    parts = parse_path(storage)
    return (
        f"CALL {quote(parts[0])}.system.set_current_snapshot("
        f"table => {literal(quote_path(parts))}, snapshot_id => {int(snapshot)})"
    )


def drop_branch(storage: str, branch: str) -> str:
    """Forgets the branch; its snapshots go with the next expiry unless main has them."""
    return f"ALTER TABLE {table_sql(storage)} DROP BRANCH IF EXISTS {quote(branch)}"


def epoch_snapshots_query(storages: list[str], key: str, epoch: int) -> str:
    """One row per snapshot that the epoch wrote: its table, its parent, the rows it added and took away."""

    def counted(what: str) -> str:
        return f"coalesce(CAST(summary[{literal(what)}] AS BIGINT), 0)"

    # A deletion vector replaces the one before it, whose positions it takes over.
    removed = f"{counted('added-position-deletes')} - {counted('removed-position-deletes')}"
    return "\nUNION ALL\n".join(
        f"SELECT {literal(storage)} AS storage, CAST(snapshot_id AS STRING) AS snapshot, "
        f"CAST(parent_id AS STRING) AS parent, {counted('added-records')} AS added, {removed} AS removed "
        f"FROM {table_sql(storage)}.snapshots WHERE summary[{literal(key)}] = {literal(str(epoch))}"
        for storage in storages
    )


def branch_query(storage: str, branch: str) -> str:
    """Where a branch stands."""
    return (
        f"SELECT CAST(snapshot_id AS STRING) AS snapshot FROM {table_sql(storage)}.refs "
        f"WHERE name = {literal(branch)}"
    )
