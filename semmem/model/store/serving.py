"""The protocol for what several servers over one store share: keys, and answers to requests that are sent again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from semmem.model.errors import InvalidInput, LimitExceeded

__all__ = ["KeyRows", "ServingStore", "another_request", "rates_unshared", "still_at_work"]

KeyRows: TypeAlias = Sequence[Mapping[str, Any]]
"""Keys as JSON objects, the same as in a file of keys."""


class ServingStore(Protocol):
    """Keys and answers in one store. Every method is safe to call from any thread and process."""

    def once(
        self, key: bytes, request: bytes, work: Callable[[], str], *, together: bool, keep_days: float
    ) -> tuple[str, bool]:
        """Return the answer kept for ``key``, or that of ``work``, which is kept; and whether it was kept before.

        With ``together`` all that ``work`` does in this thread, and the answer, are one transaction: a process killed
        at any moment leaves both or neither. Without, the answer is kept after the work, and
        returned also where it cannot be kept. An error of ``work`` is raised and not kept. ``scrub`` inside
        ``together`` follows after the commit; until it is done, the next call with the same key does it.

        Raises InvalidInput where the kept answer is of another ``request``, LimitExceeded where another process is
        still at work on this one.
        """
        ...

    def key_list(self) -> KeyRows:
        """Return every key."""
        ...

    def change_keys(self, change: Callable[[KeyRows], KeyRows]) -> None:
        """Replace all keys by what ``change`` makes of them, in one transaction; others who change them wait."""
        ...

    def take_tokens(self, client: bytes, count: int, *, rate: float, burst: float) -> tuple[int, float]:
        """Take up to ``count`` tokens from the bucket of ``client``; return how many, and the seconds until the next.

        The bucket holds ``burst`` tokens when it is full, and gains ``rate`` a second, by the clock of the server.
        """
        ...


def rates_unshared(kind: str) -> InvalidInput:
    """Return the error for a store of a ``kind`` that only one machine serves."""
    return InvalidInput(
        f"The setting shared_rate is for servers over one store on PostgreSQL, and this is a {kind} store; "
        "leave it out."
    )


def another_request() -> InvalidInput:
    """Return the error for an Idempotency-Key that another request had."""
    return InvalidInput("That Idempotency-Key was used for another request; take a new one for each.")


def still_at_work() -> LimitExceeded:
    """Return the error for a request that another server is still at work on."""
    error = LimitExceeded(
        "Another server is still at work on the request with this Idempotency-Key; send it again in a second."
    )
    error.http_status = 409
    error.retry_after = 1.0
    return error
