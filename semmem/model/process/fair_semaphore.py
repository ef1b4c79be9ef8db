"""A semaphore that lets threads pass in the order in which they came.

The semaphores of the standard library let pass whoever asks first when a place is free. That is mostly the thread that
has just left: it need not be woken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from semmem.model.process.forks import in_child

__all__ = ["FairSemaphore"]


class FairSemaphore:
    """Lets ``most`` threads at a time into a block, in the order in which they came.

    It only orders work and guards nothing: a thread that has waited ``patience_s`` seconds passes without a place.
    """

    def __init__(self, most: int, patience_s: float) -> None:
        self._most, self._patience_s = most, patience_s
        self.forked()
        in_child(self)

    def forked(self) -> None:
        """Count no thread: a child process has none of its parent's."""
        self._lock = Lock()
        self._free = self._most
        self._waiting: deque[Lock] = deque()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait for a place, and keep it for the block."""
        has_place = self._taken()
        try:
            yield
        finally:
            if has_place:
                self._pass_on()

    def _taken(self) -> bool:
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            passed = Lock()  # released by the thread that passes its place on to this one
            passed.acquire()
            self._waiting.append(passed)
        try:
            was_passed = passed.acquire(timeout=self._patience_s)
        except BaseException:  # an interrupt
            if self._given_up(passed):
                self._pass_on()
            raise
        return was_passed or self._given_up(passed)

    def _given_up(self, passed: Lock) -> bool:
        """Wait no longer; return whether the place was passed on to this thread meanwhile."""
        with self._lock:
            if passed in self._waiting:
                self._waiting.remove(passed)
                return False
        return True

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
