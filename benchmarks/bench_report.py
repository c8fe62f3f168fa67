"""One HTML file with every finding of the papers beside what was measured here: ``make bench-report``.

It needs nothing but itself: styles and drawings are in it. Verdicts are computed from the committed results.
"""

from __future__ import annotations

import argparse
import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from judging import Judged, Verdict
from papers import DELTA_PROPAGATION, SUMMARY_DELTA, SWEEP, Experiment, Finding, Paper
from papers_whips import WHIPS
from results_read import NotMeasured, Result, Results, Row, read_results, rows_of

ROOT = Path(__file__).parents[1]
PAPERS = (WHIPS, SWEEP, SUMMARY_DELTA, DELTA_PROPAGATION)

_STYLE = """
:root { color-scheme: light dark; --line: #8888; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0; font-size: 13px; }
th, td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left; vertical-align: top; }
th { background: var(--soft); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { background: #fff; max-width: 100%; border-radius: 6px; }
.verdict { white-space: nowrap; font-weight: 600; } .small { color: #777; font-size: 13px; }
.holds { color: #15803d; } .in-part { color: #b45309; } .not { color: #b91c1c; }
.not-measured { color: #777; }
"""
_MARKS = {
    Verdict.HOLDS: ("holds", "✓"),
    Verdict.IN_PART: ("in-part", "~"),
    Verdict.NOT: ("not", "✗"),
    Verdict.NOT_MEASURED: ("not-measured", "…"),
}


def report(results: Results) -> str:
    """The whole page."""
    judged = {finding: judge(finding, results) for finding in _findings()}
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>viewkeeper: the papers, and what was measured</title><style>{_STYLE}</style></head><body>",
        "<h1>The papers, and what was measured</h1>",
        "<p>Every table of the four papers, and what their texts find in each experiment, beside our "
        "results. "
        "A verdict is computed from the tables shown here. <em>Holds in part</em>: in some of the cases.</p>",
        _overview(judged),
        *(_paper(paper, results, judged) for paper in PAPERS),
        "<h2>Beyond the papers</h2>",
        *(_result(result) for result in _others(results)),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def judge(finding: Finding, results: Results) -> Judged:
    """Its verdict; what has no results has none yet."""
    try:
        return finding.judge(results)
    except NotMeasured as missing:
        return Judged(Verdict.NOT_MEASURED, f"there is no benchmarks/results/{missing}.md")


def _findings() -> Iterator[Finding]:
    for paper in PAPERS:
        for experiment in paper.experiments:
            yield from experiment.findings


def _others(results: Results) -> list[Result]:
    """Results that belong to no experiment of a paper; those of another scale are shown here, too."""
    shown = {name for paper in PAPERS for each in paper.experiments for name in each.results}
    return [result for name, result in results.found.items() if name not in shown]


def _overview(judged: dict[Finding, Judged]) -> str:
    rows = []
    for paper in PAPERS:
        found = [judged[finding] for each in paper.experiments for finding in each.findings]
        counts = Counter(each.verdict for each in found)
        rows.append({"paper": paper.title, **{verdict.value: str(counts[verdict]) for verdict in Verdict}})
    return _table(rows)


def _paper(paper: Paper, results: Results, judged: dict[Finding, Judged]) -> str:
    parts = [f"<h2>{escape(paper.title)}</h2><p class='small'>{escape(paper.cited)}</p>"]
    parts += [_experiment(each, results, judged) for each in paper.experiments]
    return "\n".join(parts)


def _experiment(experiment: Experiment, results: Results, judged: dict[Finding, Judged]) -> str:
    parts = [f"<h3>{escape(experiment.title)}</h3><p>{escape(experiment.setup)}</p>"]
    if experiment.table:
        parts.append(_table(rows_of(experiment.table)))
    rows = "".join(_finding(each, judged[each]) for each in experiment.findings)
    if not rows:
        return "\n".join(parts)
    head = "<tr><th>the paper finds</th><th>where</th><th>here</th><th>verdict</th></tr>"
    parts.append(f"<table>{head}{rows}</table>")
    parts += [_result(results.found[name]) for name in experiment.results if name in results.found]
    return "\n".join(parts)


def _finding(finding: Finding, judged: Judged) -> str:
    style, mark = _MARKS[judged.verdict]
    said = f"“{escape(finding.says)}”" if finding.quoted else escape(finding.says)
    return (
        f"<tr><td>{said}</td><td>{escape(finding.where)}</td>"
        f"<td>{escape(judged.ours)}</td><td class='verdict {style}'>{mark} {judged.verdict.value}</td></tr>"
    )


def _result(result: Result) -> str:
    """A table of ours, folded, with its drawing."""
    drawing = ""
    if result.drawing is not None:
        data = base64.b64encode(result.drawing.read_bytes()).decode()
        drawing = f"<p><img alt='{escape(result.title)}' src='data:image/svg+xml;base64,{data}'></p>"
    remarks = "".join(_remark(each) for each in result.remarks)
    return (
        f"<details data-result='{escape(result.name)}'><summary>{escape(result.title)} "
        f"<span class='small'>({escape(result.name)})</span></summary>"
        f"<p class='small'>{escape(result.conditions)}</p>{_table(result.rows)}{drawing}{remarks}</details>"
    )


def _remark(text: str) -> str:
    return _table(rows_of(text)) if text.startswith("|") else f"<p>{escape(text)}</p>"


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(column)}</th>" for column in rows[0])
    body = "".join(f"<tr>{_cells(row.values())}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cells(cells: Iterable[str]) -> str:
    return "".join(
        f"<td{' class=number' if cell[:1].isdigit() else ''}>{escape(cell)}</td>" for cell in cells
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench-report.html")
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(report(read_results(given.results)), encoding="utf-8")
    print(f"written: {given.output}")


if __name__ == "__main__":
    main()
