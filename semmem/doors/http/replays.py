"""Idempotency-Key: a request that is sent again is answered as the first time, and done once."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from semmem.doors.http.limits import TooSlow
from semmem.model.errors import InvalidInput

__all__ = ["Replays", "id_for", "sent_once"]

_NAMESPACE = uuid.UUID("7d1c0e0a-5a3e-5a55-8d1b-6f1d7a5f7c11")


def id_for(client: str, key: str, place: int | None = None) -> str:
    """Return the id of a memory that was sent without one: the same for the same key, after a restart too.

    ``place`` is the position of an item in a stream.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{client}\n{key}" if place is None else f"{client}\n{key}\n{place}"))


def sent_once(request: Request) -> str | None:
    """Return the Idempotency-Key of a request, None where it has none. Raises InvalidInput for one that is no key."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= 255:
        raise InvalidInput(f"An Idempotency-Key has 1 to 255 characters, not {len(key):,}.")
    return key


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A request with an Idempotency-Key: what was asked, when, and the work whose result is its answer."""

    fingerprint: bytes
    at: float
    work: asyncio.Future[Response]


class Replays:
    """The answers to requests with an Idempotency-Key, for a day, the last so many of them. Used in one event loop."""

    _MOST = 4_096
    _BYTES = 1 << 16
    _SECONDS = 86_400.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests: OrderedDict[tuple[str, str], _Request] = OrderedDict()
        self._clock = clock

    async def once(
        self, client: str, key: str, request: bytes, work: Callable[[], Coroutine[Any, Any, Response]], seconds: float
    ) -> Response:
        """Return the answer of ``work``: a new one, the one that was kept, or that of the same request still at work.

        The work goes on when the client has gone away or has waited for ``seconds``, so that the request, sent again,
        gets its answer and is not done a second time. Errors are not kept: what failed may be tried again.

        Raises InvalidInput for a key that another request had, TooSlow where the answer takes too long.
        """
        name, fingerprint, now = (client, key), sha256(request).digest(), self._clock()
        entry = self._requests.get(name)
        if entry is None or (entry.work.done() and now - entry.at >= self._SECONDS):
            entry = self._requests[name] = _Request(fingerprint, now, asyncio.ensure_future(work()))
            self._requests.move_to_end(name)
            entry.work.add_done_callback(partial(self._settle, name))
        elif entry.fingerprint != fingerprint:
            raise InvalidInput("That Idempotency-Key was used for another request; take a new one for each.")
        finished, _ = await asyncio.wait([entry.work], timeout=seconds)
        if not finished:
            raise TooSlow(
                f"The answer takes longer than {seconds:g} seconds; the same Idempotency-Key sent again gets it."
            )
        return entry.work.result()

    def _settle(self, name: tuple[str, str], work: asyncio.Future[Response]) -> None:
        """Keep the answer of work that is done, unless it is an error or large; leave out the oldest of too many."""
        failed = work.cancelled() or work.exception() is not None
        if failed or work.result().status_code >= 400 or len(work.result().body) > self._BYTES:
            entry = self._requests.get(name)
            if entry is not None and entry.work is work:
                del self._requests[name]
        while len(self._requests) > self._MOST:
            oldest = next((one for one, request in self._requests.items() if request.work.done()), None)
            if oldest is None:
                return
            del self._requests[oldest]
