"""Rename or copy a namespace: every table keyed by it, in one transaction.

Readers see all of it under one name or the other, and an interrupted move changes nothing. Writers of the namespace
wait for its row. Rows are written anew instead of updated, because a row stays on the node of its namespace where
tables are distributed. Ords stay the same, so packed data is not rewritten. Copied vectors are scanned exactly until
``maintain`` indexes them.
"""

from __future__ import annotations

from typing import Any

from psycopg import sql

from semmem.model.errors import Conflict, NotFound
from semmem.stores.sql_files import check_limits, statements

__all__ = ["move"]

_SQL = statements("postgres")
_OWN = ("namespace", "change")
"""Tables that are not copied row by row: counts, and changes, which are recorded anew."""


def move(connection: Any, old: str, new: str, *, stay: bool) -> int:
    """Rename the namespace ``old`` to ``new``, or copy it where ``stay`` is true; return how many memories it has.

    Raises NotFound where it has no memories, Conflict where ``new`` is not empty or one of both is being dropped,
    NamespaceFull where ``new`` may not hold so much.
    """
    both = {"old": old, "new": new}
    connection.execute(_SQL["namespace_make"], {"namespace": new})
    if not stay:  # the common order of locks: memories first, then the rows of namespaces
        connection.execute(_SQL["moved_lock"], both)
    rows = [connection.execute(_SQL["moved_own"], {"namespace": name}).fetchone() for name in sorted((old, new))]
    if any(row is not None and row[0] is not None for row in rows):
        raise Conflict(f"{old!r} or {new!r} is being dropped; run `semmem maintain`, which finishes it, and try again.")
    tables = _tables(connection)
    for table in tables:
        if connection.execute(_filled("moved_holds", table), {"namespace": new}).fetchone()[0]:
            raise Conflict(
                f"The namespace {new!r} holds something already, memories or what is kept of forgotten ones; choose "
                "another name, or drop it first."
            )
    count = int(connection.execute(_SQL["moved_count"], {"namespace": old}).fetchone()[0])
    if not count:
        raise NotFound(f"There are no memories in namespace {old!r}; `semmem namespaces` lists those that have some.")
    for table, columns in tables.items():
        connection.execute(_filled("moved_copy", table, columns), both)
    _, *limits = connection.execute(_SQL["namespace_check"], {"namespace": new}).fetchone()
    check_limits(new, (*limits,), count)
    kept = connection.execute(_SQL["moved_kept"], {"namespace": old})
    columns = [column.name for column in kept.description]
    connection.execute(_SQL["moved_counts"], {**dict(zip(columns, kept.fetchone(), strict=True)), "namespace": new})
    connection.execute(_SQL["moved_written"], both)
    if not stay:
        for table in tables:
            connection.execute(_filled("moved_delete", table), {"namespace": old})
        connection.execute(_SQL["moved_change"], {"namespace": old})
        connection.execute(_SQL["moved_away"], {"namespace": old})
        connection.execute(_SQL["drop_said"], {"namespace": old})
    return count


def _tables(connection: Any) -> dict[str, list[str]]:
    """Return the columns of every table keyed by the namespace, except the namespace itself."""
    found: dict[str, list[str]] = {}
    for table, column, *_ in connection.execute(_SQL["move_columns"]):
        found.setdefault(table, []).append(column)
    led = {table: [c for c in own if c != "namespace"] for table, own in found.items() if "namespace" in own}
    return {table: own for table, own in led.items() if table not in _OWN}


def _filled(name: str, table: str, columns: list[str] | None = None) -> sql.Composed:
    """Return a statement about one table; a copied vector is not in the index."""
    values = [sql.SQL("false") if c == "indexed" else sql.Identifier(c) for c in columns or ()]
    return sql.SQL(_SQL[name]).format(
        table=sql.Identifier("semmem", table),
        columns=sql.SQL(", ").join(map(sql.Identifier, columns or ())),
        values=sql.SQL(", ").join(values),
    )
