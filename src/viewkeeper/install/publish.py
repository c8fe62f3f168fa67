"""Around the commit point: where the branches stand before it, and the chores that finish after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.install import storage
from viewkeeper.ledger.records import Chore, ChoreKind

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
    turn. Whoever took over the lease has done it, and may have published since."""

    def run(chore: Chore) -> None:
        if is_left(chore):
            _run(session, chore)
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
            list(pool.map(run, of_kind))


def _run(session: SparkSession, chore: Chore) -> None:
    payload = chore.payload
    match chore.kind:
        case ChoreKind.FAST_FORWARD:
            _if_there(session, payload["storage"], lambda: _fast_forward(session, payload))
        case ChoreKind.CREATE_VIEW:
            session.sql(payload["sql"])
        case ChoreKind.DROP_VIEW:
            session.sql(storage.drop_view(payload["view"]))
        case ChoreKind.DROP_BRANCH:
            drop = storage.drop_branch(payload["storage"], payload["branch"])
            _if_there(session, payload["storage"], lambda: session.sql(drop))
        case ChoreKind.DROP_STORAGE:
            session.sql(storage.drop_storage(payload["storage"]))


def _fast_forward(session: SparkSession, payload: dict[str, str]) -> None:
    try:
        session.sql(storage.fast_forward(payload["storage"], payload["branch"]))
    except PySparkException as error:
        # Done before, and the branch is gone; or somebody else moved main, which the next refresh reports.
        if "does not exist" not in str(error) and "is not an ancestor" not in str(error):
            raise
    session.sql(storage.drop_branch(payload["storage"], payload["branch"]))


def _if_there(session: SparkSession, table: str, act: Callable[[], object]) -> None:
    if session.catalog.tableExists(storage.table_sql(table)):
        act()
