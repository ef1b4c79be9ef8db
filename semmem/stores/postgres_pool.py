"""Connections to PostgreSQL, and how a piece of work runs on one: retried, with a time limit, in a transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from semmem.errors import StoreClosed, StoreUnavailable
from semmem.stores.arrays import register_arrays
from semmem.stores.migrate import migrate
from semmem.stores.statements import statements

__all__ = ["Pooled", "among"]

T = TypeVar("T")
_SQL = statements("postgres")
_TRIES = 6
_UNLIMITED = 0.0


class Pooled:
    """A pool of connections; ``conninfo`` is called before every new one, so a stopped server starts again."""

    def __init__(self, url: str, conninfo: Callable[[], str], *, pool_size: int = 8) -> None:
        self.url = url
        self._deadline = threading.local()
        migrate(conninfo())
        self._pool = ConnectionPool(
            conninfo=conninfo,
            min_size=1,
            max_size=pool_size,
            kwargs={"autocommit": True},
            configure=_configure,
            open=True,
            timeout=30,
            max_idle=60,
            name="semmem",
        )

    def close(self) -> None:
        """Give the connections back; the data stays."""
        self._pool.close()

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Let the server cancel statements of this thread that run longer than ``seconds``."""
        self._deadline.seconds = seconds
        try:
            yield
        finally:
            self._deadline.seconds = _UNLIMITED

    def _run(self, work: Callable[[Any], T]) -> T:
        """Run ``work`` on a connection; deadlocks and lost connections are tried again, as ids are idempotent."""
        for attempt in range(_TRIES):
            try:
                with self._pool.connection() as connection:
                    _set_timeout(connection, getattr(self._deadline, "seconds", _UNLIMITED))
                    return work(connection)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                if attempt == _TRIES - 1:
                    raise
                time.sleep(0.01 * 2**attempt)
            except PoolClosed as error:
                raise StoreClosed() from error
            except (psycopg.errors.DiskFull, PoolTimeout) as error:
                raise StoreUnavailable(f"The database server cannot go on: {_sentence(error)}") from error
            except psycopg.errors.QueryCanceled:
                raise
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if attempt >= 2:
                    raise StoreUnavailable(f"The database server cannot be reached: {_sentence(error)}") from error
                time.sleep(0.1 * 2**attempt)
        raise AssertionError("unreachable")

    def _rows(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        """Fetch all rows in binary format, so that bytea and numbers arrive as they are."""
        return self._run(lambda c: c.execute(_SQL[statement], parameters, binary=True).fetchall())

    def _transaction(self, work: Callable[[Any], T]) -> T:
        def run(connection: Any) -> T:
            with connection.transaction():
                return work(connection)

        return self._run(run)


def _configure(connection: Any) -> None:
    connection.execute(_SQL["session"])
    register_arrays(connection)
    connection.prepare_threshold = 3


def _set_timeout(connection: Any, seconds: float) -> None:
    if getattr(connection, "semmem_timeout", _UNLIMITED) != seconds:
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (str(int(seconds * 1000)),))
        connection.semmem_timeout = seconds


def among(namespaces: Sequence[str], ords: Collection[int]) -> dict[str, Any]:
    """Return the parameters of a statement about some ords of some namespaces."""
    return {"namespaces": list(namespaces), "ords": np.fromiter(ords, np.int64, len(ords))}


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
