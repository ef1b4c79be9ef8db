"""A semaphore that lets threads pass in the order in which they came.

The semaphores of the standard library let pass whoever asks first when a place is free. That is mostly the thread that
has just left: it need not be woken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from semmem.model.process.forks import in_child

__all__ = ["FairSemaphore"]


class FairSemaphore:
    """Lets ``most`` threads at a time into a block, in the order in which they came.

    It only orders work and guards nothing: a thread that has waited ``patience_s`` seconds takes the place of the one
    that has been inside for longest. So a thread that stands still, or an interrupt that loses a place, delays others
    once and not for ever.
    """

    def __init__(self, most: int, patience_s: float) -> None:
        self._most, self._patience_s = most, patience_s
        self.forked()
        in_child(self)

    def forked(self) -> None:
        """Count no thread: a child process has none of its parent's."""
        self._lock = Lock()
        self._inside: list[Lock] = []  # a lock for each place that is taken, and for each thread that waits for one
        self._waiting: list[Lock] = []

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait for a place, and keep it for the block."""
        own = Lock()  # released by the thread that passes its place on to this one
        own.acquire()
        try:
            self._enter(own)
            yield
        finally:
            self._leave(own)

    def _enter(self, own: Lock) -> None:
        with self._lock:
            if len(self._inside) < self._most:
                self._inside.append(own)
                return
            self._waiting.append(own)
        if not own.acquire(timeout=self._patience_s):
            with self._lock:
                if own in self._waiting:
                    self._waiting.remove(own)
                    self._inside = [*self._inside[1:], own]

    def _leave(self, own: Lock) -> None:
        with self._lock:
            if own in self._waiting:  # interrupted
                self._waiting.remove(own)
            if own not in self._inside:  # another thread has taken its place
                return
            self._inside.remove(own)
            if self._waiting:
                self._inside.append(self._waiting.pop(0))
                self._inside[-1].release()
