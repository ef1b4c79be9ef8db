"""Rename, copy or drop a namespace in SQLite, and set its limits, each in one transaction.

Tokens and row ids begin with the number of the namespace, not with its name, so renaming leaves them as they are. A
copy gets a number of its own, and so does the old name of a renamed namespace, which keeps an empty row for a day.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from semmem.model.reports import Limits, no_memories
from semmem.stores.sql_files import check_limits, check_number, name_taken, statements
from semmem.stores.sqlite.saved import erase
from semmem.stores.sqlite.write import count_change, microsecond

__all__ = ["begin_drop", "drop", "move", "set_limits"]

_SQL = statements("sqlite")
_DAY = 86_400_000_000
_AT_ONCE = 5_000
"""Memories of a dropped namespace that one transaction takes away."""


def move(connection: sqlite3.Connection, old: str, new: str, *, stay: bool) -> int:
    """Rename the namespace ``old`` to ``new``, or copy it where ``stay`` is true; return how many memories it has.

    Raises NotFound where it has none, Conflict where ``new`` holds anything, NamespaceFull where it may not hold
    so much.
    """
    tables = _tables(connection)
    for table in tables:
        if connection.execute(_SQL["moved_holds"].format(table=table), {"namespace": new}).fetchone()[0]:
            raise name_taken(new)
    count = int(connection.execute(_SQL["drop_count"], {"namespace": old}).fetchone()[0])
    if not count:
        raise no_memories(old)
    own = connection.execute(_SQL["limits_get"], {"namespace": new}).fetchone() or (None, None, None)
    holds = connection.execute(_SQL["namespace_holds"], {"namespace": old}).fetchone()
    check_limits(new, (*own[1:], *holds), count)
    limits = {name: value for name, value in asdict(Limits(*own)).items() if value is not None}
    both = {"old": old, "new": new, "at": microsecond(datetime.now(UTC))}
    connection.execute(_SQL["change_prune"], {"namespace": new})
    former = connection.execute(_SQL["moved_free"], {"namespace": new}).fetchall()
    if stay:
        _copy(connection, tables, both)
    else:
        for table in (*tables, "change", "namespace"):
            connection.execute(_SQL["moved_name"].format(table=table), both)
        _leave(connection, both)
    for (ords,) in former:
        connection.execute(_SQL["moved_ords"], {"namespace": new, "ords": ords})
    set_limits(connection, new, limits)
    return count


def _leave(connection: sqlite3.Connection, both: Mapping[str, Any]) -> None:
    """Let the old name give no row id again, and tell readers of its changes that it holds nothing."""
    ((number,),) = connection.execute(_SQL["moved_away"], both).fetchall()
    check_number(both["old"], number)
    count_change(connection, both["old"], 0, 0, {"": "dropped"})


def _copy(connection: sqlite3.Connection, tables: Mapping[str, Sequence[str]], both: Mapping[str, Any]) -> None:
    """Copy everything to the new name, with the same row ids under a number of its own."""
    connection.execute(_SQL["moved_row"], both)
    check_number(both["new"], connection.execute(_SQL["moved_number"], both).fetchone()[0])
    for table, columns in tables.items():
        if table == "memory":
            continue
        connection.execute(_SQL["moved_copy"].format(table=table, columns=", ".join(columns)), both)
    columns = [c for c in tables["memory"] if c != "row"]
    connection.execute(_SQL["moved_memory"].format(columns=", ".join(columns)), both)
    for derived in ("moved_tokens", "moved_forward", "moved_embedding", "moved_relationship"):
        connection.execute(_SQL[derived], both)
    connection.execute(_SQL["moved_written"], both)


def set_limits(connection: sqlite3.Connection, namespace: str, changes: Mapping[str, Any]) -> Limits:
    """Change some limits of a namespace; return all of them."""
    limits = replace(Limits(), **changes)
    keep = None if limits.keep_days is None else int(limits.keep_days * _DAY)
    parameters = {
        "namespace": namespace,
        "keep": keep,
        "at": microsecond(datetime.now(UTC)),
        "given": json.dumps([*changes]),
    }
    return Limits(*connection.execute(_SQL["limits_set"], {**asdict(limits), **parameters}).fetchall()[0])


def _tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns, quoted, of every table keyed by the namespace, except the namespace itself and changes."""
    columns_by_table: dict[str, list[str]] = {}
    for table, column in connection.execute(_SQL["moved_columns"]):
        columns_by_table.setdefault(table, []).append(column)
    keyed_columns = {
        table: [c for c in own if c != "namespace"] for table, own in columns_by_table.items() if "namespace" in own
    }
    own = {table: columns for table, columns in keyed_columns.items() if table not in ("namespace", "change")}
    return {table: [c if c == "row" else f'"{c}"' for c in columns] for table, columns in own.items()}


def begin_drop(connection: sqlite3.Connection, namespace: str) -> tuple[int, int]:
    """Forget settings, log and saved model of a namespace; return its number of memories, and the row of the last."""
    where = {"namespace": namespace}
    erase(connection, namespace)
    connection.execute(_SQL["drop_setting"], where)
    connection.execute(_SQL["drop_recall_found"], where)
    connection.execute(_SQL["drop_recall_log"], where)
    memories = int(connection.execute(_SQL["drop_count"], where).fetchone()[0])
    last = connection.execute(_SQL["namespace_last"], where).fetchone()
    if memories:
        count_change(connection, namespace, 0, 0, {"": "dropped"})
    return memories, last[0] if last else 0


def drop(connection: sqlite3.Connection, namespace: str, upto: int) -> bool:
    """Forget some thousands of a namespace's memories; False, and what else is left goes, when there are none."""
    where = {"namespace": namespace, "upto": upto, "limit": _AT_ONCE}
    for derived in ("drop_lexical", "drop_forward", "drop_embedding", "drop_staging", "drop_relationship"):
        connection.execute(_SQL[derived], where)
    rows = connection.execute(_SQL["drop_memory"], where).fetchall()
    if rows:
        lengths = [length for indexed, length in rows if indexed]
        count_change(connection, namespace, -len(lengths), -sum(lengths), {})
        return True
    for table in ("rest", "history", "link", "likeness", "uncompared", "access"):
        connection.execute(_SQL[f"drop_{table}"], {"namespace": namespace})
    connection.execute(_SQL["correction_empty"], {"namespace": namespace})
    return False
