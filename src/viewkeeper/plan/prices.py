"""What each way to bring a view up to date costs: Table 1 of Labio et al. (2000), for this warehouse.

An *operation* is something that Spark is asked to do. What it takes grows with the rows and bytes that it
reads of what is there, and with those that it changes:

    seconds = fixed + a·rows read + b·bytes read + c·rows changed + d·bytes changed

The five *rates* of every operation are measured by ``viewkeeper calibrate``. A *method* is made of
operations, so its price is the sum of theirs; those of propagate and of install are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum

from viewkeeper.plan.methods import OF_BAGS, OF_GROUPS, Method


class Operation(Enum):
    """What Spark is asked to do."""

    RECOMPUTE = "recompute"
    """Read tables, and write what is made of them."""
    GROUP = "group"
    """Group the rows that are read; what each task makes of its own is shuffled."""
    JOIN = "join"
    """Join the rows that are read, where none of the tables is small."""
    LOOK_UP = "look up"
    """Join with one more table, and in it look up the rows of a delta."""
    PROPAGATE = "propagate"
    """Extract changed rows, and run a delta expression over them and the operands that they are joined
    with. To find deleted rows, those of their files are read, too."""
    TOUCH = "touch"
    """Find the stored groups that a summary-delta touches, and combine them with it; or the stored rows of a
    bag that are equal to deleted ones."""
    MERGE = "merge"
    """One MERGE of touched groups."""
    DELETE_ROWS = "delete rows"
    """Delete stored rows by their identity or their hash."""
    DELETE_BY_KEY = "delete by key"
    INSERT = "insert"
    REBUILD = "rebuild"
    """Write all stored rows anew, some of them changed."""
    COUNT_DOWN = "count down"
    """Install deletions from a bag that is stored with counts."""
    COUNT_UP = "count up"
    """Install insertions into a bag that is stored with counts."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Seconds: fixed, for each row and byte read, for each row and byte changed."""

    fixed: float = 0.0
    read_row: float = 0.0
    read_byte: float = 0.0
    changed_row: float = 0.0
    changed_byte: float = 0.0


Rates = Mapping[Operation, Rate]

BELIEVED: Rates = {
    Operation.RECOMPUTE: Rate(0.28, 3e-8, 7.5e-9, 3e-8, 3.5e-9),
    Operation.GROUP: Rate(0.05, 1.9e-7, 3.3e-8),
    Operation.JOIN: Rate(0.0, 4.5e-7),
    Operation.LOOK_UP: Rate(0.08, 0.0, 0.0, 5e-7),
    Operation.PROPAGATE: Rate(0.23, 1e-8, 6e-9, 5e-7),
    Operation.TOUCH: Rate(0.28, 2e-8, 5e-10, 4.5e-6),
    Operation.MERGE: Rate(0.44, 9e-7, 1.3e-9, 1.1e-6, 2.1e-8),
    Operation.DELETE_ROWS: Rate(0.17, 3.7e-8, 0.0, 1.1e-6),
    Operation.DELETE_BY_KEY: Rate(0.36, 1e-8, 0.0, 1.4e-6),
    Operation.INSERT: Rate(0.18, 0.0, 0.0, 3.7e-7, 1.1e-8),
    Operation.REBUILD: Rate(0.28, 1e-8, 2.2e-8, 3.5e-7),
    Operation.COUNT_DOWN: Rate(0.44, 9e-7, 1.3e-9, 1.1e-6, 2.1e-8),
    Operation.COUNT_UP: Rate(0.44, 9e-7, 1.3e-9, 1.1e-6, 2.1e-8),
}
"""As calibrated on two cores, with Spark in local mode and files on a disk."""


def rates_as_json(rates: Rates) -> dict[str, dict[str, float]]:
    """For the ledger, and for people."""
    return {operation.value: asdict(rate) for operation, rate in rates.items()}


def rates_of_json(data: Mapping[str, Mapping[str, float]]) -> Rates:
    """What was kept; of operations that there were not then, what is believed."""
    known = {operation.value: operation for operation in Operation}
    return {**BELIEVED, **{known[name]: Rate(**rate) for name, rate in data.items() if name in known}}


