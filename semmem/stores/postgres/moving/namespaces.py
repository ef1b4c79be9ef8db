"""Rename or copy a namespace in transactions of bounded size.

The rows are copied as of one moment, in the order of their keys, under the new name, which nobody sees until it is
whole: its row says ``filling``. During a rename the row of the old name says ``moving``: it is read, and writers wait
or are refused. One short transaction opens the new name and closes the old one, whose row says ``emptying`` until its
rows are gone. A connection of its own holds a lock for each of the two names; a state without its lock was interrupted,
and ``finish`` ends it. Row ids stay the same, so packed data is not rewritten. Copied vectors are searched exactly
until ``maintain`` indexes them. Rows are copied through this process, because where tables are distributed a row cannot
change its namespace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from semmem.model.errors import Conflict, SemmemError, StoreUnavailable
from semmem.model.reports import no_memories
from semmem.stores.postgres.errors import error_at_work
from semmem.stores.postgres.moving import tables as postgres_tables
from semmem.stores.postgres.moving.tables import Table
from semmem.stores.postgres.saved import erase
from semmem.stores.postgres.typed import Connection, TupleRow, only
from semmem.stores.sql_files import check_limits, name_taken, statements

if TYPE_CHECKING:
    from semmem.stores.postgres.connection import Pooled

__all__ = ["AT_ONCE", "finish", "move"]

T = TypeVar("T")

_SQL = statements("postgres")

AT_ONCE = 5_000
"""The most rows that one transaction copies or deletes."""
_PATIENCE_S = 3.0
"""Seconds after which the server notices that a client process was killed."""
_PAUSE_S = 0.05
_OWN = ("namespace", "change", "namespace_setting", "meta", "access_key", "answered")
"""Tables that are not copied row by row: counts, changes, which are recorded anew, and settings, which are few."""

_LAST = "access"
"""The table that is emptied last: who writes accesses locks the memories alone, so it may get rows until these go."""


def move(pool: Pooled, old: str, new: str, *, stay: bool) -> int:
    """Rename the namespace ``old`` to ``new``, or copy it where ``stay`` is true; return how many memories it has.

    A call that was interrupted is begun anew by the same call, or finished where the new name was open already. Raises
    NotFound where ``old`` has no memories, Conflict where ``new`` is not empty, one of both is being dropped, or
    another process moves one of them, NamespaceFull where ``new`` may not hold so much.
    """
    with _alone(pool, old, new) as connection:
        was = {
            name: connection.execute(_SQL["moved_unfinished_of"], {"namespace": name}).fetchone() for name in (old, new)
        }
        for name in (old, new):
            _finish(pool, connection, name)
        if not stay and was[old] == ("emptying", new) and was[new] is None:
            return int(only(connection.execute(_SQL["moved_count"], {"namespace": new}))[0])
        try:
            count = _moved(pool, connection, old, new, stay=stay)
        except BaseException:
            with suppress(psycopg.Error, SemmemError):
                for name in (old, new):
                    _finish(pool, connection, name)  # first asks this connection, which still holds the locks
            raise
        if not stay:
            _finish(pool, connection, old)
    return count


def finish(pool: Pooled, *, beside: bool = False) -> int:
    """End the moves that were interrupted, ``beside`` this process's rebuild or not; return of how many namespaces."""
    ended = 0
    for name, *_ in pool.rows("moved_unfinished", {}):
        with suppress(Conflict), _alone(pool, name, patience=0.0, beside=beside) as connection:
            ended += _finish(pool, connection, name)
    return ended


def _moved(pool: Pooled, connection: Connection, old: str, new: str, *, stay: bool) -> int:
    """Copy everything to the new name, then open it, and close the old one unless it is to ``stay``."""
    tables = [table for table in postgres_tables.tables(connection) if table.name not in _OWN]
    _transaction(pool, partial(_begin, tables=tables, old=old, new=new, stay=stay))
    with postgres_tables.snapshot(connection):
        here = {"namespace": old}
        count, size = only(connection.execute(_SQL["moved_count"], here))
        if only(connection.execute(_SQL["moved_dropping"], here))[0]:
            raise Conflict(_dropping(old, new))
        limits = only(connection.execute(_SQL["moved_limits"], {"namespace": new}))
        check_limits(new, (*limits, count, size), count)
        namespace_row = _row(connection, old)
        namespace_row["number"] = max(namespace_row["changes"], _row(connection, new)["changes"]) + 1
        for table in reversed(tables):  # memories first: by these the scope of a recall knows what is not to be seen
            _copy(pool, connection, table.of(old, new), new)
        _write_changes(pool, connection, old, new, namespace_row["number"])
        settings = connection.execute(_SQL["moved_settings"], here).fetchall() if stay else None
    _transaction(
        pool, partial(_open, alone=connection, old=old, new=new, namespace_row=namespace_row, settings=settings)
    )
    return int(count)


def _begin(connection: Connection, tables: list[Table], old: str, new: str, *, stay: bool) -> None:
    """Hide the new name, and forbid to write to the old one unless it is to ``stay``."""
    connection.execute(_SQL["namespace_make"], {"namespace": new})
    rows = {name: _locked(connection, name) for name in sorted((old, new))}
    if any(row is not None and row[2] is not None for row in rows.values()):
        raise Conflict(_dropping(old, new))
    for table in tables:
        if only(connection.execute(_filled("moved_holds", table), {"namespace": new}))[0]:
            raise name_taken(new)
    if only(connection.execute(_SQL["moved_set"], {"namespace": new}))[0]:
        raise name_taken(new)
    if not only(connection.execute(_SQL["moved_there"], {"namespace": old}))[0]:
        raise no_memories(old)
    connection.execute(_SQL["moved_begin"], {"namespace": new, "state": "filling", "other": old})
    if not stay:
        connection.execute(_SQL["moved_begin"], {"namespace": old, "state": "moving", "other": new})


def _copy(pool: Pooled, connection: Connection, table: Table, new: str) -> None:
    """Copy the rows of a namespace in one table, some thousands a transaction."""
    after = None
    while True:
        upto = postgres_tables.end_of_range(connection, table, after, AT_ONCE)
        if upto is not None or postgres_tables.holds(connection, table, after, None):
            rows = postgres_tables.read(connection, table, after, upto)
            work = partial(postgres_tables.load, table=table, blocks=rows)
            _transaction(pool, partial(_still, work=work, alone=connection, name=new, state="filling"))
        if upto is None:
            return
        after = upto


def _write_changes(pool: Pooled, connection: Connection, old: str, new: str, number: int) -> None:
    """Record for readers of changes that the memories of the new name were written."""
    after = ""
    while True:
        parameters = {"namespace": old, "after": after, "limit": AT_ONCE}
        ids = [id for (id,) in connection.execute(_SQL["moved_ids"], parameters)]
        if not ids:
            return
        change = {"namespace": new, "number": number, "ids": ids}
        work = partial(_execute, statement=_SQL["moved_written"], parameters=change)
        _transaction(pool, partial(_still, work=work, alone=connection, name=new, state="filling"))
        after = ids[-1]


def _open(
    connection: Connection,
    alone: Connection,
    old: str,
    new: str,
    namespace_row: dict[str, Any],
    settings: list[Any] | None,
) -> None:
    """Open the new name, and close the old one where it has no ``settings`` of its own to keep (a rename)."""
    rows = {name: _locked(connection, name) for name in sorted((old, new))}
    alone.execute("SELECT 1")  # see _still
    stays = settings is not None
    states = {name: None if row is None else row[:2] for name, row in rows.items()}
    if states[new] != ("filling", old) or not (stays or states[old] == ("moving", new)):
        raise StoreUnavailable("The connection that moved the namespace was lost, and nothing was moved; try again.")
    if settings is None:
        namespace_row = {**_row(connection, old), "number": namespace_row["number"]}  # its limits may have been changed
        settings = connection.execute(_SQL["moved_settings"] + " FOR UPDATE", {"namespace": old}).fetchall()
    for name, value, changed_at in settings:
        row = {"namespace": new, "name": name, "value": Jsonb(value), "changed_at": changed_at}
        connection.execute(_SQL["moved_setting"], row)
    connection.execute(_SQL["moved_counts"], {**namespace_row, "namespace": new})
    logged, still = ({id for (id,) in connection.execute(_SQL["moved_log"], {"namespace": n})} for n in (new, old))
    # a hard forget in another namespace takes all rows of a recall, and has found none under the new name
    connection.execute(_SQL["moved_unlogged"], {"namespace": new, "recall_ids": sorted(logged - still)})
    if not stays:
        erase(connection, old)
        connection.execute(_SQL["drop_setting"], {"namespace": old})
        connection.execute(_SQL["moved_away"], {"namespace": old})
        connection.execute(_SQL["drop_said"], {"namespace": old})


