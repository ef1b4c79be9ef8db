"""The MCP server over standard input and output, for one client."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import anyio
import mcp_types as types
from anyio.abc import ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from semmem.interfaces.mcp.messages import Fault, read_message
from semmem.interfaces.mcp.opening import Opening
from semmem.interfaces.mcp.server import Handlers, server_of

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from semmem.client.memory import Semmem

__all__ = ["run"]

_GRACE_S = 60.0
"""Seconds for which the calls that were read are answered after the input has ended."""


def run(opener: Callable[[], Semmem], *, instructions: str | None = None, **scope: Any) -> None:
    """Serve until the client closes its end, and the calls it sent are answered.

    ``opener`` opens the store, behind the first answers. ``scope`` is what ``Handlers`` takes.
    """
    opening = Opening(opener)
    handlers = Handlers(opening, folder=Path.cwd(), **scope)
    try:
        with _own_input() as lines:
            anyio.run(_serve, server_of(handlers, instructions=instructions), lines)
    finally:
        opening.close()


async def _serve(server: Server[Any], lines: TextIO) -> None:
    calls = _Calls(lines)
    async with stdio_server(stdin=cast("anyio.AsyncFile[str]", calls)) as (read, write):
        calls.write = write
        await server.run(read, _Answers(write, calls), server.create_initialization_options())


@contextmanager
def _own_input() -> Iterator[TextIO]:
    """Yield what comes on standard input; whatever else reads there meanwhile, such as a child, finds it empty."""
    own = os.dup(sys.stdin.fileno())
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    try:
        # a thread may still wait for a line when the server has ended, so the descriptor stays open
        yield os.fdopen(own, encoding="utf-8", errors="replace", closefd=False)
    finally:
        os.dup2(own, sys.stdin.fileno())


class _Calls:
    """The messages of the client, a line each; the input ends when each request among them is answered.

    A line that is no message is answered here, for the library would answer nothing.
    """

    def __init__(self, lines: TextIO) -> None:
        self._lines = anyio.wrap_file(lines)
        self._open: Counter[str] = Counter()
        self._settled = anyio.Event()
        self._ended = False
        self.write: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that are messages."""
        async for line in self._lines:
            if not line.strip():
                continue
            message = read_message(line)
            if isinstance(message, Fault):
                await self.write.send(SessionMessage(message.as_error()))
            else:
                self._note(message)
                yield line
        self._ended = True
        if self._open:
            with anyio.move_on_after(_GRACE_S):
                await self._settled.wait()

    def _note(self, message: Any) -> None:
        """Count a request as open; one that the client takes back is never answered."""
        if isinstance(message, types.JSONRPCRequest):
            self._open[str(message.id)] += 1
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self.settle((message.params or {}).get("requestId"))

    def settle(self, id: object) -> None:
        """Note that a request has its answer, or gets none."""
        self._open -= Counter({str(id): 1})
        if self._ended and not self._open:
            self._settled.set()


class _Answers(ObjectSendStream[SessionMessage]):
    """The stream to the client, by which it is known which calls are answered."""

    def __init__(self, write: Any, calls: _Calls) -> None:
        self._write = write
        self._calls = calls

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        await self._write.send(item)
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._calls.settle(item.message.id)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._write.aclose()
