"""Forks: a child process finds every lock of semmem free, and a fork waits until no model is being loaded.

A fork copies one thread alone. A lock that another thread held stays locked in the child for ever, and a module that
another thread was importing stays half imported. So the locks are made anew in the child, and a fork waits for the end
of a loading, half a minute at most. Locks of SQLite's own library are not reached: a child that was forked in the
middle of another thread's transaction finds the file busy.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forked", "Lock", "in_child", "loading"]

_LONGEST_LOADING_S = 30.0
"""Seconds that a fork waits for the end of a loading."""


class Forked(Protocol):
    """An object with state that a child process must not inherit."""

    def forked(self) -> None:
        """Drop that state; called in the child before it does anything else."""
        ...


_FORKED: WeakSet[Forked] = WeakSet()


def in_child(one: Forked) -> None:
    """Call ``one.forked`` in each process that is forked from this one, while ``one`` exists."""
    _FORKED.add(one)


class Lock:
    """A re-entrant lock for ``with`` that a child process finds free."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        in_child(self)

    def forked(self) -> None:
        """Make the lock anew."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


class _Loading(Lock):
    """The lock under which models are loaded and their packages imported, one at a time in a process."""

    def __init__(self) -> None:
        super().__init__()
        self._held = False

    def before(self) -> None:
        """Wait for the end of a loading."""
        self._held = self._lock.acquire(timeout=_LONGEST_LOADING_S)

    def after(self) -> None:
        """Let the parent load again."""
        if self._held:
            self._held = False
            self._lock.release()


loading = _Loading()


def _in_child() -> None:
    for one in list(_FORKED):
        one.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=loading.before, after_in_parent=loading.after, after_in_child=_in_child)
