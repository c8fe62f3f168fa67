"""Touched rows: what is stored without a touched key, and what is made anew, are the new view."""

from __future__ import annotations

from collections import Counter
from random import Random

from bag_algebra import Bag, evaluate
from random_relations import MemoryLeaves, random_leaves

from viewkeeper.algebra.relations import Field, Filter, Join, OuterJoin, Project, Relation, Scan, leaves
from viewkeeper.algebra.rules.hanging import hanging
from viewkeeper.algebra.rules.leaves import new, old
from viewkeeper.algebra.rules.touched_rows import TouchedKeys, replacement
from viewkeeper.algebra.scalars import Named, column, compose

TABLES = dict.fromkeys("abcd", ("x", "y", "z"))


def scan(table: str, at: int) -> Scan:
    return Scan(table, tuple(Field(stored, f"{stored}{at}") for stored in TABLES[table]))


def random_view(random: Random) -> Relation:
    """A join of two to four tables, a table twice perhaps, most of them by equalities; some columns shown."""
    inputs: list[Relation] = [scan(random.choice("abcd"), at) for at in range(random.randint(2, 4))]
    if random.random() < 0.3:
        inputs[0] = Filter(inputs[0], compose(column("y0"), " < 2"))
    conjuncts = []
    for at in range(1, len(inputs)):
        if random.random() < 0.9:
            mine, theirs = random.choice("xyz"), random.choice("xyz")
            equals = random.choice((" = ", " = ", " = ", " <=> ", " <= "))
            conjuncts.append(
                compose(column(f"{mine}{random.randrange(at)}"), equals, column(f"{theirs}{at}"))
            )
    if random.random() < 0.3:
        conjuncts.append(compose(column("x0"), random.choice((" = ", " < ")), column("y1")))
    if random.random() < 0.2:
        conjuncts.append(compose(column("z1"), " > 0"))
    join = Join(tuple(inputs), tuple(conjuncts))
    shown = [name for name in join.columns if random.random() < 0.7] or list(join.columns[:1])
    items = [Named(f"shown_{name}", column(name)) for name in shown]
    items.append(Named("made", compose(column(random.choice(join.columns)), " + 1")))
    random.shuffle(items)
    view = Project(join, tuple(items))
    return Filter(view, compose(column(items[0].name), " IS NOT NULL")) if random.random() < 0.2 else view


def goes(row: tuple[object, ...], columns: tuple[str, ...], keys: TouchedKeys, found: Bag) -> bool:
    """Whether a stored row shows one of these keys."""
    shown = tuple(row[columns.index(each.shown)] for each in keys.columns)
    strict = [each for each in keys.columns if not each.nullable]
    if any(row[columns.index(each.shown)] is None for each in strict):
        return False  # compared by "="
    return shown in found


def replaced(view: Relation, tables: MemoryLeaves) -> Bag | None:
    """The stored rows after a refresh; ``None`` where the view is not kept in this way."""
    tree = hanging(view, tables)
    if tree is None:
        return None
    before = evaluate(old(view, tables), tables.stored)
    found = replacement(view, tree, tables)
    if found is None:
        return before
    assert found.rows.columns == view.columns
    keys = [(each, evaluate(each.keys, tables.stored)) for each in found.keys]
    stay = Counter(
        {
            row: count
            for row, count in before.items()
            if not any(goes(row, view.columns, each, rows) for each, rows in keys)
        }
    )
    return stay + evaluate(found.rows, tables.stored)


def test_what_stays_and_what_is_made_anew_are_the_new_rows() -> None:
    kept = Counter[int]()
    for seed in range(3_000):
        random = Random(seed)
        view = random_view(random)
        tables = random_leaves(random, TABLES)
        found = replaced(view, tables)
        if found is not None:
            sides = len(next(child for child in (view, *_below(view)) if isinstance(child, Join)).inputs)
            kept[sides] += 1
            assert found == evaluate(new(view, tables), tables.stored), f"seed {seed}: {view}"
    assert min(kept[sides] for sides in (2, 3, 4)) > 100, kept


def _below(view: Relation) -> list[Relation]:
    found = [view]
    while isinstance(found[-1], (Filter, Project)):
        found.append(found[-1].child)
    return found


def chained(*shown: str) -> Project:
    """c hangs on b, and b on a."""
    conjuncts = (compose(column("x0"), " = ", column("x1")), compose(column("y1"), " = ", column("y2")))
    join = Join((scan("a", 0), scan("b", 1), scan("c", 2)), conjuncts)
    return Project(join, tuple(Named(name, column(name)) for name in shown))


def every_table_changed(rows: int | None = None) -> MemoryLeaves:
    tables = random_leaves(Random(1), TABLES)
    tables.changed, tables.rows = frozenset(TABLES), rows
    return tables


def test_the_centre_is_read_once_and_what_lies_between_it_and_a_change_twice() -> None:
    tables = every_table_changed()
    tree = hanging(chained("x0", "z2"), tables)
    assert tree is not None
    found = replacement(chained("x0", "z2"), tree, tables)
    assert found is not None
    made = [leaf for each in (found.rows, *tables.shared) for leaf in leaves(each)]
    read = Counter((leaf.table, leaf.version) for leaf in made if hasattr(leaf, "version"))
    assert read == {("a", "new"): 1, ("b", "new"): 2, ("c", "new"): 1}
    assert [[(each.name, each.shown) for each in keys.columns] for keys in found.keys] == [[("x0", "x0")]]


def test_a_column_may_be_shown_by_what_it_is_equal_to() -> None:
    tree = hanging(chained("x1", "z2"), every_table_changed())
    assert tree is not None
    assert dict(tree.shown) == {"x0": "x1"}


def test_what_the_view_does_not_show_tells_nothing() -> None:
    assert hanging(chained("z0", "z1", "z2"), every_table_changed()) is None


def test_columns_of_different_types_are_not_told_by_each_other() -> None:
    class Mixed(MemoryLeaves):
        def types(self, scan: Scan) -> dict[str, str]:
            return dict.fromkeys(TABLES[scan.table], "string" if scan.table == "a" else "int")

    tables = every_table_changed()
    mixed = Mixed(tables.stored, tables.changed, tables.growing)
    assert hanging(chained("x0", "z0", "x1"), tables) is not None
    assert hanging(chained("x0", "z0", "x1"), mixed) is None


def test_more_keys_than_are_broadcast_are_too_many() -> None:
    assert hanging(chained("x0"), every_table_changed(10_000_000)) is not None
    assert hanging(chained("x0"), every_table_changed(10_000_000_000)) is None


def test_an_outer_join_is_kept_by_its_delta() -> None:
    outer = OuterJoin(scan("a", 0), scan("b", 1), (compose(column("x0"), " = ", column("x1")),))
    assert hanging(Project(outer, (Named("x0", column("x0")),)), every_table_changed()) is None
