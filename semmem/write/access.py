"""Count how often and when recalls returned a memory; counts are kept in memory and written in the background."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from semmem.model.errors import SemmemError
from semmem.model.history import Access
from semmem.model.store import RecallStore

__all__ = ["EVERY_S", "MOST_WAITING", "AccessCounter", "is_logging", "unlogged"]

EVERY_S = 30.0
"""Seconds after the first unwritten recall at which the counts are written."""

MOST_WAITING = 10_000
"""The most memories whose counts may wait to be written; further memories are not counted while these wait."""

_LONGEST_S = 3_600.0
"""The longest pause between two tries, in seconds; every failed try doubles the pause, as in a read-only store."""

_AT_ONCE = 500
"""The number of memories whose counts are written in one transaction."""

_PATIENCE_S = 5.0
"""Seconds that ``close`` waits for the last counts to be written, and after which a failure ends a ``write``."""

Name: TypeAlias = tuple[str, str]

_logging: ContextVar[bool] = ContextVar("semmem_logging", default=True)


@contextmanager
def unlogged() -> Iterator[None]:
    """Log and count no recall in this block, such as a recall repeated only to explain an earlier one."""
    before = _logging.set(False)
    try:
        yield
    finally:
        _logging.reset(before)


def is_logging() -> bool:
    """Return whether recalls are logged and counted now; False inside an ``unlogged`` block."""
    return _logging.get()


class AccessCounter:
    """Counts accesses for one store; safe to share between threads. Counts of several processes add up in the store.

    ``note`` does not touch the store. ``write`` runs ``every_s`` seconds later and on ``close``; counts not yet written
    are lost when the process is killed. A failed write is tried again and reported to nobody, because no answer depends
    on the counts.
    """

    def __init__(self, life: RecallStore | None, *, every_s: float = EVERY_S) -> None:
        self._life = life
        self._every_s = self._pause_s = every_s
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[Name, Access] = {}
        self._timer: threading.Timer | None = None
        self._closed = False
        self._process = os.getpid()

    def note(self, names: Iterable[Name]) -> None:
        """Count one access now for each (namespace, id), unless inside an ``unlogged`` block."""
        if self._life is None or not is_logging():
            return
        now = datetime.now(UTC)
        self._after_fork()
        with self._lock:
            if self._closed:
                return
            self._add({name: Access(1, now) for name in names})
            self._wake()

    def waiting(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return the accesses that are counted but not written yet, by id."""
        self._after_fork()
        with self._lock:
            return {id: self._waiting[namespace, id] for id in ids if (namespace, id) in self._waiting}

    def write(self, namespace: str | None = None) -> int:
        """Write the counts that wait now, in small transactions; return for how many memories.

        Those of recalls meanwhile wait for the next call: beside readers without a pause this one would never end. With
        a ``namespace`` only those of its memories are written. Counts that could not be written are kept, and those of
        other namespaces are written still, unless the failure took seconds, as where the whole store is in use. Raises
        the first error of the store.
        """
        if self._life is None:
            return 0
        count, failures, until = 0, list[Exception](), time.monotonic() + _PATIENCE_S
        self._after_fork()
        with self._writing:
            for names in self._batches(namespace):
                try:
                    count += self._written(self._life, names)
                except Exception as error:  # noqa: BLE001  # a node of several may be down
                    failures.append(error)
                    if time.monotonic() > until:
                        break
        if failures:
            raise failures[0]
        return count

    def _written(self, life: RecallStore, names: Sequence[Name]) -> int:
        """Write the counts of some memories of one namespace in one transaction, or keep them."""
        some = self._take(names)
        try:
            return life.count_accesses(names[0][0], {id: access for (_, id), access in some.items()})
        except BaseException:
            with self._lock:
                self._add(some)
            raise

    def settle(self, namespace: str) -> None:
        """Write the counts of a namespace before its memories go or it gets another name; those that fail are kept."""
        with suppress(SemmemError):
            self.write(namespace)

    def close(self) -> None:
        """Write the remaining counts, for a few seconds at most, and stop counting."""
        self._after_fork()
        with self._lock:
            self._closed = True
            timer, self._timer = self._timer, None
            has_unwritten = bool(self._waiting) or self._writing.locked()
        if timer is not None:
            timer.cancel()
        if has_unwritten:  # on a thread, so that close does not wait for a store that does not answer
            last = threading.Thread(target=self._try, name="semmem-access", daemon=True)
            last.start()
            last.join(_PATIENCE_S)

    def _try(self) -> bool:
        try:
            self.write()
        except Exception:  # noqa: BLE001  # no answer depends on the counts; the next try may write them
            return False
        return True

    def _tick(self) -> None:
        """Write the counts, and schedule another try where that fails."""
        good = self._try()
        with self._lock:
            self._pause_s = self._every_s if good else min(2 * self._pause_s, _LONGEST_S)
            self._timer = None
            if self._waiting and not self._closed:
                self._wake()

    def _wake(self) -> None:
        """Start the timer unless it runs. The caller holds the lock."""
        if self._timer is None and self._waiting:
            self._timer = threading.Timer(self._pause_s, self._tick)
            self._timer.name, self._timer.daemon = "semmem-access", True
            self._timer.start()

    def _add(self, accesses: Mapping[Name, Access]) -> None:
        """Add counts to those that wait to be written. The caller holds the lock."""
        for name, access in accesses.items():
            before = self._waiting.get(name)
            if before is not None:
                access = Access(before.count + access.count, max(before.last, access.last))
            elif len(self._waiting) >= MOST_WAITING:
                continue
            self._waiting[name] = access

    def _batches(self, namespace: str | None) -> list[list[Name]]:
        """Return the memories whose counts wait now, in order; a batch is of one namespace."""
        with self._lock:
            waiting = sorted(name for name in self._waiting if namespace in (None, name[0]))
        groups = (list(names) for _, names in groupby(waiting, key=itemgetter(0)))
        return [names[start : start + _AT_ONCE] for names in groups for start in range(0, len(names), _AT_ONCE)]

    def _take(self, names: Sequence[Name]) -> dict[Name, Access]:
        """Remove and return the counts of some memories."""
        self._after_fork()
        with self._lock:
            return {name: self._waiting.pop(name) for name in names if name in self._waiting}

    def _after_fork(self) -> None:
        """Drop counts and locks inherited from a parent process, which writes its counts itself."""
        if self._process != os.getpid():
            self._process, self._timer, self._waiting = os.getpid(), None, {}
            self._lock, self._writing = threading.Lock(), threading.Lock()
