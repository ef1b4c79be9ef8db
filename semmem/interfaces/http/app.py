"""The application: every route of the table over one Semmem, and what a server says of itself."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match

from semmem import __version__
from semmem.client.audit import note_refused
from semmem.client.pages import bounded_page
from semmem.client.routes import REFUSED, ROUTES, Route, refusal
from semmem.client.values import plan_of
from semmem.interfaces.http.answers import LINES, Lines, answer_of, entity_tag, with_warnings
from semmem.interfaces.http.arguments import arguments_of, read_arguments, right_of, spread
from semmem.interfaces.http.documents import docs_page
from semmem.interfaces.http.explorer import add_pages
from semmem.interfaces.http.guard import KEY, App, Guard, Guarded, Receive, Scope, Send
from semmem.interfaces.http.keys import Key, KeySet, asked_with, authorise, principal
from semmem.interfaces.http.limits import Limits, Rates, Workers
from semmem.interfaces.http.metrics import Metrics, traced
from semmem.interfaces.http.problems import MEDIA_TYPE, as_bytes, headers_of, problem, status_of
from semmem.interfaces.http.refusals import Refusals
from semmem.interfaces.http.runs import Runs, add_runs
from semmem.interfaces.http.schemas import PROBLEMS, components, described
from semmem.interfaces.http.sent_once import AtWork, Once, answered_once, id_for, sent_once
from semmem.interfaces.http.sessions import Sessions
from semmem.interfaces.http.streams import FOREVER, Items, Progress, Reports, wants_lines
from semmem.model.errors import (
    AccessDenied,
    Conflict,
    InvalidInput,
    LocalOnly,
    NotFound,
    SemmemError,
    StoreClosed,
)
from semmem.model.serialization import plain
from semmem.model.types import IngestReport
from semmem.write.items import MadeId
from semmem.write.screening import noted_of
from semmem.write.sync import ImportReport

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.interfaces.http.tokens import Tokens

__all__ = ["OPEN", "Service", "application"]

OPEN = ("/", "/docs", "/healthz", "/readyz", "/openapi.json", "/page/")
"""Paths that need no key: they say nothing of what is stored."""

_log = logging.getLogger("semmem.http")
_PAGE_BYTES = 16 * 2**20
_TAG = re.compile(r'"(\d{1,9})(-[0-9a-f]{16})?"')
_TAGS = re.compile(r'(?:W/)?"[^"]*"')


class Service:
    """What the routes of one server share. ``stopping`` says whether it takes no more work."""

    def __init__(
        self,
        mem: Semmem,
        *,
        keys: KeySet,
        limits: Limits | None = None,
        stopping: Callable[[], bool] = lambda: False,
        grace_s: float = 10.0,
        sessions: Sessions | None = None,
        runs: Runs | None = None,
        rates: Rates | None = None,
    ) -> None:
        self.mem = mem
        self.runs = runs
        self.sessions = sessions
        self.grace_s = grace_s
        self.stopped_at: float | None = None
        """When it began to stop, on the monotonic clock."""
        self.ending_streams = threading.Event()
        self.keys = keys
        self.limits = limits or Limits()
        self.stopping = stopping
        self.workers = Workers(self.limits)
        self.rates = rates or Rates(self.limits.rate, self.limits.burst)
        self.at_work = AtWork()
        self.metrics = Metrics(mem)
        self.refusals = Refusals(lambda: self.mem, "http")

    def stop(self) -> None:
        """Begin to stop: streams of items end, each with a last line that says how far it came."""
        self.stopped_at = time.monotonic()
        self.ending_streams.set()

    def close(self) -> None:
        """Wait for the verbs at work, for what is left of the grace; those that have not ended go on by themselves."""
        begun = time.monotonic() if self.stopped_at is None else self.stopped_at
        self.workers.close(max(0.0, begun + self.grace_s - time.monotonic()))
        self.refusals.write()

    async def answer(self, routes: tuple[Route, ...], request: Request) -> Response:
        """Answer one request to a path, whatever becomes of it."""
        started = time.perf_counter()
        lines = request.headers.get("content-type", "").partition(";")[0].strip().lower() == LINES
        route = next((route for route in routes if (route.form == "lines") == lines), routes[0])
        try:
            await self._admit(request)
            response = await self._answered(route, request)
        except Exception as error:  # noqa: BLE001  # each is told as a problem
            response = problem_response(error)
        response.headers["cache-control"] = "no-store"  # a browser would keep what a session read after its end
        self.metrics.answered(route.name, response.status_code, time.perf_counter() - started)
        return response

    async def _admit(self, request: Request) -> None:
        """Count the request. Raises LimitExceeded for one too many, StoreClosed where the server is stopping."""
        if self.stopping():
            raise StoreClosed("This server is stopping; send the request again after it restarts.")
        key: Key | None = request.scope[KEY]
        client = key.id if key is not None else request.client.host if request.client else "?"
        await self.rates.admit(client)

    async def _answered(self, route: Route, request: Request) -> Response:
        key: Key | None = request.scope[KEY]
        arguments = await read_arguments(route, request, self.limits, self.mem.recipe)
        if route.form == "lines":
            return await self._stream(route, request, arguments, key)
        await self._authorise(request, route, arguments, key)
        if route.lines:
            asked = partial(self._asked, request, key)
            rows = await self.workers.run(partial(asked, partial(_call, route, self.mem, arguments)))
            return Lines(rows, asked, self.workers, self.limits.seconds)
        _check(route, arguments, self)
        before = _expected(route, request, arguments)
        call = partial(self._called, route, request, arguments, key, before)
        if (text := sent_once(request) if route.right != "read" else None) is None:
            return await call()
        client = principal(key)
        where = str(arguments.get("namespace", "default"))
        content = as_bytes(plain([route.name, arguments, request.headers.getlist("if-match")]))
        once = Once.of(client, where, text, content)
        if route.name == "remember" and arguments.get("id") is None:
            arguments["id"] = MadeId(id_for(client, f"{where}\n{text}"))
        return await self.at_work.once(once, partial(call, once, FOREVER), self.limits.seconds)

    async def _authorise(self, request: Request, route: Route, arguments: dict[str, Any], key: Key | None) -> None:
        """Raise AccessDenied, which the audit notes, for what the key of a request does not allow."""
        names = _namespaces(route, arguments)
        try:
            authorise(key, right_of(route, arguments), names)
            if arguments.get("hard"):
                authorise(key, route.right, None)  # it rewrites the files of the whole store
        except AccessDenied as error:
            if self.mem.settings.audit:
                note = partial(note_refused, self.mem, route.calls.__name__, names, error)
                await self.workers.run(partial(self._asked, request, key, note))
            raise

    def _asked(self, request: Request, key: Key | None, work: Callable[[], Any]) -> Any:
        """Do work that the log and the audit name the key of."""
        with asked_with(key, "page" if _is_page(request) else "http"):
            return work()

    async def _called(
        self,
        route: Route,
        request: Request,
        arguments: dict[str, Any],
        key: Key | None,
        expected: list[int | str] | None,
        once: Once | None = None,
        seconds: float | None = None,
    ) -> Response:
        def work() -> Response:
            if expected:
                where = arguments.get("namespace", "default")
                only = len(expected) == 1
                arguments["expected_version"] = (
                    expected[0] if only else _current(self.mem, expected, arguments["id"], where)
                )
            value, warnings = noted_of(partial(_call, route, self.mem, arguments))
            if route.name in ("recall", "recall_by_url"):
                self.metrics.degraded(value.degraded)
            etags = _tags(request.headers.getlist("if-none-match"))
            if route.name == "get" and not etags.isdisjoint((entity_tag(value), "*")) and not arguments.get("reveal"):
                return Response(status_code=304, headers={"etag": entity_tag(value)})
            return with_warnings(answer_of(route, value, arguments, key), warnings)

        try:
            names = _namespaces(route, arguments)
            whole = work if once is None else partial(answered_once, self.mem, route, once, work, names)
            response: Response = await self.workers.run(partial(self._asked, request, key, whole), seconds=seconds)
            return response
        except Conflict as error:
            if expected is not None:
                error.http_status = 412  # the precondition of the request failed
            raise

    async def _stream(self, route: Route, request: Request, arguments: dict[str, Any], key: Key | None) -> Response:
        if key is not None and not key.reaches(route.right):  # before it takes a thread, and keeps it
            await self._authorise(request, route, arguments, key)
        once = sent_once(request)
        self.workers.check_streams()
        items = Items(request, self.limits, key, turns=self.workers.turns, stopping=self.ending_streams)

        def work(progress: Progress | None = None) -> Any:
            def come_so_far(report: IngestReport | ImportReport) -> None:
                items.note(report)
                if progress is not None:
                    progress(report)

            with items.working():
                own_arguments = items.arguments(route, arguments)
                names = _namespaces(route, own_arguments)
                try:
                    authorise(key, route.right, names)
                except AccessDenied as error:  # of an item that is refused the verb itself notes it
                    self._asked(request, key, partial(note_refused, self.mem, route.calls.__name__, names, error))
                    raise
                named = items.named(once and principal(key), once)
                given = {**own_arguments, "items": named, "progress": come_so_far}
                return self._asked(request, key, partial(_call, route, self.mem, given))

        if wants_lines(request):
            return Reports(work, items, self.workers)
        try:
            value, warnings = await self.workers.run_stream(partial(noted_of, work), seconds=FOREVER)
        finally:
            items.end()
            await items.read_away()
        return with_warnings(answer_of(route, value, arguments, key), warnings)

    async def ready(self) -> None:
        """Raise what keeps the store from answering."""
        if self.stopping():
            raise StoreClosed("This server is stopping.")
        await self.workers.run_probe(self.mem.settings_of, seconds=min(5.0, self.limits.seconds))


def _call(route: Route, mem: Semmem, arguments: dict[str, Any]) -> Any:
    """Call what a route calls."""
    if route.name == "list":
        return bounded_page(mem, most_bytes=_PAGE_BYTES, **arguments)
    parameters = arguments_of(route)
    loose = next((name for name, p in parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    keywords = dict(arguments)
    several = keywords.pop(loose, ()) if loose is not None else ()
    return route.calls(mem, *several, **keywords)


def _is_page(request: Request) -> bool:
    """Return whether the server's own page asks, as its browser says."""
    return request.headers.get("sec-fetch-site") == "same-origin"


