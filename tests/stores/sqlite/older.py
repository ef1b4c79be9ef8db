"""A SQLite file as an earlier semmem would have left it, made from one of the newest schema."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from semmem.stores.sqlite.connection import migrate


def written_at(schema: int, newest: Path, old: Path) -> None:
    """Make the file ``old`` of an earlier ``schema``, with the rows of the file ``newest`` as far as it has columns."""
    connection = sqlite3.connect(old, isolation_level=None)
    assert migrate(connection, "it", upto=schema) == schema
    connection.execute("ATTACH ? AS newest", (str(newest),))
    present = {name for (name,) in connection.execute("SELECT name FROM newest.sqlite_master WHERE type = 'table'")}
    for (table,) in connection.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'lexical_%' "
        "AND name NOT LIKE 'sqlite_%' AND name NOT IN ('migration', 'meta')"
    ).fetchall():
        if table not in present:  # what went had no use
            continue
        now = {name for _, name, *_ in connection.execute(f"PRAGMA newest.table_xinfo({table})")}
        own = [
            n for _, n, *_, hidden in connection.execute(f"PRAGMA main.table_xinfo({table})") if not hidden and n in now
        ]
        if own:
            names = ", ".join(["rowid", *own] if table == "lexical" else own)
            connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM newest.{table}")
    connection.close()