def _finish(pool: Pooled, connection: Connection, name: str) -> bool:
    """End what is unfinished in a namespace, whose lock ``connection`` holds; return whether there was something."""
    if (row := _state(connection, name)) is None:
        return False
    where = {"namespace": name, "limit": AT_ONCE, "state": row[0]}
    if row[0] != "moving":
        tables = [table for table in postgres_tables.tables(connection) if table.name not in _OWN]
        tables.sort(key=lambda table: table.name == _LAST)
        steps: list[str | sql.Composed] = [_filled("moved_some", table) for table in tables]
        for statement in (*steps, _SQL["moved_change"]):
            work = partial(_execute, statement=statement, parameters=where)
            while _transaction(pool, partial(_still, work=work, alone=connection, name=name, state=row[0])):
                pass
    work = partial(_execute, statement=_SQL["moved_end"], parameters=where)
    _transaction(pool, partial(_still, work=work, alone=connection, name=name, state=row[0]))
    return True


def _still(connection: Connection, work: Callable[[Connection], T], alone: Connection, name: str, state: str) -> T:
    """Do ``work`` under the lock of the row of a namespace, if it is in that state and ``alone`` holds its other lock.

    Where the connection ``alone`` is lost, another process may end the move, and others write to the namespace.
    """
    row = _locked(connection, name)
    alone.execute("SELECT 1")
    if row is None or row[0] != state:
        raise StoreUnavailable(f"Another process has ended the rename or copy of {name!r}; look at both names.")
    return work(connection)


def _transaction(pool: Pooled, work: Callable[[Connection], T]) -> T:
    """Run ``work`` in a transaction of its own, once: what fails ends the move."""
    with pool.lasting() as connection, connection.transaction():
        return work(connection)


@contextmanager
def _alone(pool: Pooled, *names: str, patience: float = _PATIENCE_S, beside: bool = False) -> Iterator[Connection]:
    """Yield a connection that holds the locks of some namespaces. Raises Conflict where another process has one."""
    end = time.monotonic() + patience
    connection = pool.own_connection()
    try:
        try:
            connection.execute(_SQL["session"])
            if not beside:
                message = "Another process rebuilds this store; wait until it is done, or stop it."
                _take_lock(connection, "moved_beside", {}, end, message)
            for name in sorted(names):
                message = f"Another process is renaming or copying the namespace {name!r}; wait until it is done."
                _take_lock(connection, "moved_alone", {"namespace": name}, end, message)
            yield connection
        finally:
            connection.close()
            pool.use = object()
    except psycopg.Error as error:
        raise error_at_work(error) or error from error


def _take_lock(connection: Connection, lock: str, parameters: dict[str, str], end: float, message: str) -> None:
    """Take a lock of the session. Raises Conflict where it is not free in time."""
    while not only(connection.execute(_SQL[lock], parameters))[0]:
        if time.monotonic() > end:
            raise Conflict(message)
        time.sleep(_PAUSE_S)


def _execute(connection: Connection, statement: str | sql.Composed, parameters: dict[str, Any]) -> int:
    return int(connection.execute(statement, parameters).rowcount)


def _state(connection: Connection, name: str) -> TupleRow | None:
    """Return (state, other name) of a namespace; None where nothing moves it."""
    return connection.execute(_SQL["moved_unfinished_of"], {"namespace": name}).fetchone()


def _locked(connection: Connection, name: str) -> TupleRow | None:
    """Lock the row of a namespace; return its state, the other name, up to where it is being dropped; None for none."""
    return connection.execute(_SQL["moved_own"], {"namespace": name}).fetchone()


def _row(connection: Connection, name: str) -> dict[str, Any]:
    """Return the numbers, counts and limits of a namespace."""
    cursor = connection.execute(_SQL["moved_kept"], {"namespace": name})
    return dict(zip([column.name for column in cursor.description or ()], only(cursor), strict=True))


def _dropping(old: str, new: str) -> str:
    return f"{old!r} or {new!r} is being dropped; run `semmem maintain`, which finishes it, and try again."


def _filled(name: str, table: Table) -> sql.Composed:
    """Return a statement about one table."""
    key = (c for c in table.key if c != "namespace")
    return sql.SQL(_SQL[name]).format(table=table.place, columns=sql.SQL(", ").join(map(sql.Identifier, key)))
