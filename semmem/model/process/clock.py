"""Measure the working time of a leg, and the steps of a verb for programs that watch it.

A leg works from the start of its thread; waiting for connections or for a model does not count.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

__all__ = ["WATCHED", "Clock", "standing", "step"]

WATCHED: ContextVar[Callable[[str], AbstractContextManager[None]] | None] = ContextVar("semmem_steps", default=None)
"""The context manager that measures the steps of the running verb, by their names; None where nobody watches."""
_NOTHING: AbstractContextManager[None] = nullcontext()

_OF_THREAD = threading.local()


class Clock:
    """Counts the seconds that one leg has worked; the thread that waits for the leg reads it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = 0.0
        self._since: float | None = None
        self._begun = False

    @property
    def begun(self) -> bool:
        """Whether a thread has begun the work."""
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
    """Stop the clock of this thread, if it has one, while a block waits for a connection or a model."""
    clock: Clock | None = getattr(_OF_THREAD, "clock", None)
    stopped = clock is not None and clock._stand()
    try:
        yield
    finally:
        if clock is not None and stopped:
            clock._run()


def step(name: str) -> AbstractContextManager[None]:
    """Measure a block as a step of the running verb, such as extract, embed or store, if anybody watches."""
    watched = WATCHED.get()
    return _NOTHING if watched is None else watched(name)
