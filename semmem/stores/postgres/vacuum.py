"""Vacuum tables in PostgreSQL, and change a setting of a session for a statement that cannot run in a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress

from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

__all__ = ["session_setting", "vacuum"]

_SQL = statements("postgres")


@contextmanager
def session_setting(connection: Connection, name: str, value: str) -> Iterator[None]:
    """Change a setting of the session inside the block, for statements that cannot run in a transaction.

    The former value is restored after an error as well.
    """
    before = only(connection.execute(_SQL["session_get"], {"name": name}))[0]
    connection.execute(_SQL["session_set"], {"name": name, "value": value})
    try:
        yield
    finally:
        if not connection.closed and not connection.broken:  # the pool discards a broken connection
            connection.execute(_SQL["session_set"], {"name": name, "value": before})


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
