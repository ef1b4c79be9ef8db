"""Items that come as a stream, one JSON object a line, and the reports on them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from itertools import chain
from threading import Semaphore
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from semmem.client.routes import Route
from semmem.interfaces.http.answers import LINES, MOST_NOTED
from semmem.interfaces.http.arguments import check_names, read_pieces
from semmem.interfaces.http.keys import Key, authorise
from semmem.interfaces.http.limits import Limits, Patience, TooLarge, Workers
from semmem.interfaces.http.problems import StreamStopped, as_bytes, problem
from semmem.interfaces.http.sent_once import id_for
from semmem.model.errors import BadItem, InvalidInput, LimitExceeded
from semmem.model.serialization import plain
from semmem.model.types import IngestReport
from semmem.write.items import MadeId, NoItem
from semmem.write.screening import noted_of
from semmem.write.sync import ImportReport

__all__ = ["FOREVER", "Items", "Progress", "Reports", "wants_lines"]

Progress: TypeAlias = Callable[[IngestReport | ImportReport], None]
"""What is called with the report after each batch."""


def wants_lines(request: Request) -> bool:
    """Return whether the client asked for reports while its items are stored."""
    return LINES in request.headers.get("accept", "")


class Items:
    """The lines of a request as items, for a verb that reads them in a thread of its own.

    The thread asks the server's loop for each piece, so that no more of the body is read than is stored. In the place
    of a line that is not JSON stands a NoItem, which the verb refuses as it refuses a bad item. Where a client goes
    away or lets the server wait too long, the iterator raises, and the batch at work is not stored. The same where
    ``stopping`` is set, with the number of items that are stored.

    One of ``turns`` is taken while the thread has items to store, and given back while it waits for the client.
    """

    def __init__(
        self, request: Request, limits: Limits, key: Key | None, *, turns: Semaphore, stopping: threading.Event
    ) -> None:
        self._request = request
        self._turns = turns
        self._has_turn = False
        self._stopping = stopping
        self._done = 0
        """Items that are stored or were refused."""
        self._loop = asyncio.get_running_loop()
        self._patience = Patience(limits, stream=True)
        self._pieces = read_pieces(request, self._patience)
        self._limits = limits
        self._key = key
        self._items = self._parsed()
        self._ended = threading.Event()
        self._unread: NoItem | None = None
        """The first line that is not JSON."""

    def end(self) -> None:
        """Let the thread that reads the items wait no longer: nobody hears what becomes of them."""
        self._ended.set()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Let the verb run that stores the items, and give its turn back at the end.

        Of a verb that a bad line has ended, the error says which line that is, counted from 1, and not which item.
        """
        try:
            yield
        except BadItem as error:
            if self._unread is None or not error.message.endswith(self._unread.reason):
                raise
            raise BadItem(self._unread.reason, position=error.position) from None
        finally:
            self._give_turn_back()

    def note(self, report: IngestReport | ImportReport) -> None:
        """Note how far the verb has come: ``report`` is what it tells after a batch."""
        self._done = report.read

    async def read_away(self) -> None:
        """Where the server is stopping, read what the client still sends: of bytes unread, it would lose its answer."""
        if not self._stopping.is_set():
            return
        until = self._loop.time() + _READ_AWAY_S
        more = True
        with suppress(TimeoutError):
            while more:
                async with asyncio.timeout(min(_QUIET_S, until - self._loop.time())):
                    message = await self._request.receive()
                more = message["type"] == "http.request" and message.get("more_body", False)

    def arguments(self, route: Route, in_url: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of ``route``: those in the URL, and those of a first line ``{"arguments": {…}}``.

        Raises InvalidInput for one that the route does not have, and for one that stands in both places.
        """
        first = next(self._items, None)
        if isinstance(first, Mapping) and set(first) == {"arguments"} and isinstance(first["arguments"], dict):
            in_line: dict[str, Any] = first["arguments"]
            check_names(route, in_line, whole=False)
            if twice := next((name for name in in_line if name in in_url), None):
                raise InvalidInput(f"{twice} is in the URL and in the first line; give it once.")
            return {**in_line, **in_url}
        if first is not None:
            self._items = chain([first], self._items)
        return dict(in_url)

    def named(self, client: str | None, once: str | None) -> Iterator[Any]:
        """Yield the items; with an Idempotency-Key, one without an id gets the same id whenever it is sent again.

        So it is stored once. One that is not stored, since another memory says the same, is counted each time.
        """
        for place, item in enumerate(self._items):
            if isinstance(item, Mapping) and item.get("namespace") is not None:
                authorise(self._key, "write", [str(item["namespace"])])
            if once is not None and isinstance(item, dict) and item.get("id") is None:
                item["id"] = MadeId(id_for(client or "", once, place))
            yield item

    def _parsed(self) -> Iterator[Any]:
        """Yield an item a line, empty lines left out."""
        for number, line in enumerate(self._lines(), 1):
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = getattr(error, "msg", None) or "it is nested too deeply, or not UTF-8"
                no_item = NoItem(f"Line {number} is not JSON: {reason}; correct it, and send a JSON object a line.")
                self._unread = self._unread or no_item
                yield no_item

    def _lines(self) -> Iterator[bytes]:
        rest, size = b"", 0
        while (piece := self._next()) is not None:
            size += len(piece)
            if size > self._limits.stream_bytes:
                raise TooLarge(f"The stream has more than {self._limits.stream_bytes:,} bytes; send it in two.")
            *lines, rest = (rest + piece).split(b"\n")
            if any(map(bytes.strip, lines)):
                self._patience.begin()
            yield from map(self._bounded, lines)
            self._bounded(rest)
        yield rest

    def _bounded(self, line: bytes) -> bytes:
        """Return a line, whole or so far. Raises TooLarge for one that is too long."""
        if len(line) > self._limits.body_bytes:
            raise TooLarge(f"A line has more than {self._limits.body_bytes:,} bytes; send shorter items.")
        return line

    def _next(self) -> bytes | None:
        async def piece() -> bytes | None:
            return await anext(self._pieces, None)

        self._give_turn_back()
        future = asyncio.run_coroutine_threadsafe(piece(), self._loop)
        while not (self._ended.is_set() or self._stopping.is_set()):
            if wait((future,), timeout=_LOOK_S).done:
                self._take_turn()
                return future.result()
        future.cancel()
        if self._stopping.is_set():
            raise StreamStopped(self._done)
        raise LimitExceeded("The stream was ended before all items were sent.")

    def _take_turn(self) -> None:
        """Wait until few enough other streams store items."""
        while not self._has_turn and not (self._ended.is_set() or self._stopping.is_set()):
            self._has_turn = self._turns.acquire(timeout=_LOOK_S)

    def _give_turn_back(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turns.release()


class Reports(Response):
    """What became of a stream of items so far, a line after each batch, and at the end ``{"report": …}``.

    Beside the report stand ``warnings``, where a credential seems to be among the items, the first ones of many.
    What goes wrong is the last line, ``{"problem": …}``: the status was sent before.
    """

    media_type = LINES

    def __init__(self, verb: Callable[[Progress], Any], items: Items, workers: Workers) -> None:
        super().__init__(media_type=LINES)
        del self.headers["content-length"]
        self._verb = verb
        self._items = items
        self._workers = workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a line for each report."""
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[bytes] = asyncio.Queue()

        def progress(report: IngestReport | ImportReport) -> None:
            counts = {
                name: value for name, value in plain(report).items() if name not in ("rejected", "gone", "unlinked")
            }
            counts["more_rejected"] += len(report.rejected)  # whose list only the last report has
            loop.call_soon_threadsafe(lines.put_nowait, as_bytes({"progress": counts}))

        def work() -> bytes:
            try:
                report, warnings = noted_of(lambda: self._verb(progress))
                return as_bytes({"report": plain(report), **({"warnings": warnings[:MOST_NOTED]} if warnings else {})})
            except Exception as error:  # noqa: BLE001  # the status was sent; the last line says what went wrong
                return as_bytes({"problem": problem(error)})

        answer = asyncio.ensure_future(self._workers.run_stream(work, seconds=FOREVER))
        answer.add_done_callback(lambda _: lines.put_nowait(b""))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while line := await lines.get():
                await send({"type": "http.response.body", "body": line + b"\n", "more_body": True})
            await send({"type": "http.response.body", "body": await answer + b"\n", "more_body": True})
            await self._items.read_away()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._items.end()


_LOOK_S = 0.2
"""Seconds after which a thread that waits for items looks whether it should."""

_READ_AWAY_S = 2.0
"""Seconds for which a server that stops reads on, so that its last line reaches a client that still sends."""

_QUIET_S = 0.3
"""Seconds without a byte after which a client is taken to wait for its answer."""

FOREVER = 7 * 86_400.0
"""Seconds that a stream of items may take in all; what is limited is how long it lets the server wait."""
