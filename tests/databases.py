"""Databases that tests use one after another: emptying one takes a tenth of the time of making and dropping one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

__all__ = ["END_OTHERS", "TABLES", "Databases"]

TABLES = """SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname = 'semmem' AND tablename <> 'migration'"""
"""The tables that a test fills."""
END_OTHERS = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
"""End the sessions that a test has left."""
_LOOK = """WITH own AS (SELECT oid, nspname, nspacl, nspowner FROM pg_namespace
        WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'),
    relation AS (SELECT c.* FROM pg_class c JOIN own ON own.oid = c.relnamespace),
    line(text) AS (
        SELECT concat_ws(' ', 'schema', nspname, nspacl, nspowner) FROM own
        UNION ALL SELECT concat_ws(' ', oid::regclass, relkind, relrowsecurity, reloptions, relacl, relowner)
            FROM relation
        UNION ALL SELECT concat_ws(' ', attrelid::regclass, attname, atttypid::regtype, atttypmod, attnotnull)
            FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (SELECT oid FROM relation)
        UNION ALL SELECT concat_ws(' ', indisvalid, pg_get_indexdef(indexrelid))
            FROM pg_index WHERE indrelid IN (SELECT oid FROM relation)
        UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated)
            FROM pg_constraint WHERE conrelid IN (SELECT oid FROM relation)
        UNION ALL SELECT concat_ws(' ', 'trigger', tgname, tgrelid::regclass)
            FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT concat_ws(' ', 'function', oid::regprocedure, md5(prosrc))
            FROM pg_proc WHERE pronamespace IN (SELECT oid FROM own)
        UNION ALL SELECT concat_ws(' ', 'extension', extname, extversion) FROM pg_extension
        UNION ALL SELECT concat_ws(' ', 'setting', setconfig) FROM pg_db_role_setting
        UNION ALL SELECT concat_ws(' ', 'migration', number) FROM semmem.migration
    ) SELECT md5(string_agg(text, ';' ORDER BY text)) FROM line"""
"""What a test can change of a database beside its rows."""


class Databases:
    """Hands out empty databases; one whose schema a test changed is dropped, any other is emptied and used again.

    A connection to each stays open: a new one would take longer than what it is opened for.
    """

    def __init__(
        self,
        make: Callable[[], str],
        open: Callable[[str], psycopg.Connection[Any]],
        drop: Callable[[str], None],
    ) -> None:
        self._make = make
        self._open = open
        self._drop = drop
        self._free: list[tuple[str, psycopg.Connection[Any]]] = []
        self._look: str | None = None

    @contextmanager
    def one(self) -> Iterator[str]:
        """Give the name of an empty database that is in nobody else's hands meanwhile."""
        name, connection = self._free.pop() if self._free else self._new()
        yield name
        if self._emptied(connection):
            self._free.append((name, connection))
        else:
            connection.close()
            self._drop(name)

    def close(self) -> None:
        """Close the connections; the databases go with their server."""
        for _, connection in self._free:
            connection.close()
        self._free.clear()

    def _new(self) -> tuple[str, psycopg.Connection[Any]]:
        name = self._make()
        connection = self._open(name)
        self._look = self._look or _value(connection, _LOOK)
        return name, connection

    def _emptied(self, connection: psycopg.Connection[Any]) -> bool:
        """Empty a database; return whether it is now as it was made."""
        try:
            for _ in range(100):
                if not _value(connection, END_OTHERS):
                    break
                time.sleep(0.01)
            else:
                return False
            if _value(connection, _LOOK) != self._look:
                return False
            tables = [table for (table,) in connection.execute(TABLES).fetchall()]
            filled = connection.execute("SELECT " + ", ".join(f"EXISTS (SELECT FROM {t})" for t in tables)).fetchone()
            connection.execute(
                "; ".join(f"DELETE FROM {t}" for t, has in zip(tables, filled or (), strict=True) if has)
            )
            # else the server's statistics count these rows up to ten seconds later, as read in the next test
            connection.execute("SELECT pg_stat_force_next_flush()")
            return True
        except psycopg.Error:  # the server was stopped, say
            return False


def _value(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement).fetchone()
    return row and row[0]
