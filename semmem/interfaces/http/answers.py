"""What the facade returns, as the body and headers of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from semmem.client.http_request import quoted
from semmem.client.routes import NOTED, Route
from semmem.interfaces.http.limits import Workers
from semmem.interfaces.http.problems import as_bytes, problem
from semmem.model.serialization import plain
from semmem.model.types import Memory
from semmem.read.graph_files import as_plain

if TYPE_CHECKING:
    from semmem.interfaces.http.keys import Key
    from semmem.read.explanation import Explanation
    from semmem.read.result import Recall

__all__ = ["LINES", "MOST_NOTED", "Lines", "answer_of", "entity_tag", "with_warnings"]

LINES = "application/x-ndjson"
"""A JSON object a line."""

MOST_NOTED = 20
"""Warnings of one stream of items that are passed on; there is one sentence a batch."""


def entity_tag(memory: Memory) -> str:
    """Return the ETag of a memory: its tag, in quotes."""
    return f'"{memory.tag}"'


def answer_of(route: Route, value: Any, arguments: Mapping[str, Any], key: Key | None) -> Response:
    """Return the answer of a route that returned ``value``."""
    if route.status == 204:
        return Response(status_code=204)
    headers = {"etag": entity_tag(value)} if isinstance(value, Memory) else {}
    if route.name == "remember":
        headers["location"] = f"/v1/memories/{quoted(value.id)}?namespace={quoted(value.namespace)}"
    return Response(as_bytes(_body(route, value, arguments, key)), route.status, headers, "application/json")


def with_warnings(response: Response, warnings: list[str]) -> Response:
    """Return an answer with what is to be warned of, in its header."""
    if warnings:
        response.headers[NOTED] = " ".join(warnings[:MOST_NOTED])
    return response


def _body(route: Route, value: Any, arguments: Mapping[str, Any], key: Key | None) -> Any:
    match route.name:
        case "forget" | "forget_one":
            dry = arguments.get("dry_run", False)
            return {"forgotten": 0 if dry else value, "matched": value, "dry_run": dry}
        case "recall" | "recall_by_url" | "reweigh":
            return recalled(value)
        case "explain" | "explain_by_url":
            return explained(value)
        case "namespaces":
            mine = None if key is None else key.namespaces
            return {"namespaces": [plain(one) for one in value if mine is None or one.name in mine]}
        case "stats" if key is not None and key.namespaces is not None:
            return plain(replace(value, bytes=None, nodes=()))  # what others store would show in it
        case "graph":
            return plain(as_plain(value))
    return plain(value) if route.under is None else {route.under: plain(value)}


def recalled(recall: Recall) -> dict[str, Any]:
    """Return a recall as ``as_dict`` has it, with the whole recipe that answered."""
    return recall.as_dict() | {"plan": recall.recipe.as_dict()}


def explained(why: Explanation) -> dict[str, Any]:
    """Return an explanation as ``as_dict`` has it, with the steps of its path one by one."""
    return why.as_dict() | {"steps": [plain(step) for step in why.path]}


class Lines(Response):
    """Rows of a generator as JSON, one a line, made in a worker while they are sent.

    ``asked`` makes each piece of them as the request's key. The generator is closed in a worker whatever happens: when
    the client goes away, or takes too long to read. What goes wrong after the first row is the last line,
    ``{"problem": …}``.
    """

    media_type = LINES
    _BYTES = 1 << 16

    def __init__(
        self,
        rows: Iterator[Mapping[str, Any]],
        asked: Callable[[Callable[[], Any]], Any],
        workers: Workers,
        seconds: float,
    ) -> None:
        super().__init__(media_type=LINES)
        del self.headers["content-length"]
        self._rows = rows
        self._asked = asked
        self._workers = workers
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the rows as long as somebody reads them."""
        reader = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            more = True
            while more and not reader.done():
                piece, more = await self._workers.run(partial(self._asked, self._piece))
                async with asyncio.timeout(self._seconds):
                    await send({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            reader.cancel()
            await asyncio.shield(self._workers.run(partial(self._asked, self._close)))

    def _piece(self) -> tuple[bytes, bool]:
        """Return the next lines, and whether there are more."""
        lines: list[bytes] = []
        size = 0
        while size < self._BYTES:
            try:
                line = as_bytes(plain(next(self._rows)))
            except StopIteration:
                return b"".join(lines), False
            except Exception as error:  # noqa: BLE001  # the status was sent; the last line says what went wrong
                return b"".join([*lines, as_bytes({"problem": problem(error)}), b"\n"]), False
            lines += [line, b"\n"]
            size += len(line) + 1
        return b"".join(lines), True

    def _close(self) -> None:
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()


async def _wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass
