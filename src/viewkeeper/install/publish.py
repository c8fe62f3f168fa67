"""Around the commit point: where the branches stand before it, and the chores that finish after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.install import storage
from viewkeeper.ledger.records import Chore, ChoreKind
from viewkeeper.sources.iceberg_catalog import read_history, standing
from viewkeeper.sources.iceberg_history import Snapshot
from viewkeeper.sql.quoting import parse_path

logger = logging.getLogger("viewkeeper")

EPOCH_PROPERTY = "viewkeeper.epoch"
_QUERIES = 3
"""That many at a time ask where branches stand."""


@dataclass(frozen=True, slots=True)
class Head:
    """The last snapshot that an epoch wrote to a storage table, and the one that it built upon."""

    snapshot: str
    base: str | None
    added: int
    removed: int


def heads(session: SparkSession, storages: Sequence[str], epoch: int) -> dict[str, Head]:
    """Where the epoch's branches stand, by few queries over the tables' snapshots: planning one takes as long
    as there are tables in it, on one core."""
    if not storages:
        return {}
    lots = [list(storages[at::_QUERIES]) for at in range(min(_QUERIES, len(storages)))]

    def ask(lot: list[str]) -> list[Row]:
        return session.sql(storage.epoch_snapshots_query(lot, EPOCH_PROPERTY, epoch)).collect()

    with ThreadPoolExecutor(len(lots), "viewkeeper") as pool:
        written = [row for rows in pool.map(ask, lots) for row in rows]
    found: dict[str, Head] = {}
    for table in storages:
        own = {row["snapshot"]: row for row in written if row["storage"] == table}
        if own:
            chain = _chain(own, _tip(session, table, own, epoch))
            removed = sum(row["removed"] for row in chain)
            found[table] = Head(chain[0]["snapshot"], chain[-1]["parent"], chain[0]["added"], removed)
    return found


def _tip(session: SparkSession, table: str, own: Mapping[str, Row], epoch: int) -> str:
    """The snapshot that no other one builds upon. Times of commits do not tell: clocks are put back."""
    tips = own.keys() - {row["parent"] for row in own.values()}
    if len(tips) == 1:
        return tips.pop()
    # What was tried and taken back is there beside what came in its place; the branch tells which is which.
    (head,) = session.sql(storage.branch_query(table, storage.branch_name(epoch))).collect()
    return str(head["snapshot"])


def _chain(own: Mapping[str, Row], tip: str) -> list[Row]:
    """A snapshot and the epoch's own ones that it builds upon, the newest first."""
    chain = [own[tip]]
    while chain[-1]["parent"] in own:
        chain.append(own[chain[-1]["parent"]])
    return chain


def run_chores(
    session: SparkSession,
    chores: Sequence[Chore],
    is_left: Callable[[Chore], bool],
    done: Callable[[Chore], None],
    concurrently: int = 4,
) -> None:
    """Do what a published epoch left to finish, or an abandoned one to clean up. Order matters only within
    a kind, and every chore can be done twice, unless another epoch followed: so each is asked for at its
    turn. Whoever took over the lease has done it, and may have published since. One that cannot be done now
    is left for the next time."""

    def run(lot: Sequence[Chore]) -> None:
        for chore in lot:
            if is_left(chore) and _run(session, chore):
                done(chore)

    for kind in (
        ChoreKind.FAST_FORWARD,
        ChoreKind.CREATE_VIEW,
        ChoreKind.DROP_VIEW,
        ChoreKind.DROP_BRANCH,
        ChoreKind.DROP_STORAGE,
    ):
        of_kind = [chore for chore in chores if chore.kind is kind]
        with ThreadPoolExecutor(concurrently, "viewkeeper") as pool:
            list(pool.map(run, _lots(of_kind)))


def _lots(chores: Sequence[Chore]) -> list[list[Chore]]:
    """Those of one storage table in turn, the newest epoch first: older ones have nothing left to do then."""
    lots: dict[str, list[Chore]] = {}
    for chore in sorted(chores, key=lambda each: each.epoch, reverse=True):
        lots.setdefault(chore.payload.get("storage") or chore.payload["view"], []).append(chore)
    return list(lots.values())


def _run(session: SparkSession, chore: Chore) -> bool:
    """Whether it is done."""
    payload = chore.payload
    match chore.kind:
        case ChoreKind.FAST_FORWARD:
            return not _is_there(session, payload["storage"]) or _fast_forward(session, chore)
        case ChoreKind.CREATE_VIEW:
            session.sql(payload["sql"])
        case ChoreKind.DROP_VIEW:
            session.sql(storage.drop_view(payload["view"]))
        case ChoreKind.DROP_BRANCH:
            if _is_there(session, payload["storage"]):
                session.sql(storage.drop_branch(payload["storage"], payload["branch"]))
        case ChoreKind.DROP_STORAGE:
            session.sql(storage.drop_storage(payload["storage"]))
    return True


def _fast_forward(session: SparkSession, chore: Chore) -> bool:
    """Let main show what is published. The branch holds that fast until main has it."""
    table, branch = chore.payload["storage"], chore.payload["branch"]
    try:
        session.sql(storage.fast_forward(table, branch))
    except PySparkException as error:
        if "is not an ancestor" in str(error):
            if not _lead_back(session, chore):
                return False
        elif "does not exist" not in str(error):  # done before, and the branch is gone
            raise
    session.sql(storage.drop_branch(table, branch))
    return True


def _lead_back(session: SparkSession, chore: Chore) -> bool:
    """Main went another way than the branch: whether it shows now what is published, or something newer.

    A compaction since the epoch's first write changed no row of what it began with; what is published has
    these rows, and the change. So main moves there, and the files are left to the next compaction. What
    somebody else wrote stays on main, for the next refresh to report, and the branch stays beside it.
    """
    table = chore.payload["storage"]
    head, base = chore.payload.get("snapshot"), chore.payload.get("base")  # older ones do not tell
    parts = parse_path(table)
    main = standing(session, parts).version
    line = () if main is None else read_history(session, parts).lineage(main)
    if any(each.id == head or (each.count(EPOCH_PROPERTY) or 0) > chore.epoch for each in line):
        return True
    if head is not None and _only_rewritten(line, base):
        session.sql(storage.set_main(table, head))
        return True
    logger.warning(
        "epoch %s is published, but somebody else wrote to the storage table %s, so that readers who do not "
        "go through viewkeeper do not see it: refresh with policy full, or repair",
        chore.epoch,
        table,
    )
    return False


def _only_rewritten(line: Sequence[Snapshot], base: str | None) -> bool:
    """Whether these snapshots, newest first, change no row since ``base``, which itself may be expired."""
    for snapshot in line:
        if snapshot.id == base:
            return True
        if not snapshot.replaces and not snapshot.idle:
            return False
        if snapshot.parent == base:
            return True
    return False


def _is_there(session: SparkSession, table: str) -> bool:
    return bool(session.catalog.tableExists(storage.table_sql(table)))
