"""Threads that legs answer on: so many at a time, and one that never comes back holds up nobody, nor the exit."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from semmem.model.errors import LegFailed, StoreClosed

__all__ = ["Task", "Threads"]

T = TypeVar("T")

_MOST_OVERDUE = 4
"""Tasks of one leg that may be overdue at a time."""

_IDLE_S = 60.0


class Task(Future[T]):
    """A future that knows whose work it is."""

    def __init__(self, leg: str, work: Callable[[], T]) -> None:
        super().__init__()
        self.leg = leg
        self.work: Callable[[], T] | None = work
        self.overdue = False


class Threads:
    """Up to ``most`` threads; one whose task is overdue is not counted any more, and another takes its place.

    They are daemons: a process ends without waiting for a leg that does not return.
    """

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._change = threading.Condition()
        self._waiting: deque[Task[Any]] = deque()
        self._overdue: Counter[str] = Counter()
        self._alive = self._idle = 0
        self._closed = False

    def close(self) -> None:
        """Begin nothing any more; what runs ends by itself."""
        with self._change:
            self._closed = True
            waiting, self._waiting = self._waiting, deque()
            self._change.notify_all()
        for task in waiting:
            task.cancel()

    def submit(self, leg: str, work: Callable[[], T]) -> Task[T]:
        """Let a thread do ``work`` for ``leg``. Raises LegFailed while too many of the leg's tasks are overdue."""
        task = Task(leg, work)
        with self._change:
            if self._closed:
                raise StoreClosed()
            if self._overdue[leg] >= _MOST_OVERDUE:
                raise LegFailed(
                    f"{_MOST_OVERDUE} earlier questions to {leg} still run, past their time; until one ends it is not "
                    "asked again."
                )
            self._waiting.append(task)
            self._serve()
        return task

    def give_up(self, task: Task[Any]) -> None:
        """Drop ``task`` if it has not begun; else let another thread take the place of the one that it keeps."""
        if task.cancel():
            with self._change:
                if task in self._waiting:
                    self._waiting.remove(task)
            return
        with self._change:
            if task.overdue or task.done():
                return
            task.overdue = True
            self._overdue[task.leg] += 1
            self._alive -= 1
            self._serve()

    def _serve(self) -> None:
        """Wake a thread for what waits, or start one."""
        if self._idle < len(self._waiting) and self._alive < self._most:
            self._alive += 1
            threading.Thread(target=self._run, name="semmem-leg", daemon=True).start()
        self._change.notify()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            _do(task)
            with self._change:
                if task.overdue:
                    self._overdue[task.leg] -= 1
                    return
            del task

    def _next(self) -> Task[Any] | None:
        """Return what to do next, None when there has been nothing for a minute or this is closed."""
        with self._change:
            self._idle += 1
            try:
                if not self._change.wait_for(lambda: self._waiting or self._closed, _IDLE_S) or self._closed:
                    self._alive -= 1
                    return None
                return self._waiting.popleft()
            finally:
                self._idle -= 1


def _do(task: Task[Any]) -> None:
    """Do the work of ``task`` unless it was cancelled, and keep its answer or its error."""
    work, task.work = task.work, None
    if work is None or not task.set_running_or_notify_cancel():
        return
    try:
        answer = work()
    except BaseException as error:  # noqa: BLE001  # whoever waits for the task gets it
        task.set_exception(error)
    else:
        task.set_result(answer)
