"""What servers over one SQLite file share: keys, and answers to requests that are sent again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from semmem.model.errors import LimitExceeded, StoreError
from semmem.model.store.serving import KeyRows, another_request, rates_unshared, still_at_work
from semmem.stores.kept_answers import Answer, wait_for_claim
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.connection import REQUEST
from semmem.stores.sqlite.write import microsecond

if TYPE_CHECKING:
    from semmem.stores.sqlite.store import SqliteStore

__all__ = ["SqliteServing"]

_SQL = statements("sqlite")
_DAY = 86_400_000_000


class _Kept(Exception):
    """Another process has kept an answer meanwhile."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


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
            raise _Kept(Answer(kept[1], bool(kept[2]), found=True))

        def keep(connection: sqlite3.Connection, answer: Answer) -> None:
            whole_row = {**row, "answer": answer.text, "unscrubbed": answer.unscrubbed}
            connection.execute(_SQL["answered_set"], whole_row)
            connection.execute(_SQL["answered_few"], row)

        unscrubbed = False
        try:
            if together:
                self._store._run(check)
                with self._store.whole(check) as whole:
                    try:
                        text = work()
                    finally:
                        unscrubbed = whole.unscrubbed
                    answer = Answer(text, unscrubbed, found=False)
                    self._store._writing(lambda c: keep(c, answer))
            else:
                with self._claimed(key):
                    self._store._run(check)
                    answer = Answer(work(), unscrubbed=False, found=False)
                    with suppress(StoreError, sqlite3.Error):  # what is done is done, whether or not that can be kept
                        self._store._writing(lambda c: keep(c, answer))
        except _Kept as kept:
            answer = kept.answer
        except BaseException:
            if unscrubbed:  # nothing was forgotten now, but an earlier call may have left it
                self._store.scrub()
            raise
        if answer.unscrubbed:
            self._store.scrub()
            self._store._writing(lambda c: c.execute(_SQL["answered_scrubbed"], row))
        return answer.text, answer.found

    @contextmanager
    def _claimed(self, key: bytes) -> Iterator[None]:
        """Claim an Idempotency-Key, also that of a process that is killed.

        Raises LimitExceeded where another server has it for too long.
        """
        with ExitStack() as held:

            def claim() -> bool:
                try:
                    held.enter_context(self._store.held(f"{REQUEST}{key.hex()[:16]}", still_at_work))
                except LimitExceeded:
                    return False
                return True

            wait_for_claim(claim)
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
