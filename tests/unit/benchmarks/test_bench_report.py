"""The report on the benchmarks: everything that was measured is in it, and nothing from elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import bench_report  # noqa: E402
from judging import Verdict  # noqa: E402
from results_read import read_results  # noqa: E402

RESULTS = BENCHMARKS / "results"
FINDINGS = list(bench_report._findings())


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.results: list[str] = []
        self.loaded: list[str] = []
        self.drawings = 0
        self.verdicts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("data-result"):
            self.results.append(given["data-result"] or "")
        self.drawings += tag == "img"
        self.loaded += [value or "" for key, value in attrs if key in ("src", "href", "action", "data")]
        if tag == "td" and "verdict" in (given.get("class") or ""):
            self.verdicts.append(given["class"] or "")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("report") / "nested" / "report.html"
    command = [sys.executable, str(BENCHMARKS / "bench_report.py"), "--output", str(target)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return target.read_text(encoding="utf-8")


def test_every_result_is_shown_once(text: str) -> None:
    page = Page(text)
    assert sorted(page.results) == sorted(path.stem for path in RESULTS.glob("*.md"))
    assert page.drawings == len(list(RESULTS.glob("*.svg")))


def test_nothing_is_loaded_from_elsewhere(text: str) -> None:
    loaded = Page(text).loaded
    assert loaded
    assert all(address.startswith("data:image/svg+xml;base64,") for address in loaded)
    assert "@import" not in text and "url(" not in text and "<script" not in text and "http" not in text


def test_every_finding_has_a_verdict(text: str) -> None:
    assert len(Page(text).verdicts) == len(FINDINGS) > 50
    unmeasured = sum(verdict.endswith("not-measured") for verdict in Page(text).verdicts)
    missing = {
        name
        for paper in bench_report.PAPERS
        for each in paper.experiments
        for name in each.results
        if not (RESULTS / f"{name}.md").is_file()
    }
    assert bool(unmeasured) == bool(missing)


def test_without_results_only_what_is_computed_or_tested_is_judged(tmp_path: Path) -> None:
    nothing = read_results(tmp_path)
    judged = [bench_report.judge(finding, nothing) for finding in FINDINGS]
    assert sum(each.verdict is Verdict.NOT_MEASURED for each in judged) > 40
    assert {each.verdict for each in judged} == {Verdict.NOT_MEASURED, Verdict.HOLDS}
    for each in judged:
        if "tests/" in each.ours:
            named = each.ours[each.ours.index("tests/") :].rstrip(")")
            assert (BENCHMARKS.parent / named).is_file(), named


def test_a_verdict_follows_the_figures(tmp_path: Path) -> None:
    (finding,) = (each for each in FINDINGS if each.says.startswith("and 80 % compared"))
    for path in RESULTS.glob("delta_propagation-*.md"):
        shutil.copy(path, tmp_path)
    assert bench_report.judge(finding, read_results(tmp_path)).verdict is Verdict.NOT
    changed = tmp_path / "delta_propagation-sizes.md"
    figures = changed.read_text(encoding="utf-8")
    changed.write_text(figures.replace("| 12.24 |", "| 122.4 |"), encoding="utf-8")
    assert bench_report.judge(finding, read_results(tmp_path)).verdict is Verdict.IN_PART


def test_the_figures_of_whips_are_judged_by_the_columns_that_they_will_have(tmp_path: Path) -> None:
    columns = [
        *(
            "update ratio %",
            "scale",
            "one MERGE",
            "delete, insert",
            "KEYINSTALL",
            "GENINSTALL by hash",
            "DUP",
        ),
        *("CNT", "LO_1, DUP", "LO_1, CNT", "FULLRECOMP", "SDCURSOR", "SDBATCH", "SDOVERWRITE", "kept sorted"),
        *("rebuilt afterwards", "ratio V_SFWG", "ratio V_SFW"),
    ]
    source = (BENCHMARKS / "whips.py").read_text(encoding="utf-8")
    assert all(column in source or column.startswith("LO_1") for column in columns)
    lines = [" | ".join(columns), " | ".join("---" for _ in columns), " | ".join("1" for _ in columns)]
    table = "\n".join(f"| {line} |" for line in [*lines, lines[-1]])
    for experiment in bench_report.WHIPS.experiments:
        for name in experiment.results:
            (tmp_path / f"{name}.md").write_text(f"# {name}\n\nhere\n\n{table}\n", encoding="utf-8")
    results = read_results(tmp_path)
    for experiment in bench_report.WHIPS.experiments:
        for finding in experiment.findings:
            assert bench_report.judge(finding, results).verdict is not Verdict.NOT_MEASURED