@dataclass(frozen=True, slots=True)
class Load:
    """An operation, and what it has to do."""

    operation: Operation
    read_rows: float = 0.0
    read_bytes: float = 0.0
    changed_rows: float = 0.0
    changed_bytes: float = 0.0
    installs: bool = False
    tells: bool = False
    """Whether that is done for the views that read this one, when they are computed."""

    def seconds(self, rates: Rates) -> float:
        rate = rates[self.operation]
        return (
            rate.fixed
            + rate.read_row * self.read_rows
            + rate.read_byte * self.read_bytes
            + rate.changed_row * self.changed_rows
            + rate.changed_byte * self.changed_bytes
        )


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a price depends on. ``base``: what recomputing reads, and ``joined_rows`` of it joins; ``work``:
    what the operands of the delta expression hold; ``changed``: the rows of the changed tables' deltas; then
    the view itself, as stored, and its own change."""

    base_rows: float
    base_bytes: float
    work_rows: float
    work_bytes: float
    changed: float
    stored_rows: float
    stored_width: float
    inserted: float
    deleted: float
    updated: float = 0.0
    grouped: bool = False
    joined_rows: float = 0.0
    partners: int = 0
    """With how many other tables one is joined."""
    applied_rows: float = 0.0
    """Of views that are read whole and change in the same epoch, the rows: their changes are added to them,
    which groups all of them. Likewise:"""
    applied_bytes: float = 0.0
    copies: bool = False
    """Whether equal rows are stored, so that those to delete must be looked up by all their columns."""
    replaced: float = 0.0
    """Rows that show a key of what changed, where they can be replaced."""
    passed_over: float = 0.0
    """Rows that are read to find those that went, and that had gone before."""
    compared_rows: float = 0.0
    """Of views that were recomputed, the rows: their old and new ones are compared to find their change.
    Likewise:"""
    compared_bytes: float = 0.0
    told: bool = False
    """Whether other views ask for the change of this one."""

    @property
    def touched(self) -> float:
        return self.inserted + self.deleted + self.updated


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds that a method is expected to take, in its two phases."""

    method: Method
    compute: float
    install: float
    corrected: float = 1.0
    """By which factor, because of what was paid before."""
    tell: float = 0.0
    """What it takes to make its change explicit for the views that read it (Section 3.2)."""

    @property
    def total(self) -> float:
        return self.compute + self.install + self.tell


def prices(sizes: Sizes, rates: Rates, methods: Sequence[Method]) -> list[Price]:
    """Of these methods, cheapest first."""
    found = []
    for method in methods:
        loads = list(loads_of(method, sizes))
        tell = sum(load.seconds(rates) for load in loads if load.tells)
        install = sum(load.seconds(rates) for load in loads if load.installs)
        compute = sum(load.seconds(rates) for load in loads if not load.installs and not load.tells)
        found.append(Price(method, compute, install, tell=tell))
    return sorted(found, key=lambda price: price.total)


_TASKS = 8
"""Rows are grouped where they are read, and once more where they are sent: a group is sent by each task that
has found some of its rows, so many of them at least."""


def loads_of(method: Method, sizes: Sizes) -> Iterator[Load]:
    """What a method asks of Spark."""
    if method is Method.FULLRECOMP:
        yield _recompute(sizes)
        yield from [Load(Operation.LOOK_UP, installs=True)] * sizes.partners
        if sizes.grouped:
            sent = min(1.0, sizes.stored_rows * _TASKS / max(1.0, sizes.base_rows))
            yield Load(Operation.GROUP, sent * sizes.base_rows, sent * sizes.base_bytes, installs=True)
        if sizes.joined_rows:
            yield Load(Operation.JOIN, sizes.joined_rows, installs=True)
        yield from _applied(sizes, installs=True)
        yield from _told(method, sizes)
        return
    if method is Method.KEYREPLACE:
        # Every table once, and the keys are looked up in the largest.
        yield Load(Operation.PROPAGATE, sizes.base_rows, sizes.base_bytes, _extracted(sizes))
        yield from [Load(Operation.LOOK_UP, changed_rows=sizes.changed)] * (sizes.partners + 1)
        yield from _applied(sizes, installs=False)
        yield from installs_of(method, sizes)
        return
    yield Load(Operation.PROPAGATE, sizes.work_rows, sizes.work_bytes, _extracted(sizes))
    yield from [Load(Operation.LOOK_UP, changed_rows=sizes.changed)] * sizes.partners
    if sizes.compared_rows:
        yield Load(Operation.GROUP, 2 * sizes.compared_rows, 2 * sizes.compared_bytes)
    if method in OF_GROUPS:
        yield _touch(sizes)
    yield from installs_of(method, sizes)
    yield from _told(method, sizes)


def _told(method: Method, sizes: Sizes) -> Iterator[Load]:
    """∇V and ΔV made explicit, for views that ask for them. The change of a bag is just that, and so are the
    touched groups of SDBATCH; here those of SDCURSOR and SDOVERWRITE, too: they are computed before they are
    installed. Who recomputes has to compare what was with what is, and who appends parts of groups to look up
    the other parts."""
    if not sizes.told:
        return
    if method is Method.FULLRECOMP:
        yield Load(Operation.GROUP, 2 * sizes.stored_rows, 2 * _stored_bytes(sizes), tells=True)
    if method is Method.SDAPPEND:
        yield replace(_touch(sizes), tells=True)


