"""Legs asked side by side, each on a thread and within its time; one that fails or is late is degraded."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimedOut
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from semmem.model.clock import Clock
from semmem.model.errors import EmbedderMismatch, EmbedderReplaced, LegFailed, SemmemError, StoreClosed
from semmem.model.recipe import Recipe
from semmem.model.store import Store
from semmem.read.tracing import observed_legs

__all__ = ["Asking", "Task", "Threads", "reason"]

T = TypeVar("T")

_MOST_OVERDUE = 4
"""Tasks of one leg that may be overdue at a time."""

_IDLE_S = 60.0

_LONGEST_LOADING = 120.0
"""Seconds that the first question of a process waits for the model; a slow disk needs tens of them."""

_LONGEST_QUEUE = 30.0
"""Seconds that the legs asked side by side wait for threads, all of them together."""


class Task(Future[T]):
    """A future that knows whose work it is."""

    def __init__(self, leg: str, work: Callable[[], T]) -> None:
        super().__init__()
        self.leg = leg
        self.work: Callable[[], T] | None = work
        self.context = copy_context()  # of the recall: which moment of a namespace it reads
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
        answer = task.context.run(work)
    except BaseException as error:  # noqa: BLE001  # whoever waits for the task gets it
        task.set_exception(error)
    else:
        task.set_result(answer)


class Asking:
    """The threads on which the legs of a store answer.

    ``renewed`` says, when a leg met vectors of another embedder than the question's, whether that one is at hand.
    """

    def __init__(self, store: Store, renewed: Callable[[], bool]) -> None:
        self._store = store
        self._renewed = renewed
        self._threads = Threads()

    def close(self) -> None:
        """Stop the threads; legs that still run finish by themselves."""
        self._threads.close()

    def ask(
        self,
        work: Mapping[str, Callable[[], T]],
        recipe: Recipe,
        degraded: dict[str, str],
        timings: dict[str, float],
    ) -> dict[str, T]:
        """Do the ``work`` of each leg side by side; one that fails or takes too long is degraded, with the reason.

        ``timings`` are the seconds that legs have worked; one that is asked again has what is left of its time.
        """
        work = observed_legs(work)
        cancels: dict[str, Callable[[], None]] = {}
        clocks = {name: Clock() for name in work}
        spent = {name: timings.get(name, 0.0) for name in work}

        def done(name: str) -> T:
            try:
                with clocks[name].running(), self._store.session() as cancels[name]:
                    return work[name]()
            finally:
                timings[name] = spent[name] + clocks[name].spent()

        answers: dict[str, T] = {}
        running: dict[str, Task[T]] = {}
        asked = time.perf_counter()
        for name in sorted(work):
            try:
                running[name] = self._threads.submit(name, partial(done, name))
            except LegFailed as error:
                degraded[name] = error.message
        for name, task in running.items():
            limit = recipe.timeouts.get(name, 5.0)
            try:
                answers[name] = _wait(task, clocks[name], limit - spent[name], asked)
            except TimedOut:
                self._threads.give_up(task)
                degraded[name] = _late(clocks[name], limit, asked)
                if name in cancels and (failed := _cancelled(cancels[name])):
                    degraded[name] += f", and what it asks of the store goes on: {failed}"
            except EmbedderReplaced as error:
                if self._renewed():
                    raise
                degraded[name] = error.message
            except EmbedderMismatch:
                raise
            except Exception as error:  # noqa: BLE001  # one leg's failure leaves the others' answer, whatever it is
                degraded[name] = reason(error)
        return answers

    def once(self, name: str, work: Callable[[], T], recipe: Recipe, timings: dict[str, float]) -> T:
        """Do ``work`` on a thread in the time of the leg ``name``.

        Raises LegFailed where it is late, and what the work raises.
        """
        limit = recipe.timeouts.get(name, 5.0)
        clock, asked = Clock(), time.perf_counter()

        def done() -> T:
            with clock.running():
                return work()

        task = self._threads.submit(name, done)
        try:
            return _wait(task, clock, limit, asked)
        except TimedOut:
            self._threads.give_up(task)
            raise LegFailed(_late(clock, limit, asked)) from None
        finally:
            timings[name] = clock.spent()


def _late(clock: Clock, limit: float, asked: float) -> str:
    """Return why work that was ``asked`` at that time has no answer."""
    waiting = not clock.begun and time.perf_counter() - asked >= _LONGEST_QUEUE
    return f"no thread within {_LONGEST_QUEUE:g} s" if waiting else f"no answer within {limit:g} s"


def _cancelled(cancel: Callable[[], None]) -> str | None:
    """Cancel what a leg asks of the store; return why that failed, if it did: the leg is late in any case."""
    try:
        cancel()
    except Exception as error:  # noqa: BLE001  # whatever the driver of the store raises
        return reason(error)
    return None


def _wait(future: Future[T], clock: Clock, limit: float, asked: float) -> T:
    """Return the answer of work, ``asked`` at that time, whose clock has not run for ``limit`` s. Raises TimedOut.

    Waiting for a thread, for a connection, or for the model to be read from disk, is not on the leg's time, and has an
    end of its own.
    """
    while True:
        waited = time.perf_counter() - asked
        most = limit + _LONGEST_LOADING if clock.begun else _LONGEST_QUEUE
        left = min(limit - clock.spent(), most - waited)
        if left <= 0:
            raise TimedOut
        try:
            return future.result(timeout=max(left, 0.01))
        except TimedOut:
            if future.done():  # a leg's own error of that name
                return future.result()


def reason(error: Exception) -> str:
    """Return why something could not answer, on one line."""
    message = error.message if isinstance(error, SemmemError) else f"{type(error).__name__}: {error}"
    return " ".join(message.split())[:500]
