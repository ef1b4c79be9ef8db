"""Vacuum tables in PostgreSQL, and let statements that cannot run in a transaction give way to others."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

from psycopg import Error, sql
from psycopg.errors import DiskFull, InsufficientPrivilege, LockNotAvailable, QueryCanceled

from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

__all__ = ["PATIENCE", "REWRITING", "cancel", "patient", "rewrite", "session_setting", "vacuum"]

_SQL = statements("postgres")

PATIENCE = "1500ms"
"""How long upkeep waits for a table that others use (``lock_timeout``), and others behind it at most."""

_LOOK_S = 0.02
"""Seconds between two looks at who waits for a table that is being rewritten; so long, and some more, they wait."""

_TRIES, _PAUSE_S = 3, 0.5
"""How often a table is rewritten anew that somebody waited for, and the seconds between."""

_CANCEL_S = 1.0

REWRITING: Mapping[str, str] = {"client_connection_check_interval": "100ms"}
"""Settings of a connection that rewrites a table, since a client that was killed cancels nothing.

They hold from its beginning: a server that checks every 5 s goes by a later ``SET`` only after the next check.
"""


@contextmanager
def session_setting(connection: Connection, name: str, value: str) -> Iterator[None]:
    """Change a setting of the session inside the block, for what runs in several transactions or in none.

    The former value is restored after an error as well.
    """
    before = only(connection.execute(_SQL["session_get"], {"name": name}))[0]
    connection.execute(_SQL["session_set"], {"name": name, "value": value})
    try:
        yield
    finally:
        if not connection.closed and not connection.broken:  # the pool discards a broken connection
            connection.execute(_SQL["session_set"], {"name": name, "value": before})


def patient(connection: Connection) -> AbstractContextManager[None]:
    """Bound the wait for a table, behind which others queue, inside the block."""
    return session_setting(connection, "lock_timeout", PATIENCE)


def vacuum(connection: Connection, tables: Collection[str], *options: str) -> None:
    """Vacuum some tables with the given options of VACUUM.

    The first vacuum of a page logs it whole, and compressing it takes ten times as long as all the rest. So the log is
    not compressed meanwhile where this user may say so, which only a superuser may.
    """
    command = sql.SQL("VACUUM {options} {tables}").format(
        options=sql.SQL(f"({', '.join(options)})" if options else ""),
        tables=sql.SQL(", ").join(sql.Identifier("semmem", table) for table in tables),
    )
    with ExitStack() as settings:
        with suppress(InsufficientPrivilege):
            settings.enter_context(session_setting(connection, "wal_compression", "off"))
        connection.execute(command)


def rewrite(connection: Connection, watcher: Connection, table: str) -> bool:
    """Rewrite the files of a table by VACUUM FULL, which nobody can read meanwhile; return whether that was done.

    As soon as ``watcher``, another connection, sees somebody wait for it, the rewriting is cancelled, and the table
    stays as it was. It is tried a few times, but not again where the disk has no room for the new files.
    ``connection`` has the settings ``REWRITING``, and is to be closed then; see ``cancel``.
    """
    connection.execute(f"SET lock_timeout TO '{PATIENCE}'")
    for turn in range(_TRIES):
        if turn:
            time.sleep(_PAUSE_S)
        try:
            if _rewritten(connection, watcher, table):
                return True
        except DiskFull:
            return False
    return False


def _rewritten(connection: Connection, watcher: Connection, table: str) -> bool:
    command, who = sql.SQL("VACUUM (FULL) {}").format(sql.Identifier("semmem", table)), connection.info.backend_pid
    with ThreadPoolExecutor(1, thread_name_prefix="semmem-rewrite") as thread:
        work = thread.submit(connection.execute, command)
        try:
            while (
                not wait([work], _LOOK_S).done and not only(watcher.execute(_SQL["rewrite_awaited"], {"pid": who}))[0]
            ):
                pass
        finally:
            cancel(work, connection)
    try:
        work.result()
    except (QueryCanceled, LockNotAvailable):
        return False
    return True


def cancel(work: Future[Any], connection: Connection) -> None:
    """Cancel the statements of a thread until it ends: a cancelling before a statement begins is lost.

    The connection is to be closed then: a late cancelling would meet what follows.
    """
    while not work.done():
        with suppress(Error):
            connection.cancel_safe(timeout=_CANCEL_S)
        wait([work], _LOOK_S)
