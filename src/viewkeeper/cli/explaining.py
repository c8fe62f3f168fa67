"""An explanation in colour: the verdict, the steps as a tree of what reads what, and their SQL."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text
from rich.tree import Tree

from viewkeeper.cli.output import Output
from viewkeeper.explain import Explanation, ToldStep, told_steps

_STYLES = {"incremental": "green", "full": "yellow", "unchanged": "dim"}


def explained(output: Output, found: Explanation) -> RenderableType:
    """For a terminal with colours a drawing, else the plain text."""
    console = output.results
    return drawn(found) if console.is_terminal and not console.no_color else str(found)


def drawn(found: Explanation) -> Group:
    """The explanation as a drawing."""
    steps = told_steps(found.plan, found.view)
    tree = Tree(Text(found.view, style="bold"), guide_style="dim")
    for line in found.head:
        tree.add(_headline(line, found))
    if steps:
        branch = tree.add(Text("steps", style="bold"))
        read = {place for step in steps for place in step.reads}
        shown: set[int] = set()
        for at in range(len(steps)):
            if at not in read:
                _grow(branch, steps, at, shown)
    sql: list[RenderableType] = []
    for at, step in enumerate(steps, 1):
        if step.sql:
            sql += [Text(f"\n{at}. {step.title}", style="cyan"), *map(_coloured, step.sql)]
    return Group(tree, *sql)


def _headline(line: str, found: Explanation) -> Text:
    """A line of the verdict, its strategy in colour."""
    text = Text(line)
    text.highlight_regex(r"^\w+(?=  )", "bold")
    for strategy, style in _STYLES.items():
        text.highlight_regex(rf"\b{strategy}\b", style)
    text.highlight_words(["incrementally"], "green")
    text.highlight_words([found.reason] if found.reason else [], "yellow")
    return text


def _grow(branch: Tree, steps: Sequence[ToldStep], at: int, shown: set[int]) -> None:
    """A step with those that it reads from below it; one that stands elsewhere already is only named."""
    if at in shown:
        branch.add(Text(f"{at + 1}. as above", style="dim"))
        return
    shown.add(at)
    below = branch.add(Text(f"{at + 1}. {steps[at].title}"))
    for part in getattr(steps[at].step, "parts", ()):
        below.add(Text(str(part), style="dim"))
    for place in steps[at].reads:
        _grow(below, steps, place, shown)


def _coloured(sql: str) -> Syntax:
    return Syntax(sql, "sql", background_color="default", word_wrap=True)
