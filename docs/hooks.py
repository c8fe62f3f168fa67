"""Takes the measured results into the site: pages link to them where they are in the repository."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
_LINK = re.compile(r"\]\(((?:\.\./)*)\.\./benchmarks/results(/[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Each table is a page, with the drawing beside it, if there is one."""
    listed = []
    for path in sorted(RESULTS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        drawing = path.with_suffix(".svg")
        if drawing.is_file():
            text += f"\n![{title}]({drawing.name})\n"
        files.append(File.generated(config, f"measured/{path.name}", content=text))
        listed.append(f"- [{title}]({path.name})")
    for path in sorted(RESULTS.glob("*.svg")):
        files.append(File.generated(config, f"measured/{path.name}", abs_src_path=str(path)))
    head = "# Measured\n\nWhat the programs in `benchmarks/` found, with the machine and the versions. "
    head += "`make bench-report` sets it beside the findings of the papers.\n\n"
    files.append(File.generated(config, "measured/index.md", content=head + "\n".join(listed) + "\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to the results lead to their pages."""
    return _LINK.sub(lambda found: f"]({found[1]}measured{found[2] or '/index.md'})", markdown)

