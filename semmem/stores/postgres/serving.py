"""What servers over one PostgreSQL store share: keys, and answers to requests that are sent again."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from psycopg import Error
from psycopg.types.json import Jsonb

from semmem.model.errors import StoreError
from semmem.model.store.serving import KeyRows, another_request
from semmem.stores.kept_answers import Answer, wait_for_claim
from semmem.stores.postgres.connection import Interrupted
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["PostgresServing"]

_SQL = statements("postgres")

_TRIES = 6


class PostgresServing:
    """The keys and the kept answers of one store; see ServingStore."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def once(
        self, key: bytes, request: bytes, work: Callable[[], str], *, together: bool, keep_days: float
    ) -> tuple[str, bool]:
        """Return the kept answer for ``key``, or that of ``work``; see ServingStore."""
        row = {"key": key, "request": request, "answers_days": keep_days}
        answer = self._together(row, work) if together else self._apart(row, work)
        if answer.unscrubbed:
            self._store.scrub()
            self._store.execute("answered_scrubbed", row)
        return answer.text, answer.found

    def _together(self, row: dict[str, Any], work: Callable[[], str]) -> Answer:
        """Do ``work`` and keep its answer in one transaction."""
        for attempt in range(_TRIES):
            unscrubbed = False
            try:
                with self._store.whole() as (connection, whole):
                    connection.execute(_SQL["answered_patience"])
                    _claim(connection, "answered_lock", row)
                    if kept := _kept(connection, row):
                        return kept
                    try:
                        text = work()
                    finally:
                        unscrubbed = whole.unscrubbed
                    _keep(connection, row, answer := Answer(text, unscrubbed, found=False))
                return answer
            except (Interrupted, Error) as error:  # a lost connection may have committed; the next try finds out
                cause = error.__cause__ if isinstance(error, Interrupted) else error
                if attempt == _TRIES - 1 or not isinstance(cause, Error) or not self._store.passing(cause):
                    raise self._store.told(cause) from error
                time.sleep(0.02 * 2**attempt)
                self._store.renew(cause)
            except BaseException:
                if unscrubbed:  # nothing was forgotten now, but an earlier call may have left it
                    self._store.scrub()
                raise
        raise AssertionError("unreachable")

    def _apart(self, row: dict[str, Any], work: Callable[[], str]) -> Answer:
        """Do ``work`` once, and keep its answer afterwards; see ``_together``.

        The claim is held beside the pool, because ``work`` takes connections of the pool: where others hold them for
        their claims, all would wait for each other.
        """
        with closing(self._store.own_connection()) as connection:
            try:
                _claim(connection, "answered_hold", row)
            except Error as error:
                raise self._store.told(error) from error
            if kept := self._store.run(lambda c: _kept(c, row)):
                return kept
            answer = Answer(work(), unscrubbed=False, found=False)
            with suppress(StoreError, Error):  # what is done is done, whether or not its answer can be kept
                self._store.transaction(lambda c: _keep(c, row, answer))
            return answer

    def key_list(self) -> KeyRows:
        """Return every key."""
        return [key for (key,) in self._store.rows("key_list", {})]

    def take_tokens(self, client: bytes, count: int, *, rate: float, burst: float) -> tuple[int, float]:
        """Take up to ``count`` tokens from the bucket of ``client``; see ServingStore."""
        row = {"client": client, "count": count, "rate": rate, "burst": burst}

        def work(connection: Connection) -> tuple[int, float]:
            taken = connection.execute(_SQL["rate_take"], row).fetchone()
            if taken is None:
                connection.execute(_SQL["rate_begin"], row)
                connection.execute(_SQL["rate_few"])
                taken = only(connection.execute(_SQL["rate_take"], row))
            granted, left = taken
            return int(granted), 0.0 if granted else (1.0 - left) / rate

        return self._store.run(work)

    def change_keys(self, change: Callable[[KeyRows], KeyRows]) -> None:
        """Replace all keys by what ``change`` makes of them; see ServingStore."""

        def work(connection: Connection) -> None:
            connection.execute(_SQL["key_lock"])
            changed = change([key for (key,) in connection.execute(_SQL["key_list"])])
            connection.execute(_SQL["key_clear"])
            for key in changed:
                connection.execute(_SQL["key_add"], {"id": key["id"], "key": Jsonb(dict(key))})

        self._store.transaction_once(work)


def _claim(connection: Connection, lock: str, row: dict[str, Any]) -> None:
    """Claim an Idempotency-Key. Raises LimitExceeded where another server has it for too long."""
    wait_for_claim(lambda: bool(only(connection.execute(_SQL[lock], row))[0]))


def _kept(connection: Connection, row: dict[str, Any]) -> Answer | None:
    """Return the answer that is kept for an Idempotency-Key, if there is one.

    Raises InvalidInput where it is that of another request.
    """
    kept = connection.execute(_SQL["answered_get"], row).fetchone()
    if kept is None:
        return None
    if bytes(kept[0]) != row["request"]:
        raise another_request()
    return Answer(str(kept[1]), bool(kept[2]), found=True)


def _keep(connection: Connection, row: dict[str, Any], answer: Answer) -> None:
    """Keep an answer, in the caller's transaction."""
    connection.execute(_SQL["answered_set"], {**row, "answer": answer.text, "unscrubbed": answer.unscrubbed})
    connection.execute(_SQL["answered_few"], row)
