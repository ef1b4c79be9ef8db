"""Ask the legs of a recall side by side, each on a thread and with a time limit, or at once in the recall's own thread.

A leg that fails or is late is reported as degraded; the other legs answer without it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimedOut
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from semmem.embedders.binding import LONGEST_LOADING
from semmem.model.errors import EmbedderMismatch, EmbedderReplaced, LegFailed, SemmemError, StoreClosed
from semmem.model.failure import reason
from semmem.model.process.clock import Clock
from semmem.model.process.forks import in_child
from semmem.model.recipe import Recipe
from semmem.model.store import SnapshotSource

__all__ = ["Asking", "Begun", "Task", "Threads"]

T = TypeVar("T")


_MOST_OVERDUE = 4
"""How many overdue tasks one leg may have before it is not asked any more."""

_IDLE_S = 60.0

_LONGEST_QUEUE = 30.0
"""Seconds that all legs of one recall together may wait for threads."""

_HANDED_OVER = 0.002
"""Seconds that a recall waits for the thread of the embedder to begin.

A thread that does not wait keeps the interpreter for 5 ms, so the model would run behind the other legs and not beside.
"""


class Task(Future[T]):
    """A future that knows which leg its work belongs to."""

    def __init__(self, leg: str, work: Callable[[], T]) -> None:
        super().__init__()
        self.leg = leg
        self.work: Callable[[], T] | None = work
        self.context = copy_context()  # carries the spans of tracing
        self.overdue = False


class Threads:
    """A pool of up to ``most`` threads that replaces threads whose task is overdue.

    The threads are daemons, so a process can end although a leg never returns.
    """

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._closed = False
        self.forked()
        in_child(self)

    def forked(self) -> None:
        """Count no thread and no task: a child process has none of its parent's."""
        self._change = threading.Condition()
        self._waiting: deque[Task[Any]] = deque()
        self._overdue: Counter[str] = Counter()
        self._alive = self._idle = 0

    def close(self) -> None:
        """Start no more tasks; running tasks end by themselves."""
        with self._change:
            self._closed = True
            waiting, self._waiting = self._waiting, deque()
            self._change.notify_all()
        for task in waiting:
            task.cancel()

    def submit(self, leg: str, work: Callable[[], T]) -> Task[T]:
        """Run ``work`` for ``leg`` on a thread.

        Raises LegFailed while too many tasks of this leg are overdue, and StoreClosed after ``close``.
        """
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
        """Cancel ``task`` if it has not begun; otherwise stop counting its thread, so that another can start."""
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
        """Wake an idle thread for a waiting task, or start a thread."""
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
        """Return the next task, or None after a minute without one and after ``close``."""
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
    """Run ``task`` unless it was cancelled, and store its answer or its error."""
    work, task.work = task.work, None
    if work is None or not task.set_running_or_notify_cancel():
        return
    try:
        answer = task.context.run(work)
    except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits for the task
        task.set_exception(error)
    else:
        task.set_result(answer)


class Begun(Generic[T]):
    """The work of one leg on a thread: its clock, the seconds the leg had worked before, and what cancels it."""

    task: Task[T]

    def __init__(self, spent: float) -> None:
        self.spent = spent
        self.start = time.perf_counter()
        self.clock = Clock()
        self.cancel: Callable[[], None] | None = None