def _namespaces(route: Route, arguments: dict[str, Any]) -> list[str] | None:
    """Return the namespaces that a call works in; None is the whole store."""
    parameters = arguments_of(route)
    if route.name == "export" and arguments.get("everything"):
        return None
    if "namespace" not in parameters:
        return [] if route.name in ("namespaces", "recipe") else None
    namespace = arguments.get("namespace", parameters["namespace"].default)
    if namespace is None:
        return [] if route.name.startswith("reach") else None
    return [str(one) for one in namespace] if isinstance(namespace, list) else [str(namespace)]


def _check(route: Route, arguments: dict[str, Any], service: Service) -> None:
    """Refuse settings that a server does not take from whoever may write."""
    if route.name != "configure":
        return
    changes = {name: value for name, value in arguments.items() if name != "namespace"}
    if not changes:
        raise InvalidInput('Give a setting to change, such as {"weights": {"graph": 0.5}}.')
    plan_of({name: arguments[name] for name in ("rerank", "rerank_regimes") if name in arguments}, service.mem.recipe)


def _expected(route: Route, request: Request, arguments: dict[str, Any]) -> list[int | str] | None:
    """Return the versions of which If-Match wants one: none of them is any version, None is no If-Match.

    A tag of the version alone is met by every memory of that version, a weak one (W/"3") by none (RFC 9110, 13.1.1).
    Raises Conflict where no version can be meant.
    """
    lines = request.headers.getlist("if-match")
    if not lines or route.method not in ("PATCH", "DELETE"):
        return None
    if spread(route) is None or "id" not in arguments:
        raise InvalidInput("If-Match is for PATCH of a memory alone; leave it out.")
    header = ", ".join(lines)
    if header.strip() == "*":
        return []
    tags = _TAGS.findall(header)
    if not tags or _TAGS.sub("", header).strip(" \t,"):
        raise InvalidInput('If-Match is the ETag of one version, in quotes, such as "3", or several with commas.')
    etags = [(tag, parts) for tag in tags if (parts := _TAG.fullmatch(tag))]
    if not etags:
        error = Conflict(
            'If-Match is the ETag of one version, such as "3", and no version has the one that was sent; a weak one, '
            "which begins with W/, never fits."
        )
        error.http_status = 412
        raise error
    return [tag.strip('"') if parts[2] else int(parts[1]) for tag, parts in etags]


