"""Idempotency-Key: a request that is sent again is answered as the first time, and done once.

The answer is kept in the store, in the transaction of what it answers, so a server that was killed at any moment, or
another server over the same store, answers a repetition. See ``TOGETHER`` for the verbs of one
transaction. The store keeps digests of the Idempotency-Key and of the request, and no
text of a memory: a kept answer takes texts from the memory itself, so that forgetting leaves none behind.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from semmem.client.audit import note_refused
from semmem.client.routes import TOGETHER, Route
from semmem.interfaces.http.answers import entity_tag
from semmem.interfaces.http.limits import TooSlow
from semmem.interfaces.http.problems import as_bytes
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.serialization import plain
from semmem.model.store.serving import another_request

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["AtWork", "Once", "answered_once", "id_for", "sent_once"]

_NAMESPACE = uuid.UUID("7d1c0e0a-5a3e-5a55-8d1b-6f1d7a5f7c11")

_TEXTS = ("text", "title", "author", "session", "source", "tags", "metadata", "older")
"""Fields of a memory that a kept answer leaves out; they are read from the memory again, but for ``older``."""


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


@dataclass(frozen=True, slots=True)
class Once:
    """A request that is to be done once: digests of its key, with its client and namespace, and of its content."""

    key: bytes
    request: bytes

    @classmethod
    def of(cls, client: str, where: str, key: str, content: bytes) -> Once:
        """Return the digests. That of the content is keyed, so that a short text cannot be guessed from it."""
        secret = "\n".join((client, where, key)).encode()
        return cls(sha256(b"idempotency key\n" + secret).digest(), hmac.digest(secret, content, "sha256"))


def answered_once(
    mem: Semmem, route: Route, once: Once, work: Callable[[], Response], namespaces: Sequence[str] | None
) -> Response:
    """Return the answer that is kept of a request, or that of ``work``, which does it. Runs in a worker.

    The audit gets the entry of one that fails after its transaction, which would have undone it.
    """
    serving = mem.store.serving
    if serving is None:
        return work()
    responses: list[Response] = []

    def kept() -> str:
        responses[:] = [work()]
        return _as_kept(responses[0])

    together, days = route.name in TOGETHER, mem.settings.keep_answers_days
    try:
        answer, replayed = serving.once(once.key, once.request, kept, together=together, keep_days=days)
    except Exception as error:
        if together:
            note_refused(mem, route.calls.__name__, namespaces, error)
        raise
    return _from_kept(mem, answer) if replayed else responses[0]


def _as_kept(response: Response) -> str:
    """Return an answer as it is kept: without the texts of a memory, which it names."""
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    kept: dict[str, Any] = {"status": response.status_code, "headers": headers}
    body = json.loads(bytes(response.body)) if response.body else None
    if isinstance(body, dict) and {"id", "namespace", "text", "version"} <= set(body):
        kept["memory"] = {name: value for name, value in body.items() if name not in _TEXTS}
    else:
        kept["body"] = body
    return json.dumps(kept, separators=(",", ":"))


def _from_kept(mem: Semmem, answer: str) -> Response:
    """Return a kept answer. Raises NotFound where its memory has been forgotten since.

    Where the memory has been changed since, it is answered as it is now.
    """
    kept = json.loads(answer)
    headers, body = dict(kept["headers"]), kept.get("body")
    if (before := kept.get("memory")) is not None:
        try:
            memory = mem.get(before["id"], namespace=before["namespace"])
        except NotFound:
            raise NotFound(
                f"This request was done, and the memory {before['id']!r} in namespace {before['namespace']!r} has been "
                "forgotten since."
            ) from None
        body = plain(memory)
        if entity_tag(memory) == headers.get("etag"):
            body = {name: before.get(name, value) for name, value in body.items()}
        headers["etag"] = entity_tag(memory)
    content = b"" if body is None else as_bytes(body)
    return Response(content, kept["status"], headers)


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A request that is at work: what was asked, and the work whose result is its answer."""

    request: bytes
    work: asyncio.Future[Response]


class AtWork:
    """The requests with an Idempotency-Key that one server is at work on. Used in one event loop."""

    def __init__(self) -> None:
        self._requests: dict[bytes, _Request] = {}

    async def once(self, once: Once, work: Callable[[], Coroutine[Any, Any, Response]], seconds: float) -> Response:
        """Return the answer of ``work``, or that of the same request which is still at work.

        The work goes on when the client has gone away or has waited for ``seconds``, so that the request, sent again,
        gets its answer and is not done a second time.

        Raises InvalidInput for a key that another request has, TooSlow where the answer takes too long.
        """
        entry = self._requests.get(once.key)
        if entry is None:
            entry = self._requests[once.key] = _Request(once.request, asyncio.ensure_future(work()))
            entry.work.add_done_callback(partial(self._settle, once.key))
        elif entry.request != once.request:
            raise another_request()
        finished, _ = await asyncio.wait([entry.work], timeout=seconds)
        if not finished:
            raise TooSlow(
                f"The answer takes longer than {seconds:g} seconds; the same Idempotency-Key sent again gets it."
            )
        return entry.work.result()

    def _settle(self, key: bytes, work: asyncio.Future[Response]) -> None:
        """Leave out what is done: the store keeps its answer."""
        del self._requests[key]
        if not work.cancelled():
            work.exception()  # it was told to those who waited, if anybody did