class Asking:
    """Ask the legs on threads, each with a session of the source of its snapshots.

    ``renewed`` is called when a leg met vectors of another embedder than the question's. It returns whether that
    embedder is now at hand, so that the leg can be asked again.
    """

    def __init__(self, source: SnapshotSource, renewed: Callable[[], bool]) -> None:
        self._source = source
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
        at_once: Collection[str] = (),
    ) -> dict[str, T]:
        """Run the ``work`` of each leg side by side and return the answers by leg; see ``begin`` and ``answers``."""
        return self.answers(self.begin(work, degraded, timings, at_once), recipe, degraded, timings)

    def begin(
        self,
        work: Mapping[str, Callable[[], T]],
        degraded: dict[str, str],
        timings: dict[str, float],
        at_once: Collection[str] = (),
    ) -> dict[str, Begun[T]]:
        """Begin the ``work`` of each leg on a thread; return what ``answers`` waits for.

        The legs ``at_once`` work in this thread, after the others have begun, and are done when this returns: they only
        compute, and a thread would have to be waited for.

        A leg that is not asked any more is put into ``degraded`` with the reason. ``timings`` receives the seconds each
        leg worked; a leg that is asked a second time has only the rest of its time.
        """
        begun: dict[str, Begun[T]] = {}
        for name in sorted(work, key=lambda name: (name in at_once, name)):
            one: Begun[T] = Begun(timings.get(name, 0.0))
            run = partial(self._run_leg, name, work[name], one, timings)
            try:
                one.task = Task(name, run) if name in at_once else self._threads.submit(name, run)
            except LegFailed as error:
                degraded[name] = error.message
            else:
                begun[name] = one
                if name in at_once:
                    _do(one.task)
        return begun

    def _run_leg(self, name: str, work: Callable[[], T], one: Begun[T], timings: dict[str, float]) -> T:
        try:
            with one.clock.running(), self._source.session() as one.cancel:
                return work()
        finally:
            timings[name] = one.spent + one.clock.spent()

    def answers(
        self, begun: Mapping[str, Begun[T]], recipe: Recipe, degraded: dict[str, str], timings: dict[str, float]
    ) -> dict[str, T]:
        """Wait for what was begun and return the answers by leg.

        A leg that fails or exceeds its time is put into ``degraded`` with the reason.
        """
        answers: dict[str, T] = {}
        for name, one in begun.items():
            limit = recipe.timeouts.get(name, 5.0)
            try:
                answers[name] = _wait(one.task, one.clock, limit - one.spent, one.start)
            except TimedOut:
                self._threads.give_up(one.task)
                degraded[name] = _late(one.clock, limit, one.start)
                if one.cancel is not None and (failed := _cancelled(one.cancel)):
                    degraded[name] += f", and what it asks of the store goes on: {failed}"
            except EmbedderReplaced as error:
                if self._renewed():
                    raise
                degraded[name] = error.message
            except EmbedderMismatch:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever one leg raises, the others still answer
                degraded[name] = reason(error)
        return answers

    def once(self, name: str, work: Callable[[], T], recipe: Recipe, timings: dict[str, float]) -> Callable[[], T]:
        """Begin ``work`` on a thread, within the time limit of the leg ``name``; return what waits for its result.

        That raises LegFailed where the work is late or the leg is not asked any more, and whatever the work raises.
        """
        limit = recipe.timeouts.get(name, 5.0)
        clock, start, began = Clock(), time.perf_counter(), threading.Event()

        def run() -> T:
            with clock.running():
                began.set()
                return work()

        task: Task[T]
        try:
            task = self._threads.submit(name, run)
        except SemmemError as error:
            task = Task(name, run)
            task.set_exception(error)
        else:
            began.wait(_HANDED_OVER)

        def result() -> T:
            try:
                return _wait(task, clock, limit, start)
            except TimedOut:
                self._threads.give_up(task)
                raise LegFailed(_late(clock, limit, start)) from None
            finally:
                timings[name] = clock.spent()

        return result


def _late(clock: Clock, limit: float, start: float) -> str:
    """Return a sentence that says why work submitted at the time ``start`` has no answer."""
    waiting = not clock.begun and time.perf_counter() - start >= _LONGEST_QUEUE
    return f"no thread within {_LONGEST_QUEUE:g} s" if waiting else f"no answer within {limit:g} s"


def _cancelled(cancel: Callable[[], None]) -> str | None:
    """Cancel the leg's running statements in the store; return why cancelling failed, None where it succeeded."""
    try:
        cancel()
    except Exception as error:  # noqa: BLE001  # depends on the driver of the store
        return reason(error)
    return None


def _wait(future: Future[T], clock: Clock, limit: float, start: float) -> T:
    """Return the answer of a future; raise TimedOut once its clock has run for ``limit`` seconds.

    The time spent waiting for a thread, for a connection or for the model file does not count against ``limit``; it has
    a limit of its own.
    """
    while True:
        waited = time.perf_counter() - start
        most = limit + LONGEST_LOADING if clock.begun else _LONGEST_QUEUE
        rest = min(limit - clock.spent(), most - waited)
        if rest <= 0:
            raise TimedOut
        try:
            return future.result(timeout=max(rest, 0.01))
        except TimedOut:
            if future.done():  # the leg itself raised a TimeoutError
                return future.result()
