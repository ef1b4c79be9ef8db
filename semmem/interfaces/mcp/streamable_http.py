"""The MCP server over Streamable HTTP: at an address of this machine, or elsewhere with keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecuritySettings
from sse_starlette.sse import AppStatus
from starlette.requests import Request
from starlette.responses import Response

from semmem.interfaces.http.arguments import read_body
from semmem.interfaces.http.guard import KEY, App, Guard, Guarded, Receive, Scope, Send, check_address, is_loopback
from semmem.interfaces.http.keys import Key, KeySet, ServerKeys
from semmem.interfaces.http.limits import Limits, Rates, Workers
from semmem.interfaces.http.problems import send_problem
from semmem.interfaces.http.refusals import Refusals
from semmem.interfaces.http.server import bound, own_signals, url_of, uvicorn_of
from semmem.interfaces.http.shared_rates import rates_of
from semmem.interfaces.mcp.messages import Fault, read_message
from semmem.interfaces.mcp.opening import Opening
from semmem.interfaces.mcp.server import Handlers, server_of
from semmem.model.errors import SemmemError

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.interfaces.http.tokens import Tokens

__all__ = ["PATH", "PORT", "HttpServer", "Limited"]

PATH = "/mcp"
PORT = 8766

_GRACE_S = 10.0
"""Seconds that a server which stops waits for the calls at work."""


class HttpServer:
    """An MCP server at one address, which is taken when this is made and answered by ``run``.

    Its keys are those in the store and in a file, as for the HTTP API, so the store is opened when this is made. Raises
    what opening it raises, and InvalidInput for an address that cannot be had or that others can reach without keys.
    """

    def __init__(
        self,
        opener: Callable[[], Semmem],
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
        keys: KeySet,
        guard: Guard,
        limits: Limits | None = None,
        instructions: str | None = None,
        tokens: Tokens | None = None,
        **scope: Any,
    ) -> None:
        """Take what opens the store, the limits of the server, and what ``Handlers`` takes.

        ``tokens`` are accepted beside keys.
        """
        self._opening = Opening(opener)
        keys = ServerKeys(keys, self._opening.memory)
        with ExitStack() as undo:
            undo.callback(self._opening.close)
            check_address(host, keys, tokens)
            self._socket = undo.enter_context(bound(host, port))
            wants_key = bool(keys)
            limits = limits or Limits()
            rates = rates_of(limits, self._opening.memory)
            undo.pop_all()
        self.url = url_of(self._socket) + PATH
        self._workers = Workers(limits)
        handlers = Handlers(self._opening, local=is_loopback(host), work=self._workers.run, **scope)
        server = server_of(handlers, instructions=instructions)
        unchecked = TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        )  # the guard looks at Host and Origin
        app = server.streamable_http_app(
            streamable_http_path=PATH, transport_security=unchecked, max_request_body_size=limits.body_bytes
        )
        limited = Limited(app, limits, rates)
        self._refusals = Refusals(self._opening.memory, "mcp")
        guarded = Guarded(limited, guard, keys, wants_key=wants_key, tokens=tokens, refusals=self._refusals)
        self._uvicorn = uvicorn_of(guarded, limits, grace_s=_GRACE_S, stopping=limited.end_streams)

    def run(self) -> bool:
        """Answer requests until ``stop``, or until the process is told to end; then finish what was asked.

        Return whether all of it is finished; what is not is left to itself, and its store open.
        """
        # its own end of every stream at SIGTERM would cut calls at work; ours ends those on which clients listen
        AppStatus.enable_automatic_graceful_drain = False
        with own_signals(), self._socket:  # uvicorn leaves the socket open where it is stopped before it has begun
            self._uvicorn.run(sockets=[self._socket])
        self._workers.close(_GRACE_S)
        self._refusals.write()
        if finished := not self._workers.at_work:
            self._opening.close()
        return finished

    def stop(self) -> None:
        """Take no more requests, and let ``run`` return. May be called by any thread."""
        self._uvicorn.should_exit = True


class Limited:
    """An ASGI application within limits of size, rate and time, whose open streams can be ended."""

    def __init__(self, app: App, limits: Limits, rates: Rates) -> None:
        self._app = app
        self._limits = limits
        self._rates = rates
        self._ending = asyncio.Event()

    def end_streams(self) -> None:
        """End the streams on which clients listen, for they would keep a server that stops; calls at work go on."""
        self._ending.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body has come whole and in time; answer any other with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            key: Key | None = scope[KEY]
            await self._rates.admit(key.id if key is not None else scope["client"][0] if scope.get("client") else "?")
            body = await read_body(Request(scope, receive), self._limits)
        except SemmemError as error:
            await send_problem(send, error)
            return
        if scope["method"] == "POST" and isinstance(fault := read_message(body), Fault):
            await Response(fault.as_error().model_dump_json(), 400, media_type="application/json")(scope, receive, send)
            return
        first: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
        unfinished = False

        async def again() -> MutableMapping[str, Any]:
            if first:
                return first.pop()
            return await (self._next_message(receive) if scope["method"] == "GET" else receive())

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal unfinished
            unfinished = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        await self._app(scope, again, noted)
        if unfinished:  # a stream that was ended; who has gone away is told nothing
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next_message(self, receive: Receive) -> MutableMapping[str, Any]:
        """Return what the server tells of a listening client next: also that it has gone, when streams are ended."""
        waiting = asyncio.ensure_future(receive()), asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return waiting[0].result() if waiting[0].done() else {"type": "http.disconnect"}
        finally:
            for one in waiting:
                one.cancel()