def _current(mem: Semmem, expected: list[int | str], id: str, namespace: Any) -> int | str:
    """Return which of the expected versions a memory has, else the first of them, which update refuses."""
    memory = mem.get(id, namespace=namespace)
    return next((one for one in expected if one in (memory.version, memory.tag)), expected[0])


def _tags(lines: list[str]) -> set[str]:
    """Return the tags of If-None-Match, which weak ones fit too; "*" is any."""
    return {tag.strip().removeprefix("W/") for line in lines for tag in line.split(",")}


def problem_response(error: Exception) -> Response:
    """Return an error as a problem; what is no error of semmem goes to the log."""
    if isinstance(error, HTTPException):
        error = _by_status(error)
    elif not isinstance(error, SemmemError):
        _log.error("A request failed.", exc_info=error)
    return Response(as_bytes(problem(error)), status_of(error), headers_of(error), MEDIA_TYPE)


def _by_status(error: HTTPException) -> SemmemError:
    """Return what the router refused as an error of semmem, with the router's status."""
    if error.status_code == 404:
        own_error: SemmemError = NotFound(
            "There is nothing at this path; paths begin with /v1, which the URL of a store leaves out, and "
            "/openapi.json lists them."
        )
    else:
        own_error = InvalidInput("This path does not allow that method; /openapi.json lists paths and methods.")
        own_error.http_status = error.status_code
    return own_error


