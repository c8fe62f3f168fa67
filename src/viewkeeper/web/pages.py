"""The pages: each asks the survey once, and gives what it found to a template."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from viewkeeper.errors import LedgerError, NotFoundError, ViewkeeperError
from viewkeeper.ledger.surveys import EpochSummary
from viewkeeper.survey import Survey, pictures
from viewkeeper.survey.survey import labels_of
from viewkeeper.web.access import COOKIE, Access
from viewkeeper.web.doing import Actions, Jobs, Pausing, Rows
from viewkeeper.web.errors import WebError
from viewkeeper.web.feed import Feed
from viewkeeper.web.formatting import chart_data, drawn, environment, told_sql, view_url
from viewkeeper.web.guard import safe_next

logger = logging.getLogger(__name__)

PREVIEW_ROWS = 50
SQL_ROWS = 500
SQL_SECONDS = 30.0
_PAGE = 50
_LARGEST = 2**63 - 1
_DIGITS = 20
_BODY = 64 * 1024


@dataclass(frozen=True, slots=True)
class Leave:
    """What may be done: nothing, unless it is said."""

    actions: bool = False
    """Refresh, verify, pause and resume, by those who have the token."""
    preview: bool = False
    """Show rows of views to all who see the pages."""
    sql: bool = False
    """Run a SELECT, by those who have the token."""


ONLY_READING = Leave()


@dataclass(frozen=True, slots=True)
class Console:
    """All that pages are made of."""

    survey: Survey
    feed: Feed
    access: Access
    jobs: Jobs
    leave: Leave
    actions: Actions | None
    pausing: Pausing | None
    title: str


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: whether they have shown the token, and what their forms must carry."""

    session: str | None
    bearer: bool
    word: str

    @property
    def known(self) -> bool:
        return self.session is not None or self.bearer


