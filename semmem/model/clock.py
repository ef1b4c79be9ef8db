"""Measure the working time of a leg, and let a step of a verb be measured by those who watch.

A leg works from the start of its thread, without waiting for connections or a model.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

__all__ = ["WATCHED", "Clock", "standing", "step"]

WATCHED: ContextVar[Callable[[str], AbstractContextManager[None]] | None] = ContextVar("semmem_steps", default=None)
"""What watches the steps of the verb at work, by their names; None where nobody does."""
_NOTHING: AbstractContextManager[None] = nullcontext()

_OF_THREAD = threading.local()


class Clock:
    """Seconds that one leg has worked; the thread that waits for the leg reads it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = 0.0
        self._since: float | None = None
        self._begun = False

    @property
    def begun(self) -> bool:
        """Whether a thread has taken the work up."""
        return self._begun

    def spent(self) -> float:
        """Return the seconds of work until now."""
        with self._lock:
            return self._spent + (0.0 if self._since is None else time.perf_counter() - self._since)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure this thread until the end of the block."""
        outer = getattr(_OF_THREAD, "clock", None)
        _OF_THREAD.clock, self._begun = self, True
        self._run()
        try:
            yield
        finally:
            self._stand()
            _OF_THREAD.clock = outer

    def _run(self) -> None:
        with self._lock:
            self._since = time.perf_counter()

    def _stand(self) -> bool:
        with self._lock:
            if self._since is None:
                return False
            self._spent += time.perf_counter() - self._since
            self._since = None
            return True


@contextmanager
def standing() -> Iterator[None]:
    """Stop the clock of this thread, if it has one, for a block that waits for a connection or a model."""
    clock: Clock | None = getattr(_OF_THREAD, "clock", None)
    stopped = clock is not None and clock._stand()
    try:
        yield
    finally:
        if clock is not None and stopped:
            clock._run()


def step(name: str) -> AbstractContextManager[None]:
    """Measure a block as a step of the verb at work, such as extract, embed or store, where anybody watches it."""
    watched = WATCHED.get()
    return _NOTHING if watched is None else watched(name)
