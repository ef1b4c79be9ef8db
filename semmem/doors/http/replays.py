"""Idempotency-Key: a request that is sent again is answered as the first time, and done once."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256

from starlette.responses import Response

from semmem.model.errors import Conflict, InvalidInput

__all__ = ["Replays", "id_for"]

_NAMESPACE = uuid.UUID("7d1c0e0a-5a3e-5a55-8d1b-6f1d7a5f7c11")


def id_for(client: str, key: str, place: int | None = None) -> str:
    """Return the id of a memory that was sent without one: the same for the same key, after a restart too.

    ``place`` is the position of an item in a stream.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{client}\n{key}" if place is None else f"{client}\n{key}\n{place}"))


@dataclass(slots=True)
class _Answer:
    """What a request was answered with, and when; ``response`` is None while it is at work."""

    fingerprint: bytes
    at: float
    response: Response | None = None


class Replays:
    """The answers to requests with an Idempotency-Key, for a day, the last so many of them. Used in one event loop."""

    _MOST = 4_096
    _BYTES = 1 << 16
    _SECONDS = 86_400.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._answers: OrderedDict[tuple[str, str], _Answer] = OrderedDict()
        self._clock = clock

    async def once(self, client: str, key: str, request: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
        """Return what ``work`` answered, now or the first time. Errors are not kept: what failed may be tried again.

        Raises InvalidInput for a key that another request had, Conflict while the first one is at work.
        """
        if not 1 <= len(key) <= 255:
            raise InvalidInput("An Idempotency-Key has 1 to 255 characters.")
        name, fingerprint, now = (client, key), sha256(request).digest(), self._clock()
        known = self._answers.get(name)
        if known is not None and now - known.at < self._SECONDS:
            if known.fingerprint != fingerprint:
                raise InvalidInput("That Idempotency-Key was used for another request; take a new one for each.")
            if known.response is None:
                raise Conflict("A request with that Idempotency-Key is at work; ask again when it is answered.")
            return known.response
        mine = self._answers[name] = _Answer(fingerprint, now)
        self._answers.move_to_end(name)
        try:
            response = await work()
        except (Exception, asyncio.CancelledError):
            if self._answers.get(name) is mine:
                del self._answers[name]
            raise
        if response.status_code >= 400 or len(response.body) > self._BYTES:
            del self._answers[name]
            return response
        mine.response = response
        while len(self._answers) > self._MOST:
            self._answers.popitem(last=False)
        return response