class Pages:
    """The pages of one console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._templates = environment()

    def routes(self) -> list[Route]:
        get, post = ["GET"], ["POST"]
        return [
            Route("/", self.graph, methods=get),
            Route("/views/{name:path}/rows", self.rows, methods=get),
            Route("/views/{name:path}/do", self.do, methods=post),
            Route("/views/{name:path}", self.view, methods=get),
            Route("/epochs", self.epochs, methods=get),
            Route("/epochs/{number}", self.epoch, methods=get),
            Route("/sources", self.sources, methods=get),
            Route("/lattice", self.lattice, methods=get),
            Route("/trees", self.trees, methods=get),
            Route("/sql", self.sql, methods=get),
            Route("/sql", self.run_sql, methods=post),
            Route("/do", self.do, methods=post),
            Route("/login", self.login, methods=get),
            Route("/login", self.log_in, methods=post),
            Route("/logout", self.log_out, methods=post),
        ]

    # Reading.

    def graph(self, request: Request) -> Response:
        whole = self._console.survey.whole()
        picture = drawn(pictures.draw_whole(whole, view_url, "/sources")) if whole.views else None
        return self._page(request, "graph", whole=whole, picture=picture, jobs=self._console.jobs.latest())

    def view(self, request: Request) -> Response:
        survey = self._console.survey
        page = survey.view(request.path_params["name"])
        stored = page.plan
        return self._page(
            request,
            "view",
            page=page,
            query=told_sql(page.definition.query),
            around=drawn(pictures.draw_around(survey.whole(), page.facts.name, view_url, "/sources")),
            steps=drawn(pictures.draw_steps(stored) or "") if stored else None,
            deltas=[drawn(svg) for svg in pictures.draw_deltas(stored)] if stored else [],
            chart=chart_data(page.history),
            jobs=self._console.jobs.latest(page.facts.name),
            paused=self._is_paused(page.facts.name),
            sees_rows=self._sees_rows(self._visitor(request)),
        )

    def _is_paused(self, view: str) -> bool:
        return self._console.pausing is not None and view in self._console.pausing.paused()

    def epochs(self, request: Request) -> Response:
        page = self._console.survey.epochs(_number(request.query_params.get("before")), _PAGE)
        longest = max((each.compute_seconds + each.install_seconds for each in page.epochs), default=0.0)
        return self._page(request, "epochs", page=page, longest=longest or 1.0, is_epoch=_is_epoch)

    def epoch(self, request: Request) -> Response:
        number = _number(request.path_params["number"])
        if number is None:
            raise HTTPException(404)
        number = min(number, _LARGEST - 1)
        survey = self._console.survey
        failure = survey.failure(number)
        if failure is not None:
            return self._page(request, "failure", failure=failure)
        facts = survey.epoch(number)
        labels = labels_of([each.view for each in facts.record.views])
        picture = drawn(pictures.draw_epoch(facts.record, labels, view_url))
        return self._page(request, "epoch", facts=facts, labels=labels, picture=picture)

    async def sources(self, request: Request) -> Response:
        survey = self._console.survey
        asked = "ask" in request.query_params
        if asked:
            await run_in_threadpool(survey.ask_sources)
        found = await run_in_threadpool(survey.sources)
        return self._page(request, "sources", sources=found, asked=asked)

    def lattice(self, request: Request) -> Response:
        facts = self._console.survey.lattice()
        has_any = bool(facts.lattice.lattice.order)
        picture = drawn(pictures.draw_lattice_of(facts, view_url)) if has_any else None
        return self._page(request, "lattice", facts=facts, picture=picture)

    def trees(self, request: Request) -> Response:
        joined = [each for each in self._console.survey.plans() if each.plan.propagations]
        found = [(each, [drawn(svg) for svg in pictures.draw_deltas(each)]) for each in joined]
        return self._page(request, "trees", trees=found)

    async def events(self, request: Request) -> Response:
        return StreamingResponse(
            self._console.feed.listen(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    # Rows, which need Spark.

    def rows(self, request: Request) -> Response:
        name = request.path_params["name"]
        self._console.survey.view(name)  # an unknown view is told of before Spark is started
        if not self._sees_rows(self._visitor(request)):
            raise WebError("rows are not shown here", code="VK-WEB-LEAVE", hint="Start with --preview.")
        assert self._console.actions is not None
        try:
            found: Rows | None = self._console.actions.preview(name, PREVIEW_ROWS)
            error = None
        except ViewkeeperError as problem:
            found, error = None, problem
        return self._page(request, "rows", name=name, found=found, error=error)

    def _sees_rows(self, visitor: Visitor) -> bool:
        leave = self._console.leave
        return self._console.actions is not None and (leave.preview or (leave.actions and visitor.known))

    def sql(self, request: Request) -> Response:
        return self._page(request, "sql", text="", found=None, error=None, limits=(SQL_ROWS, SQL_SECONDS))

    async def run_sql(self, request: Request) -> Response:
        form = await self._form(request)
        if not self._console.leave.sql or self._console.actions is None:
            raise WebError("SQL is not run here", code="VK-WEB-LEAVE", hint="Start with --allow-sql.")
        text = form.get("sql", "")
        found: Rows | None = None
        error: ViewkeeperError | None = None
        try:
            found = await run_in_threadpool(self._console.actions.query, text, SQL_ROWS, SQL_SECONDS)
        except ViewkeeperError as problem:
            error = problem
        limits = (SQL_ROWS, SQL_SECONDS)
        return await run_in_threadpool(
            self._page, request, "sql", text=text, found=found, error=error, limits=limits
        )

    # Doing.

    async def do(self, request: Request) -> Response:
        form = await self._form(request)
        actions, pausing = self._console.actions, self._console.pausing
        if not self._console.leave.actions or actions is None:
            raise WebError("this console only reads", code="VK-WEB-LEAVE", hint="Start with --allow-actions.")
        name: str | None = request.path_params.get("name")
        if name is not None:
            await run_in_threadpool(self._console.survey.view, name)  # or an error
        match form.get("what"), name:
            case "refresh", _:
                names = [] if name is None else [name]
                self._start("refresh", name, lambda: actions.refresh(names, None))
            case "full refresh", str():
                self._start("full refresh", name, lambda: actions.refresh([name], "full"))
            case "verify", str():
                self._start("verify", name, lambda: str(actions.verify(name)))
            case "pause", str() if pausing is not None:
                await run_in_threadpool(pausing.pause, name)
            case "resume", str() if pausing is not None:
                await run_in_threadpool(pausing.resume, name)
            case _:
                raise WebError("that cannot be done here", code="VK-WEB-ACTION")
        return RedirectResponse("/" if name is None else view_url(name), 303)

    def _start(self, what: str, view: str | None, work: Callable[[], str]) -> None:
        self._console.jobs.start(what, view, work)
        self._console.feed.changed()

    # Coming and going.

    def login(self, request: Request) -> Response:
        return self._page(request, "login", next=request.query_params.get("next", "/"), wrong=False)

    async def log_in(self, request: Request) -> Response:
        form = await _read_form(request)
        session = self._console.access.open_session(form.get("token", ""))
        if session is None:
            await asyncio.sleep(0.5)  # a guess a time
            wrong = self._page(request, "login", next=form.get("next", "/"), wrong=True)
            wrong.status_code = 403
            return wrong
        answer = RedirectResponse(safe_next(form.get("next", "/")), 303)
        answer.set_cookie(
            COOKIE, session, httponly=True, samesite="strict", secure=request.url.scheme == "https", path="/"
        )
        return answer

    async def log_out(self, request: Request) -> Response:
        await self._form(request)
        session = request.cookies.get(COOKIE)
        if session is not None:
            self._console.access.close_session(session)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    # What goes wrong.

    def not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        missing = "There is no such page." if status == 404 else "That cannot be asked so."
        return self._error(request, status, "VK-WEB-NOT-FOUND", missing, "The pages are linked above.")

    def failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, ViewkeeperError)
        if isinstance(error, NotFoundError) or error.code == "VK-UNKNOWN-EPOCH":
            return self._error(request, 404, error.code, error.message, error.hint)
        if isinstance(error, LedgerError):
            logger.warning("%s", error)  # it names the ledger's address, which is nobody's business here
            said = (
                "The ledger cannot be read now. What was published is safe; this page comes back by itself."
            )
            return self._error(request, 503, error.code, said, "The terminal of the console says more.")
        status = 403 if isinstance(error, WebError) else 500
        return self._error(request, status, error.code, error.message, error.hint)

    def broken(self, request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        said = "Something went wrong that should not. The terminal of the console says where."
        return self._error(request, 500, "VK-INTERNAL", said, None)

    def _error(self, request: Request, status: int, code: str, message: str, hint: str | None) -> Response:
        page = self._page(request, "error", status=status, code=code, message=message, hint=hint)
        page.status_code = status
        return page

    # All of them.

    def _page(self, request: Request, template: str, /, **content: Any) -> Response:
        console, visitor = self._console, self._visitor(request)
        made = self._templates.get_template(f"{template}.html").render(
            console=console, visitor=visitor, path=request.url.path, told_sql=told_sql, **content
        )
        return HTMLResponse(made)

    def _visitor(self, request: Request) -> Visitor:
        access, session = self._console.access, request.cookies.get(COOKIE)
        own = session if access.is_session(session) else None
        word = access.form_word(own) if own is not None else ""
        return Visitor(own, access.is_bearer(request.headers.get("authorization")), word)

    async def _form(self, request: Request) -> dict[str, str]:
        """What a form says, if it comes from somebody who has shown the token, and from a page of theirs."""
        form, visitor = await _read_form(request), self._visitor(request)
        if visitor.bearer:
            return form
        if visitor.session is None:
            raise WebError("this needs the token", code="VK-WEB-TOKEN", hint="Log in first.")
        if not self._console.access.is_form_word(visitor.session, form.get("word", "")):
            raise WebError(
                "this form is not ours, or is old", code="VK-WEB-FORM", hint="Load the page again."
            )
        return form


async def _read_form(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY:
            raise WebError("that is too long", code="VK-WEB-FORM")
    return {key: values[-1] for key, values in parse_qs(body.decode("utf-8", "replace")).items()}


def _number(text: str | None) -> int | None:
    """``None`` if it is none. Python reads no number of thousands of digits; no id has more than these."""
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return min(int(text.lstrip("0")[:_DIGITS] or "0"), _LARGEST)


def _is_epoch(entry: object) -> bool:
    return isinstance(entry, EpochSummary)
