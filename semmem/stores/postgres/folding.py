"""Fold beside a bulk: a thread puts a batch in its place while the writer prepares the next one.

A fold holds the lock of its namespace, so the next batch could not be written earlier anyway.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import psycopg

from semmem.model.errors import SemmemError
from semmem.stores.postgres import postings

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["Folding", "left_to_maintain"]

_THREADS = 4
"""Folds at the same time, of bulks in several threads of this process; each has a connection of its own."""


def left_to_maintain(error: Exception) -> dict[str, str]:
    """Return the sentence for a fold that failed, by "maintain": the memories are stored and found all the same."""
    return {"maintain": f"Folding is left to `semmem maintain`: {error}"}


class Folding:
    """The folds of one store that go on beside its writers, on a second connection; safe for several threads."""

    def __init__(self, store: PostgresStore, *, connections: int) -> None:
        self._store = store
        self._apart = connections > 1
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._running: dict[str, list[Future[None]]] = defaultdict(list)

    def tidy(
        self, namespaces: Iterable[str], backlog: Mapping[str, tuple[int, int, int]], *, bulk: bool
    ) -> dict[str, str]:
        """Fold and compact namespaces where that is due, of a ``bulk`` in a thread; return why one is left.

        ``backlog`` has the row of that statement where it is known.
        """
        try:
            for namespace in namespaces:
                tidy = partial(postings.tidy, self._store, namespace, backlog.get(namespace), bulk=bulk)
                if not (bulk and self._apart and self._begun(namespace, tidy)):
                    tidy()
        except (SemmemError, psycopg.Error) as error:  # the rows are committed; the next writer or maintain folds
            return left_to_maintain(error)
        return {}

    def _begun(self, namespace: str, work: Callable[[], None]) -> bool:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="semmem-fold")
            with suppress(RuntimeError):  # no thread can be started while the process ends
                self._running[namespace].append(self._threads.submit(work))
                return True
        return False

    def finish(self, namespaces: Collection[str]) -> dict[str, str]:
        """Wait for the folds of some namespaces; return why one is left to maintain, by "maintain"."""
        with self._lock:
            running = [future for namespace in namespaces for future in self._running.pop(namespace, ())]
        left: dict[str, str] = {}
        for future in running:
            try:
                future.result()
            except (SemmemError, psycopg.Error) as error:
                left = left_to_maintain(error)
        return left

    def close(self) -> None:
        """End the threads once their folds are done."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
