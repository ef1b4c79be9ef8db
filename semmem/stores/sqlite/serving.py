"""What servers over one SQLite file share: keys, and answers to requests that are sent again."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from semmem.model.errors import LimitExceeded, StoreError
from semmem.model.store.serving import KeyRows, another_request, rates_unshared, still_at_work
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.write import microsecond

if TYPE_CHECKING:
    from semmem.stores.sqlite.store import SqliteStore

__all__ = ["SqliteServing"]

_SQL = statements("sqlite")
_DAY = 86_400_000_000
_PATIENCE_S = 5.0
"""Seconds to wait for another server that is at work on the same request."""
_PAUSE_S = 0.05


class _Kept(Exception):
    """Another process has kept an answer meanwhile."""

    def __init__(self, answer: str, unscrubbed: bool) -> None:
        super().__init__(answer, unscrubbed)
        self.answer = answer
        self.unscrubbed = unscrubbed


class SqliteServing:
    """The keys and the kept answers of one file; see ServingStore."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def once(
        self, key: bytes, request: bytes, work: Callable[[], str], *, together: bool, keep_days: float
    ) -> tuple[str, bool]:
        """Return the kept answer for ``key``, or that of ``work``; see ServingStore.

        The write lock is taken with the first write of ``work``. Who waited for it finds what was kept meanwhile. Where
        ``work`` is several transactions, a file beside the store's is the claim.
        """
        now = microsecond(datetime.now(UTC))
        row = {"key": key, "request": request, "now": now, "answers_before": now - int(keep_days * _DAY)}

        def check(connection: sqlite3.Connection) -> None:
            kept = connection.execute(_SQL["answered_get"], row).fetchone()
            if kept is None:
                return
            if kept[0] != request:
                raise another_request()
            raise _Kept(kept[1], bool(kept[2]))

        def keep(connection: sqlite3.Connection, answer: str, unscrubbed: bool) -> None:
            connection.execute(_SQL["answered_set"], {**row, "answer": answer, "unscrubbed": unscrubbed})
            connection.execute(_SQL["answered_few"], row)

        unscrubbed = found = False
        try:
            if together:
                self._store._run(check)
                with self._store.whole(check) as whole:
                    try:
                        answer = work()
                    finally:
                        unscrubbed = whole.unscrubbed
                    self._store._writing(lambda c: keep(c, answer, unscrubbed))
            else:
                with self._claimed(key):
                    self._store._run(check)
                    answer = work()
                    with suppress(StoreError, sqlite3.Error):  # what is done is done, whether or not that can be kept
                        self._store._writing(lambda c: keep(c, answer, False))
        except _Kept as kept:
            answer, unscrubbed, found = kept.answer, kept.unscrubbed, True
        except BaseException:
            if unscrubbed:  # nothing was forgotten now, but an earlier call may have left it
                self._store.scrub()
            raise
        if unscrubbed:
            self._store.scrub()
            self._store._writing(lambda c: c.execute(_SQL["answered_scrubbed"], row))
        return answer, found

    @contextmanager
    def _claimed(self, key: bytes) -> Iterator[None]:
        """Claim an Idempotency-Key, also that of a process that is killed.

        Raises LimitExceeded where another server has it for too long.
        """
        end = time.monotonic() + _PATIENCE_S
        with ExitStack() as claim:
            while True:
                try:
                    claim.enter_context(self._store.held(f"request-{key.hex()[:16]}", still_at_work))
                    break
                except LimitExceeded:
                    if time.monotonic() > end:
                        raise
                time.sleep(_PAUSE_S)
            yield

    def key_list(self) -> KeyRows:
        """Return every key."""
        return self._store._run(_keys)

    def change_keys(self, change: Callable[[KeyRows], KeyRows]) -> None:
        """Replace all keys by what ``change`` makes of them; see ServingStore."""

        def work(connection: sqlite3.Connection) -> None:
            changed = change(_keys(connection))
            connection.execute(_SQL["key_clear"])
            rows: list[dict[str, Any]] = [{"id": key["id"], "key": json.dumps(dict(key))} for key in changed]
            connection.executemany(_SQL["key_add"], rows)

        self._store._writing(work)

    def take_tokens(self, client: bytes, count: int, *, rate: float, burst: float) -> tuple[int, float]:
        """Raise InvalidInput: a file is served by one machine."""
        raise rates_unshared("SQLite")


def _keys(connection: sqlite3.Connection) -> KeyRows:
    return [json.loads(key) for (key,) in connection.execute(_SQL["key_list"])]
