"""Forward-only migrations of a SQLite file: numbered files, applied in one transaction with the record of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from semmem.model.errors import InvalidInput, SchemaTooNew
from semmem.stores.sql_files import migrations, statements

__all__ = ["APPLICATION", "migrate"]

APPLICATION = 0x73656D6D
"""What stands in the header of our files ("semm"), so that a file of another program is never written to."""


def migrate(connection: sqlite3.Connection, place: str) -> int:
    """Bring the schema of the file up to date and return its number.

    Any number of processes may call this at once: they queue on the write lock. A schema that is up to date is only
    read. Raises SchemaTooNew when a newer semmem migrated it, InvalidInput when the file belongs to another program.
    """
    known = migrations("sqlite")
    newest = known[-1][0]
    if (number := _number(connection, place, newest)) == newest:
        return number
    sql = statements("sqlite")
    connection.execute("BEGIN IMMEDIATE")
    try:
        number = _number(connection, place, newest)
        if number == 0:
            connection.execute(sql["migration_table"])
        for step, name, body in known:
            if step > number:
                for statement in _each(body):
                    connection.execute(statement)
                connection.execute(sql["migration_record"], {"number": step, "name": name})
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return newest


def _number(connection: sqlite3.Connection, place: str, newest: int) -> int:
    sql = statements("sqlite")
    application = connection.execute(sql["application"]).fetchone()[0]
    if application != APPLICATION:
        if application or connection.execute(sql["tables"]).fetchone()[0]:
            raise InvalidInput(f"{place} is the database of another program; name another file, or a new one.")
        return 0
    if connection.execute(sql["migration_exists"]).fetchone() is None:
        return 0
    number = int(connection.execute(sql["migration_number"]).fetchone()[0])
    if number > newest:
        raise SchemaTooNew(
            f"{place} has schema {number} and this semmem knows {newest}; upgrade with: pip install -U semmem"
        )
    return number


def _each(body: str) -> Iterator[str]:
    """Yield the statements of a script one by one: the module's own executescript would commit in between."""
    statement = ""
    for line in body.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
