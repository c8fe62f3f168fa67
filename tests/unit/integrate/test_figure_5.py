"""The paper's example (Section 5.2, Figure 5), step by step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from viewkeeper.cli.main import app
from viewkeeper.integrate.algorithms import ALGORITHMS
from viewkeeper.integrate.bags import Bag, Row
from viewkeeper.integrate.levels import Level
from viewkeeper.integrate.messages import Answer, Compensation, Query, Update
from viewkeeper.integrate.simulate.checker import level_of
from viewkeeper.integrate.simulate.history import History
from viewkeeper.integrate.simulate.lattice import evaluate
from viewkeeper.integrate.simulate.simulation import simulate, simulate_algorithm
from viewkeeper.integrate.simulate.worlds import figure_5
from viewkeeper.integrate.sweep import Sweep

WORLD = figure_5()
COLUMNS = ("A", "B", "D", "F")


def in_order(bag: Bag) -> dict[Row, int]:
    """As the paper writes rows."""
    return dict(bag.arranged(tuple(column for column in COLUMNS if column in bag.columns)).rows)


def states(history: History) -> list[dict[Row, int]]:
    found = [evaluate(history.view, history.contents)]
    for change in history.changes:
        found.append(found[-1].plus(change.rows))
    return [dict(state.rows) for state in found]


def test_the_view_goes_through_the_states_of_the_figure() -> None:
    history = simulate_algorithm("sweep", WORLD)
    assert states(history) == [{(7, 8): 2}, {(5, 6): 2, (7, 8): 2}, {(5, 6): 2}, {(5, 6): 1}]


def test_queries_answers_and_compensations() -> None:
    history = simulate_algorithm("sweep", WORLD)
    told: list[object] = []
    for _, event in history.events:
        match event:
            case Update():
                told.append((event.source, {name: dict(rows.rows) for name, rows in event.changes.items()}))
            case Query():
                told.append((event.number, event.relation.name, in_order(event.partial)))
            case Answer():
                told.append((event.query, in_order(event.rows)))
            case Compensation():
                told.append((event.updates, in_order(event.error)))
    assert told == [
        ("Source 2", {"R2": {(3, 5): 1}}),
        (1, "R1", {(3, 5): 1}),
        ("Source 3", {"R3": {(7, 8): -1}}),
        ("Source 1", {"R1": {(2, 3): -1}}),
        (1, {(1, 3, 5): 1}),
        ((("Source 1", 1),), {(2, 3, 5): -1}),
        (2, "R3", {(1, 3, 5): 1, (2, 3, 5): 1}),
        (2, {(1, 3, 5, 6): 1, (2, 3, 5, 6): 1}),
        ((("Source 3", 1),), {}),
        (3, "R2", {(7, 8): -1}),
        (3, {(3, 7, 8): -1}),
        (4, "R1", {(3, 7, 8): -1}),
        (4, {(1, 3, 7, 8): -1}),
        # The paper prints a minus: −(2,3) ⋈ −(3,7,8) is +(2,3,7,8), which is then subtracted.
        ((("Source 1", 1),), {(2, 3, 7, 8): 1}),
        (5, "R2", {(2, 3): -1}),
        (5, {(2, 3, 7): -1, (2, 3, 5): -1}),
        (6, "R3", {(2, 3, 7): -1, (2, 3, 5): -1}),
        (6, {(2, 3, 5, 6): -1}),
    ]


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("pipeline", [1, 2, 3])
@pytest.mark.parametrize("parallel", [True, False])
def test_all_options_lead_through_the_same_states(parallel: bool, pipeline: int, merge: bool) -> None:
    machine = Sweep(WORLD.view, parallel=parallel, pipeline=pipeline, merge=merge)
    history = simulate(WORLD, machine)
    assert states(history) == [{(7, 8): 2}, {(5, 6): 2, (7, 8): 2}, {(5, 6): 2}, {(5, 6): 1}]
    assert history.queries == 3 * 2


@pytest.mark.parametrize(("name", "level"), [(name, each.promises) for name, each in ALGORITHMS.items()])
def test_every_algorithm_keeps_its_promise(name: str, level: Level) -> None:
    needs = ALGORITHMS[name]
    world = figure_5(keyed=needs.needs_keys, one_source=needs.needs_one_source)
    assert level_of(simulate_algorithm(name, world)) is level


def test_the_trace() -> None:
    shown = CliRunner().invoke(app, ["sweep", "trace"])
    assert shown.exit_code == 0
    for line in (
        "query 2 to Source 3: {+(1,3,5), +(2,3,5)} ⋈ R3",
        "which has Source 1 #1 too: {−(3,7,8)} ⋈ {−(2,3)} = {+(2,3,7,8)}",
        "without that: {−(1,3,7,8), −(2,3,7,8)}",
        "sweep: 3 updates, 6 queries with 8 rows, 3 changes of the view, which was complete.",
    ):
        assert line in shown.output
    views = [line.strip() for line in shown.output.splitlines() if line.strip().startswith("V: ")]
    assert views == ["V: (7,8)[2]", "V: (5,6)[2], (7,8)[2]", "V: (5,6)[2]", "V: (5,6)[1]"]


def test_the_trace_in_the_documentation_is_the_real_one() -> None:
    page = Path(__file__).parents[3] / "docs" / "sweep.md"
    assert CliRunner().invoke(app, ["sweep", "trace"]).output in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_trace_of_a_random_run(name: str) -> None:
    command = ["sweep", "trace", "--algorithm", name, "--seed", "4", "--sources", "4", "--updates", "8"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0
    assert f"\n{name}: " in shown.output
    machine_readable = CliRunner().invoke(app, [*command, "--json"])
    assert machine_readable.exit_code == 0
    assert f'"algorithm": "{name}"' in machine_readable.output


def test_the_trace_of_an_algorithm_that_there_is_not() -> None:
    shown = CliRunner().invoke(app, ["sweep", "trace", "--algorithm", "broom"])
    assert shown.exit_code == 1
    assert "VK-NOT-FOUND" in shown.output


def test_the_trace_needs_no_spark() -> None:
    code = (
        "import sys\nfrom viewkeeper.cli.main import app\n"
        "app(['sweep', 'trace'], standalone_mode=False)\n"
        "print([m for m in ('pyspark', 'sqlglot', 'sqlalchemy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
