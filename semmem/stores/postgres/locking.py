"""Lock the rows of memories by id beside writers that replace them: a change gives a memory a new row.

A statement that waits for the lock of a row does not see the row that replaced it, for that one is younger than the
snapshot of the statement. So a statement here returns the rows that exist, and whether each was locked; the memories of
those that were not are asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres.connection import pipelined
from semmem.stores.postgres.typed import Connection, Cursor
from semmem.stores.sql_files import statements

__all__ = ["for_these", "locked_rows"]

_SQL = statements("postgres")

_TURNS = 100
"""How often memories that were replaced while their locks were waited for are asked for again."""


def locked_rows(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows that are locked until the commit, without the last column, which says whether each was locked.

    The first column is the id. ``parameters`` have ``ids``, None for all. Raises StoreUnavailable where others replace
    one of the memories without a pause.
    """
    rows = list[tuple[Any, ...]]()
    ids = parameters["ids"]
    for _ in range(_TURNS):
        found = for_these(connection, statement, {**parameters, "ids": ids}).fetchall()
        rows += [tuple(row) for *row, is_locked in found if is_locked]
        ids = sorted({id for id, *_, is_locked in found if not is_locked})
        if not ids:
            return sorted(rows)
    raise StoreUnavailable("Others change these memories without a pause, so they could not be locked; try again.")


def for_these(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> Cursor:
    """Run a statement that is planned for its parameters, of which some may be NULL."""
    with pipelined(connection):
        connection.execute(_SQL["plan_for_these"])
        return connection.execute(_SQL[statement], parameters)