def _extracted(sizes: Sizes) -> float:
    """The rows that come out of the tables when what changed is looked for."""
    return sizes.changed + sizes.passed_over


def installs_of(method: Method, sizes: Sizes) -> Iterator[Load]:
    """What is left when the view's own change is there."""
    gone, come = sizes.deleted + sizes.updated, sizes.inserted + sizes.updated
    if method is Method.KEYREPLACE:
        gone = come = sizes.replaced
    match method:
        case Method.SDCURSOR | Method.SDOVERWRITE:
            yield Load(
                Operation.MERGE if method is Method.SDCURSOR else Operation.REBUILD,
                sizes.stored_rows,
                _stored_bytes(sizes),
                sizes.touched,
                sizes.touched * sizes.stored_width,
                installs=True,
            )
        case Method.SDAPPEND:
            yield Load(
                Operation.INSERT,
                changed_rows=sizes.touched,
                changed_bytes=sizes.touched * sizes.stored_width,
                installs=True,
            )
        case Method.SDBATCH | Method.KEYINSTALL | Method.GENINSTALL | Method.KEYREPLACE:
            if gone and sizes.copies and method is Method.GENINSTALL:
                yield Load(Operation.TOUCH, sizes.stored_rows, _stored_bytes(sizes), gone, installs=True)
            if gone:
                by_key = method in (Method.KEYINSTALL, Method.KEYREPLACE)
                delete = Operation.DELETE_BY_KEY if by_key else Operation.DELETE_ROWS
                yield Load(delete, sizes.stored_rows, 0.0, gone, installs=True)
            if come:
                yield Load(
                    Operation.INSERT,
                    changed_rows=come,
                    changed_bytes=come * sizes.stored_width,
                    installs=True,
                )


def cheapest_install(
    methods: Sequence[Method],
    rates: Rates,
    stored_rows: float,
    stored_width: float,
    change: tuple[int, int, int],
    corrected: Mapping[Method, float],
) -> Method:
    """The method that installs a change soonest: so many rows inserted, deleted and updated. ``corrected``:
    how many times its price each of them is expected to be paid, as far as it is known."""
    inserted, deleted, updated = change
    sizes = Sizes(0, 0, 0, 0, 0, stored_rows, stored_width, inserted, deleted, updated)

    def seconds(method: Method) -> float:
        believed = sum(load.seconds(rates) for load in installs_of(method, sizes))
        return believed * corrected.get(method, 1.0)

    return min(methods, key=seconds)


def _recompute(sizes: Sizes) -> Load:
    return Load(
        Operation.RECOMPUTE,
        sizes.base_rows,
        sizes.base_bytes,
        sizes.stored_rows,
        _stored_bytes(sizes),
        installs=True,
    )


def _applied(sizes: Sizes, *, installs: bool) -> Iterator[Load]:
    """What it takes to read views as they will be."""
    if sizes.applied_rows:
        yield Load(Operation.GROUP, sizes.applied_rows, sizes.applied_bytes, installs=installs)


def _touch(sizes: Sizes) -> Load:
    return Load(Operation.TOUCH, sizes.stored_rows, _stored_bytes(sizes), sizes.touched)


def _stored_bytes(sizes: Sizes) -> float:
    return sizes.stored_rows * sizes.stored_width


def methods_for(
    *, groups: bool, keyed: bool = False, in_parts: bool = False, replaceable: bool = False
) -> tuple[Method, ...]:
    """Those that suit a view."""
    if in_parts:
        return (Method.SDAPPEND, Method.FULLRECOMP)
    if groups:
        return (*OF_GROUPS, Method.FULLRECOMP)
    suits = {Method.KEYINSTALL: keyed, Method.KEYREPLACE: replaceable}
    return (*(method for method in OF_BAGS if suits.get(method, True)), Method.FULLRECOMP)


# Representations (Section 3.1): every copy a row, or one row with a count.


def seconds_of_bag(rates: Rates, deleted: float, inserted: float, multiplicity: float | None) -> float:
    """To install a change of a bag; stored with counts if ``multiplicity`` is given, the average number of
    copies: then as many rows fewer are touched."""
    if multiplicity is None:
        return (
            rates[Operation.DELETE_ROWS].changed_row * deleted
            + rates[Operation.INSERT].changed_row * inserted
        )
    return (
        rates[Operation.COUNT_DOWN].changed_row * deleted + rates[Operation.COUNT_UP].changed_row * inserted
    ) / multiplicity


def break_even(rates: Rates, deleted: float, inserted: float) -> float:
    """The multiplicity from which on counts are the cheaper representation, for changes of this mix."""
    with_counts = seconds_of_bag(rates, deleted, inserted, 1.0)
    return with_counts / seconds_of_bag(rates, deleted, inserted, None)