def application(service: Service, guard: Guard, *, wants_key: bool = False, tokens: Tokens | None = None) -> App:
    """Return the ASGI application of a service, behind a guard; see Guarded for ``wants_key`` and ``tokens``."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)  # a verb at work may wait for this loop

    app = FastAPI(
        title="semmem",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        description="Memory for AI agents: remember, recall, and see why. A key goes into Authorization: Bearer KEY.",
        telemetry={"tracing": False, "metrics": False, "logs": False},  # FastAPI's own has the URL, with the question
    )
    for (path, method), routes in _grouped():
        app.add_api_route(
            path,
            _endpoint(partial(service.answer, routes)),
            methods=[method],
            operation_id=routes[0].name,
            openapi_extra=described(routes),
            response_model=None,
            status_code=routes[0].status,
        )
    for verb in REFUSED:
        app.add_api_route(f"/v1/{verb}", _endpoint(partial(_refuse, verb)), methods=["POST"], include_in_schema=False)
    _add_state(app, service)
    add_pages(app, service.sessions)
    add_runs(app, service.runs)
    app.add_exception_handler(HTTPException, _handled)
    app.openapi = partial(_openapi, app, app.openapi)  # type: ignore[method-assign]  # FastAPI's way to add schemas
    return Guarded(
        traced(_by_raw_path(app)),
        guard,
        service.keys,
        open_paths=OPEN,
        wants_key=wants_key,
        sessions=service.sessions,
        tokens=tokens,
        refusals=service.refusals,
    )


async def _refuse(verb: str, _: Request) -> Response:
    return problem_response(LocalOnly(refusal(verb)))


async def _handled(request: Request, error: Exception) -> Response:
    response = problem_response(error)
    if response.status_code == 405:  # one route of the path was asked; others may take other methods
        routes = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
        response.headers["allow"] = ", ".join(sorted({method for one in routes for method in one.methods or ()}))
    return response


def _endpoint(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await answer(request)

    return endpoint


def _grouped() -> list[tuple[tuple[str, str], tuple[Route, ...]]]:
    """Return the routes of each path and method; the first is the one for a body that is no stream."""

    def place(route: Route) -> tuple[str, str]:
        return route.path, route.method

    return [(where, tuple(routes)) for where, routes in groupby(sorted(ROUTES, key=place), key=place)]


def _add_state(app: FastAPI, service: Service) -> None:
    """Add what a server says of itself: its API, whether it lives and can answer, and what it counted."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return docs_page(app.openapi())

    @app.get("/healthz", summary="Whether the process lives.")
    async def healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @app.get("/readyz", summary="Whether the store answers.", response_model=None)
    async def readyz() -> Response:
        try:
            await service.ready()
        except Exception as error:  # noqa: BLE001  # each is told as a problem
            return problem_response(error)
        return JSONResponse({"status": "ready"})

    @app.get(
        "/metrics",
        summary="Counters, as Prometheus reads them.",
        response_class=PlainTextResponse,
        responses=PROBLEMS,
    )
    def metrics() -> Response:  # on a thread, because it may wait for the store
        service.metrics.pending.set(service.workers.pending)
        text, media = service.metrics.as_text()
        return Response(text, media_type=media)


def _openapi(app: FastAPI, describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return FastAPI's description, with the schemas that ours refer to."""
    description = describe()
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in components().items():
        schemas.setdefault(name, schema)
    description["components"]["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key of `semmem keys add`, or a token of the identity server that this server accepts; "
            "where it has neither, no request needs one. Each operation "
            "names the right that its key must have: read, write or admin, each with those before it.",
        }
    }
    description["security"] = [{"key": ["read"]}]
    for path in ("/metrics", "/session", "/runs", "/runs/{name}/{file}"):
        for operation in description["paths"].get(path, {}).values():
            operation["security"] = [{"key": ["read"]}]
    for path in OPEN:
        for operation in description["paths"].get(path, {}).values():
            operation["security"] = []
    return description


def _by_raw_path(app: App) -> App:
    """Route by the path as it was sent: a slash in the id of a memory is %2F there, and no end of the id."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path") is not None:
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await app(scope, receive, send)

    return routed
