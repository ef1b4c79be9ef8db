"""Requests that a server refuses because they come without a key: the audit counts them, an entry a minute at most."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from semmem.client.audit import note_done
from semmem.interfaces.http.keys import going
from semmem.model.errors import SemmemError
from semmem.model.process.asker import asked_through

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["Refusals"]


class Refusals:
    """The refused requests of one server, by the error, until an entry of the audit counts them.

    Whoever sends requests without a key writes no rows by it: the first one is noted at once, the others of the next
    minute by one entry for each kind of error, at the first request after it, or when the server stops. A refusal waits
    at most ``WAITS_S`` for its entry, which is written later where the store is slow to answer.
    """

    EVERY_S = 60.0
    WAITS_S = 1.0

    def __init__(
        self, opened: Callable[[], Semmem], interface: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._opened = opened
        self._interface = interface
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._next = -self.EVERY_S
        self._writing: asyncio.Future[None] | None = None

    async def note(self, error: SemmemError) -> None:
        """Count a refused request, and write the entries that are due."""
        with self._lock:
            self._counts[type(error).__name__] += 1
            now = self._clock()
            due = now >= self._next
            if due:
                self._next = now + self.EVERY_S
        if due:
            self._writing = going(self._writing, self.write)
            await asyncio.wait([self._writing], timeout=self.WAITS_S)

    def write(self) -> None:
        """Write an entry for each kind of error; what cannot be written is counted on."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        for outcome, count in sorted(counts.items()):
            try:
                with asked_through(self._interface):
                    mem = self._opened()
                    note_done(mem.store, mem.settings, "request", outcome=outcome, count=count)
            except SemmemError:  # the refusal is told all the same
                with self._lock:
                    self._counts[outcome] += count
