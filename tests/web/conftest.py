"""The console in a real browser: a server in a thread, Debian's Chromium, and a watch on what it does."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from chromium import MISSING, find
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from viewkeeper.define.sources import SourceDefinition
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.survey import Survey
from viewkeeper.testing.ledgers import PaperWarehouse
from viewkeeper.web import create_app
from viewkeeper.web.serving import Listen, bound

SCREENSHOTS = Path(__file__).parent / "screenshots"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = find()
    if executable is None:
        pytest.fail(MISSING)
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox"] if root else []
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PaperWarehouse]:
    """A warehouse with a history, a source that does not answer, and an attempt that failed. On the last day
    so many sales come that a view is recomputed."""
    file = tmp_path_factory.mktemp("paper") / "ledger.db"
    with Ledger.open(sqlite_url(file)) as ledger:
        made = PaperWarehouse(ledger)
        made.define()
        options = {
            "host": "127.0.0.1",
            "port": "1",
            "database": "crm",
            "user": "vk",
            "password_env": "CRM_PW",
        }
        crm = SourceDefinition(
            "crm", "postgres", tuple(options.items()), ("customers",), (("capture", "vk"),)
        )
        made.declare(crm, "0/1")
        for day in range(8):
            made.pass_day(sales=500_000 if day == 7 else 50_000, moved_stores=day % 3)
            made.refresh(violations={"positive_quantity": 3} if day == 6 else None)
            if day == 5:
                made.fail("[VK-REFRESH] lake.default.sales_in_full: a sum overflows\nHint: Widen the column.")
    return file, made


@pytest.fixture
def paper(original: tuple[Path, PaperWarehouse], tmp_path: Path) -> Iterator[PaperWarehouse]:
    file, made = original
    shutil.copy(file, tmp_path / "ledger.db")
    with Ledger.open(sqlite_url(tmp_path / "ledger.db")) as ledger:
        yield PaperWarehouse(ledger, views=dict(made.views), versions=dict(made.versions))


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serves a console on a free port; its address."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(survey: Survey, **options: Any) -> str:
        listening = bound(Listen("127.0.0.1", 0))
        app = create_app(survey, **options)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        running.append((server, thread))
        deadline = time.monotonic() + 20
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(10)


@dataclass
class Visit:
    """A browser that looks at the console, and what went wrong while it did."""

    page: Page
    address: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def watch(self) -> Visit:
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda asked: self._note(asked.url))
        return self

    def _note(self, url: str) -> None:
        if not url.startswith((f"{self.address}/", "data:")):
            self.elsewhere.append(url)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.address}{path}")
        return self.page

    def shoot(self, name: str) -> None:
        """Keep a picture."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Opens a browser window on a console; nothing may go wrong in it, and nothing be asked of others."""
    opened: list[tuple[BrowserContext, Visit]] = []

    def make(address: str, *, width: int = 1400, scheme: str = "light") -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        made = Visit(context.new_page(), address).watch()
        opened.append((context, made))
        return made

    yield make
    for context, made in opened:
        context.close()
        assert made.errors == []
        assert made.elsewhere == []
