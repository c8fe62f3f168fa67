"""The application: pages, static files, live news, and what others add to it.

:func:`create_app` takes what is to be shown and what may be done; nothing here opens a ledger or a port.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from viewkeeper.errors import ViewkeeperError
from viewkeeper.survey import Survey
from viewkeeper.web.access import Access
from viewkeeper.web.doing import Actions, Jobs, Pausing
from viewkeeper.web.errors import WebError
from viewkeeper.web.feed import Feed
from viewkeeper.web.guard import LOOPBACK, Guard
from viewkeeper.web.pages import ONLY_READING, Console, Leave, Pages


def create_app(
    survey: Survey,
    *,
    feed: Feed | None = None,
    actions: Actions | None = None,
    pausing: Pausing | None = None,
    leave: Leave = ONLY_READING,
    token: str | None = None,
    token_everywhere: bool = False,
    hosts: Collection[str] = (),
    extra_routes: Sequence[BaseRoute] = (),
    open_paths: Collection[str] = (),
    title: str = "viewkeeper",
) -> Starlette:
    """The console.

    ``feed``: where a refresh in this process tells what it does; without one, pages are told of what the
    ledger says. ``actions`` and ``pausing`` do what ``leave`` allows. ``token``: who has it may do that, and
    with ``token_everywhere`` only they see anything. ``hosts``: names by which the console is called besides
    loopback. ``extra_routes`` come first; of them, ``open_paths`` (probes) are answered to anybody.
    """
    if (leave.actions or leave.sql or token_everywhere) and not token:
        raise WebError(
            "a console that can do something, or that others can reach, needs a token",
            code="VK-WEB-TOKEN",
            hint="Set VIEWKEEPER_TOKEN.",
        )
    news = feed or Feed()
    news.survey = news.survey or survey
    access = Access(token, everywhere=token_everywhere)
    jobs = Jobs(news.changed)
    pages = Pages(Console(survey, news, access, jobs, leave, actions, pausing, title))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        reading = asyncio.create_task(run_in_threadpool(_read_definitions, survey))
        yield
        await reading
        jobs.close()

    routes = [
        *extra_routes,
        *pages.routes(),
        Route("/events", pages.events),
        Mount("/static", StaticFiles(packages=[("viewkeeper.web", "static")]), name="static"),
    ]
    guard = Middleware(
        Guard, access, LOOPBACK | frozenset(name.lower() for name in hosts), frozenset(open_paths)
    )
    return Starlette(
        routes=routes,
        middleware=[guard],
        exception_handlers={
            404: pages.not_found,
            405: pages.not_found,
            ViewkeeperError: pages.failed,
            Exception: pages.broken,
        },
        lifespan=lifespan,
    )


def _read_definitions(survey: Survey) -> None:
    """So that the first page does not have to wait for it. Of a ledger that is away, the page tells."""
    with suppress(ViewkeeperError):
        survey.whole()
