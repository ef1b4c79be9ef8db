"""Errors as problem+json (RFC 9457): the one table of ``wire`` says which status an error has."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from semmem.interfaces import wire
from semmem.model import errors

__all__ = ["MEDIA_TYPE", "StreamStopped", "as_bytes", "headers_of", "problem", "send_problem", "status_of"]

MEDIA_TYPE = "application/problem+json"

_INNER = "The server failed at this; its log says why."


class StreamStopped(errors.StoreClosed):
    """The server stopped before a stream of items had ended; ``position`` is the first item that is not stored."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"This server is stopping, and the first {position:,} items of the stream are done; send the others when "
            "it runs again, or the whole stream with the same Idempotency-Key."
        )
        self.position = position


def status_of(error: BaseException) -> int:
    """Return the HTTP status of ``error``; one may have its own, as a body that is too large has."""
    own = error.http_status if isinstance(error, errors.SemmemError) else None
    return wire.answer(error).http_status if own is None else own


def problem(error: BaseException) -> dict[str, Any]:
    """Return the members of a problem: ``class`` is the name in ``semmem.errors``, ``detail`` what ``error`` says.

    BadItem adds ``position`` and ``id``, StreamStopped ``position``, Conflict ``names``. The words of an error that is
    none of semmem's are left out: they may tell something of the server.
    """
    is_ours = isinstance(error, errors.SemmemError)
    kind = next((one.__name__ for one in type(error).__mro__ if one.__name__ in errors.__all__), "SemmemError")
    members: dict[str, Any] = {
        "type": f"urn:semmem:error:{kind}",
        "title": (getattr(errors, kind).__doc__ or "").strip().splitlines()[0],
        "status": status_of(error),
        "detail": str(error) if is_ours else _INNER,
        "class": kind,
    }
    if isinstance(error, errors.BadItem):
        members |= {"position": error.position, "id": error.id}
    if isinstance(error, StreamStopped):
        members["position"] = error.position
    if isinstance(error, errors.Conflict):
        members["names"] = sorted(map(list, error.names))
    return members


def as_bytes(value: Any) -> bytes:
    """Return JSON-ready values as JSON in UTF-8; half of a surrogate pair, which UTF-8 lacks, as its escape."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def headers_of(error: BaseException) -> dict[str, str]:
    """Return the headers of an answer with ``error``: when to come again, or that a key is wanted."""
    if isinstance(error, errors.LimitExceeded):
        return {"retry-after": str(max(1, math.ceil(error.retry_after or 1.0)))}
    if isinstance(error, errors.KeyRequired) and status_of(error) == 401:
        return {"www-authenticate": error.challenge}
    return {}


async def send_problem(send: Callable[[MutableMapping[str, Any]], Awaitable[None]], error: BaseException) -> None:
    """Answer an ASGI request with ``error``."""
    body = as_bytes(problem(error))
    headers = {"content-type": MEDIA_TYPE, "content-length": str(len(body)), **headers_of(error)}
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status_of(error), "headers": lines})
    await send({"type": "http.response.body", "body": body})
