"""Legs asked side by side, each on a thread and within its time; one that fails or is late is degraded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimedOut
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from semmem.model.clock import Clock
from semmem.model.errors import EmbedderMismatch, EmbedderReplaced, LegFailed, SemmemError
from semmem.model.exchange import Question, Ranking, Scope
from semmem.model.protocols import Leg
from semmem.model.recipe import Recipe
from semmem.model.store import Store
from semmem.rank_cap.places import USUAL_DEPTH
from semmem.read.candidates import Candidates
from semmem.read.threads import Task, Threads

__all__ = ["Asking", "deeper", "reason"]

_LONGEST_LOADING = 120.0
"""Seconds that the first question of a process waits for the model; a slow disk needs tens of them."""

_LONGEST_QUEUE = 30.0
"""Seconds that the legs asked side by side wait for threads, all of them together."""


class Asking:
    """The threads on which the legs of a store answer.

    ``renewed`` says, when a leg met vectors of another embedder than the question's, whether that one is at hand.
    """

    def __init__(self, store: Store, legs: Mapping[str, Leg], renewed: Callable[[], bool]) -> None:
        self._store = store
        self._legs = legs
        self._renewed = renewed
        self._threads = Threads()

    def close(self) -> None:
        """Stop the threads; legs that still run finish by themselves."""
        self._threads.close()

    @contextmanager
    def prepared(
        self, question: Question, scope: Scope, recipe: Recipe, *, wanted: bool
    ) -> Iterator[Future[Any] | None]:
        """Let the graph leg look up what the question names while the other legs work; it waits for the result.

        At the end the look-up is over: where the graph leg gave up, nobody waits for it any more.
        """
        prepare = getattr(self._legs.get("graph"), "prepare", None) if wanted else None
        if prepare is None:
            yield None
            return
        cancels: list[Callable[[], None]] = []

        def work() -> Any:
            with self._store.session() as cancel:
                cancels.append(cancel)
                return prepare(question, scope, recipe)

        try:
            looking = self._threads.submit("graph", work)
        except LegFailed:  # the graph leg is told so itself when it is asked
            yield None
            return
        try:
            yield looking
        finally:
            self._threads.give_up(looking)
            for cancel in cancels:
                _cancelled(cancel)

    def ask(
        self,
        legs: Sequence[str],
        question: Question,
        scope: Scope,
        recipe: Recipe,
        degraded: dict[str, str],
        timings: dict[str, float],
    ) -> dict[str, Ranking]:
        """Run ``legs`` side by side; one that fails or takes too long is degraded, with the reason."""

        cancels: dict[str, Callable[[], None]] = {}
        clocks = {name: Clock() for name in legs}

        def work(name: str) -> Ranking:
            try:
                with clocks[name].running(), self._store.session() as cancels[name]:
                    return self._legs[name].search(question, scope, recipe)
            finally:
                timings[name] = clocks[name].spent()

        answers: dict[str, Ranking] = {}
        running: dict[str, Task[Ranking]] = {}
        asked = time.perf_counter()
        for name in sorted(legs):
            try:
                running[name] = self._threads.submit(name, partial(work, name))
            except LegFailed as error:
                degraded[name] = error.message
        for name, task in running.items():
            limit = recipe.timeouts.get(name, 5.0)
            try:
                answers[name] = _wait(task, clocks[name], limit, asked)
                degraded |= answers[name].degraded
            except TimedOut:
                self._threads.give_up(task)
                late = clocks[name].begun
                degraded[name] = f"no answer within {limit:g} s" if late else f"no thread within {_LONGEST_QUEUE:g} s"
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


def _cancelled(cancel: Callable[[], None]) -> str | None:
    """Cancel what a leg asks of the store; return why that failed, if it did: the leg is late in any case."""
    try:
        cancel()
    except Exception as error:  # noqa: BLE001  # whatever the driver of the store raises
        return reason(error)
    return None


def _wait(future: Future[Ranking], clock: Clock, limit: float, asked: float) -> Ranking:
    """Return the answer of a leg, ``asked`` at that time, whose clock has not run for ``limit`` s. Raises TimedOut.

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


_DEEPEST = 1_000


def deeper(found: Candidates) -> Recipe | None:
    """Return the recipe with the depth of the legs that were cut raised eightfold; None when no leg was cut.

    Folding (copies of one text, parts of one memory) can leave fewer hits than were asked for.
    """
    depths = _full_depths(found.recipe)
    cut_off = {leg: 8 * depths[leg] for leg, r in found.rankings.items() if leg in depths and len(r) >= depths[leg]}
    short = {leg: depth for leg, depth in cut_off.items() if depths[leg] < _DEEPEST}
    return replace(found.recipe, depths={**found.recipe.depths, **short}) if short else None


def _full_depths(recipe: Recipe) -> dict[str, int]:
    return {leg: n for leg in recipe.legs if (n := recipe.depths.get(leg, USUAL_DEPTH)) >= USUAL_DEPTH}
