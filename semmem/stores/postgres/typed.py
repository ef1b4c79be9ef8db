"""The types of psycopg as this store uses them, and the row of a statement that always returns one."""

from __future__ import annotations

from typing import TypeAlias

import psycopg
from psycopg.rows import TupleRow

__all__ = ["Connection", "Cursor", "TupleRow", "only"]

Connection: TypeAlias = psycopg.Connection[TupleRow]

Cursor: TypeAlias = psycopg.Cursor[TupleRow]


def only(cursor: Cursor) -> TupleRow:
    """Return the first row of a statement that always has one."""
    row = cursor.fetchone()
    assert row is not None
    return row
