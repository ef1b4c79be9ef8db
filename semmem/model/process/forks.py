"""Forks: a child process finds every lock of semmem free, and a fork divides no loading and no transaction of SQLite.

A fork copies one thread alone. A lock that another thread held stays locked in the child for ever, a module that
another thread was importing stays half imported, and SQLite's library takes the locks of the parent's transactions for
the child's own. So the locks are made anew in the child, and a fork waits until no other thread loads a model or uses a
SQLite file, half a minute at most.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  # see the end of this file
import logging  # noqa: F401
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, overload
from weakref import WeakSet

__all__ = ["Forked", "Lock", "cached_property", "in_child", "loading", "undivided"]

T = TypeVar("T")

_LONGEST_S = 30.0
"""Seconds that a fork waits for the work of other threads."""


class Forked(Protocol):
    """An object with state that a child process must not inherit."""

    def forked(self) -> None:
        """Drop that state; called in the child before it does anything else."""
        ...


_FORKED: WeakSet[Forked] = WeakSet()


def in_child(one: Forked) -> None:
    """Call ``one.forked`` in each process that is forked from this one, while ``one`` exists."""
    _FORKED.add(one)


class Lock(type(threading.RLock())):  # type: ignore[misc]  # the type that is written in C
    """A re-entrant lock that a child process finds free.

    No line of Python runs while it is taken or released, where Ctrl-C could lose it.
    """

    def __init__(self) -> None:
        in_child(self)

    def forked(self) -> None:
        """Free the lock, but for the thread that forked while it had it, which goes on in the child."""
        if not self._is_owned():
            self._at_fork_reinit()


class cached_property(Generic[T]):  # as functools calls it
    """functools.cached_property without the lock of Python 3.11, which a child process may find locked for ever."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, one: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, one: object, owner: type) -> T: ...
    def __get__(self, one: object | None, owner: type) -> cached_property[T] | T:
        if one is None:
            return self
        value = one.__dict__[self._make.__name__] = self._make(one)
        return value


class _Undivided:
    """Counts the pieces of work that a fork must not divide. A thread's own do not keep it from forking."""

    def __init__(self) -> None:
        in_child(self)
        self.forked()

    def forked(self) -> None:
        """Forget the work of the parent."""
        self._change = threading.Condition()
        self._forking, self._count, self._own = False, 0, threading.local()

    def begin(self) -> None:
        """Begin a piece of work; where a fork is waiting, a thread's first piece begins after it."""
        with self._change:
            own = getattr(self._own, "count", 0)
            if not own:
                self._change.wait_for(lambda: not self._forking)
            self._own.count = own + 1
            self._count += 1

    def end(self) -> None:
        """End a piece of work of this thread; in a child process, one that its parent had begun counts nothing."""
        with self._change:
            if own := getattr(self._own, "count", 0):
                self._own.count = own - 1
                self._count -= 1
                self._change.notify_all()

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *error: object) -> None:
        self.end()

    def before(self) -> None:
        """Wait for the work of other threads, and let none begin."""
        self._change.acquire()
        self._forking = True
        self._change.wait_for(lambda: self._count == getattr(self._own, "count", 0), timeout=_LONGEST_S)

    def after(self) -> None:
        """Let the parent's threads go on."""
        self._forking = False
        self._change.notify_all()
        self._change.release()


undivided = _Undivided()


class _Loading(Lock):
    """The lock under which models are loaded and their packages imported, one at a time in a process."""

    def __enter__(self) -> None:
        super().__enter__()
        undivided.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            undivided.end()
        finally:
            super().__exit__(kind, error, trace)


loading = _Loading()


def _in_child() -> None:
    for one in list(_FORKED):
        one.forked()


# Of functions before a fork the last one registered is called first. Those of logging and concurrent.futures take locks
# that a thread may need before its work ends, so these modules are imported above.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=undivided.before, after_in_parent=undivided.after, after_in_child=_in_child)
