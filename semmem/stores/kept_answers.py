"""What both stores do so that a request that is sent again is done once: its answer, and the claim to do it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from semmem.model.store.serving import still_at_work

__all__ = ["Answer", "wait_for_claim"]

_PATIENCE_S = 5.0
"""Seconds to wait for another server that is at work on the same request."""
_PAUSE_S = 0.05


class Answer(NamedTuple):
    """The answer to a request with an Idempotency-Key."""

    text: str
    unscrubbed: bool
    """Whether the files are still to be rewritten, for a forget whose transaction has ended."""
    found: bool
    """Whether an earlier request has kept it."""


def wait_for_claim(claim: Callable[[], bool]) -> None:
    """Call ``claim`` until it has claimed an Idempotency-Key.

    Raises LimitExceeded where another server has it for too long.
    """
    end = time.monotonic() + _PATIENCE_S
    while not claim():
        if time.monotonic() > end:
            raise still_at_work()
        time.sleep(_PAUSE_S)
