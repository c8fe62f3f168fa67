"""The site is built without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"(?ms)^```.*?^```|`[^`\n]*`")
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Loads(HTMLParser):
    """What a page loads by itself, and the pictures that nobody describes."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.undescribed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(LOADING.get(tag, "")) or ""
        if address and given.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(address)
        if tag == "img" and not given.get("alt"):
            self.undescribed.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_loads_from_the_site_alone(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) > 40
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert loads.addresses
        assert not loads.undescribed, page
        for address in loads.addresses:
            assert ":" not in address and not address.startswith("//"), f"{page}: {address}"
            assert (page.parent / address.partition("?")[0].partition("#")[0]).is_file(), f"{page}: {address}"


def test_no_page_makes_the_theme_load_from_elsewhere(site: Path) -> None:
    """It would fetch Mermaid when it finds a diagram of that kind."""
    assert not [
        page for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.stem
)
def test_links_lead_somewhere_in_the_repository_too(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", CODE.sub("", page.read_text(encoding="utf-8"))):
        if ":" not in target:
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_no_style_loads_from_elsewhere(site: Path) -> None:
    for style in site.rglob("*.css"):
        assert "@import" not in style.read_text(encoding="utf-8")
        assert "url(http" not in style.read_text(encoding="utf-8").replace('"', "")


def test_pictures_say_what_they_show() -> None:
    pictures = list((ROOT / "docs" / "pictures").glob("*.svg"))
    assert len(pictures) >= 6
    for picture in pictures:
        root = ElementTree.parse(picture).getroot()
        said = {child.tag.rpartition("}")[2]: child.text for child in root}
        assert root.get("role") == "img" and said.get("title") and said.get("desc"), picture
