"""Row-level security: the database itself refuses rows of namespaces that the key of a call may not touch.

The policies compare the namespace of a row with a setting of the session. Each use of a connection tells the namespaces
of the present call there, so a call that semmem's own checks let through by mistake finds nothing. The owner of the
tables is not bound: migrations, ``maintain``, moves and rebuilds are its work.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from psycopg import sql
from psycopg.errors import InsufficientPrivilege, LockNotAvailable
from psycopg.pq import TransactionStatus

from semmem.model.errors import StoreUnavailable
from semmem.model.process.asker import permitted
from semmem.model.reports import RowSecurity
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

__all__ = ["extend", "note", "permit", "state", "switch", "to_copy"]

_SQL = statements("postgres")
_TRIES = 5
_PAUSE_S = 0.2
_ALL = "all"
"""The setting for all namespaces; those of a key are an array, so that no name can be taken for it."""

_told: WeakKeyDictionary[Connection, str | None] = WeakKeyDictionary()
"""The connections that policies bind, each with the setting of its session; None where a rollback may change it."""


def note(connection: Connection, *, bound: bool) -> None:
    """Note of a new connection, whose setting is that of all namespaces, whether policies bind it."""
    if bound:
        _told[connection] = _ALL


def permit(connection: Connection) -> None:
    """Tell the server which namespaces the present call may touch, where policies ask for them."""
    if connection not in _told:
        return
    names = permitted()
    setting = _ALL if names is None else _array(names)
    if _told[connection] != setting:
        idle = connection.info.transaction_status == TransactionStatus.IDLE
        _told[connection] = None
        connection.execute(_SQL["session_set"], {"name": "semmem.namespaces", "value": setting})
        _told[connection] = setting if idle else None


@contextmanager
def to_copy(connection: Connection, table: str, columns: sql.Composable) -> Iterator[sql.Composable]:
    """Yield what rows for ``table`` are copied into, in the caller's transaction.

    PostgreSQL copies into no table whose policies bind the user: there it is a table of the session, whose rows are
    inserted at the end, under the policies.
    """
    target = sql.Identifier("semmem", table)
    if connection not in _told:
        yield target
        return
    places = {"table": target, "incoming": sql.Identifier("pg_temp", f"incoming_{table}"), "columns": columns}
    connection.execute(sql.SQL(_SQL["incoming_table"]).format(**places))
    yield places["incoming"]
    for statement in ("incoming_move", "incoming_empty"):
        connection.execute(sql.SQL(_SQL[statement]).format(**places))


def _array(names: tuple[str, ...]) -> str:
    """Return names as an array of PostgreSQL in text."""
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ",".join(f'"{name}"' for name in quoted) + "}"


def state(connection: Connection) -> RowSecurity:
    """Return on which tables row-level security is on, and whether it binds the user of this connection."""
    rows = list(connection.execute(_SQL["row_security_tables"]))
    walled = tuple(name for name, on, policed in rows if on and policed)
    open_ = tuple(name for name, on, policed in rows if not (on and policed))
    user, bound = only(connection.execute(_SQL["row_security_binds"]))
    return RowSecurity(walled, open_, user, bool(bound))


def switch(connection: Connection, *, on: bool) -> RowSecurity:
    """Switch row-level security on or off for every table with a namespace, all or none, and return what is then.

    Raises StoreUnavailable for a store on several nodes, for a user who does not own the tables, and where a table
    stays in use.
    """
    if on and only(connection.execute(_SQL["nodes_known"]))[0]:
        raise StoreUnavailable(
            "This database has Citus, which does not pass the namespaces of a call on to its nodes, so row-level "
            "security cannot be switched on; leave it off, or keep the store on one server."
        )
    before = state(connection)
    try:
        _apply("row_security_on" if on else "row_security_off", connection, (*before.tables, *before.open))
    except InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"This database user may not change the policies of semmem's tables ({error.diag.message_primary}); run "
            "`semmem row-security` as their owner."
        ) from error
    return state(connection)


def extend(connection: Connection) -> None:
    """Switch row-level security on for the tables that lack it, where others have it."""
    now = state(connection)
    if now.tables and now.open:
        _apply("row_security_on", connection, now.open)


def _apply(statement: str, connection: Connection, tables: tuple[str, ...]) -> None:
    """Change tables in one transaction; whoever uses one is waited for, a few times."""
    for turn in range(_TRIES):
        try:
            with connection.transaction():
                connection.execute(_SQL["row_security_lock"])
                for table in tables:
                    connection.execute(sql.SQL(_SQL[statement]).format(table=sql.Identifier("semmem", table)))
            return
        except LockNotAvailable as error:
            if turn == _TRIES - 1:
                raise StoreUnavailable(
                    "A table of semmem stayed in use, so row-level security was not changed; try again."
                ) from error
            time.sleep(_PAUSE_S * 2**turn)
