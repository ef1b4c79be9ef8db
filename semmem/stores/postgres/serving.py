"""What servers over one PostgreSQL store share: keys, and answers to requests that are sent again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from psycopg import Error
from psycopg.types.json import Jsonb

from semmem.model.store.serving import KeyRows, another_request, still_at_work
from semmem.stores.postgres.connection import Interrupted
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["PostgresServing"]

_SQL = statements("postgres")

_TRIES = 6
_PATIENCE_S = 5.0
"""Seconds to wait for another server that is at work on the same request."""
_PAUSE_S = 0.05


class PostgresServing:
    """The keys and the kept answers of one store; see ServingStore."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def once(
        self, key: bytes, request: bytes, work: Callable[[], str], *, together: bool, keep_days: float
    ) -> tuple[str, bool]:
        """Return the kept answer for ``key``, or that of ``work``; see ServingStore."""
        row = {"key": key, "request": request, "answers_days": keep_days}
        for attempt in range(_TRIES):
            unscrubbed = False
            try:
                with self._store.whole() if together else self._store.beside() as (connection, whole):
                    kept = self._claimed(connection, row)
                    if kept is not None:
                        answer, unscrubbed = kept
                        break
                    try:
                        answer = work()
                    finally:
                        unscrubbed = whole is not None and whole.unscrubbed
                    connection.execute(_SQL["answered_set"], {**row, "answer": answer, "unscrubbed": unscrubbed})
                    connection.execute(_SQL["answered_few"], row)
                break
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
        if unscrubbed:
            self._store.scrub()
            self._store.execute("answered_scrubbed", row)
        return answer, kept is not None

    def _claimed(self, connection: Connection, row: dict[str, Any]) -> tuple[str, bool] | None:
        """Claim an Idempotency-Key for this transaction; return the answer that is kept for it, if there is one."""
        connection.execute(_SQL["answered_patience"])
        end = time.monotonic() + _PATIENCE_S
        while not only(connection.execute(_SQL["answered_lock"], row))[0]:
            if time.monotonic() > end:
                raise still_at_work()
            time.sleep(_PAUSE_S)
        kept = connection.execute(_SQL["answered_get"], row).fetchone()
        if kept is None:
            return None
        if bytes(kept[0]) != row["request"]:
            raise another_request()
        return str(kept[1]), bool(kept[2])

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
