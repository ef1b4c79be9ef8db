"""Forward-only migrations of a PostgreSQL store: numbered files, each in one transaction with the record of it."""

from __future__ import annotations

from typing import Any

from semmem.errors import InvalidInput, SchemaTooNew, StoreUnavailable
from semmem.stores.statements import migrations, statements

__all__ = ["migrate"]


def migrate(conninfo: str) -> int:
    """Bring the schema at ``conninfo`` up to date and return its number.

    Any number of processes may call this at once: they queue on an advisory lock. A schema that is up to date costs one
    query. Raises SchemaTooNew when a newer semmem migrated it, StoreUnavailable when the server cannot be reached or
    pgvector or the rights are missing, and InvalidInput when libpq cannot read ``conninfo``.
    """
    import psycopg

    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            return _migrate(connection)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"The database server cannot be reached: {_reason(error)}") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"This database user may not use or create semmem's tables ({error.diag.message_primary}); grant CREATE on "
            "the database and USAGE on the schema semmem, or let an administrator run the first connect."
        ) from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is not None:
            raise
        raise InvalidInput(f"The store URL cannot be used: {_reason(error)}.") from error


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())


def _migrate(connection: Any) -> int:
    known = migrations("postgres")
    newest = known[-1][0]
    if (number := _number(connection)) == newest:
        return number
    sql = statements("postgres")
    connection.execute(sql["migration_lock"])
    try:
        number = _number(connection)
        if number > newest:
            raise SchemaTooNew(
                f"This store has schema {number} and this semmem knows {newest}; upgrade with: pip install -U semmem"
            )
        if number == 0:
            _prepare(connection)
        for step, name, body in known:
            if step > number:
                with connection.transaction():
                    connection.execute("SET LOCAL search_path TO semmem, public")
                    connection.execute(body)
                    connection.execute(sql["migration_record"], {"number": step, "name": name})
        return newest
    finally:
        connection.execute(sql["migration_unlock"])


def _number(connection: Any) -> int:
    sql = statements("postgres")
    if connection.execute(sql["migration_exists"]).fetchone()[0] is None:
        return 0
    return int(connection.execute(sql["migration_number"]).fetchone()[0])


def _prepare(connection: Any) -> None:
    import psycopg

    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
        raise StoreUnavailable(
            "This PostgreSQL server has no pgvector extension; install pgvector on it (0.8 or newer), or leave out the "
            "URL to use the embedded server."
        ) from error
    if connection.execute(statements("postgres")["vector_exists"]).fetchone()[0] is None:
        raise StoreUnavailable(
            "The pgvector extension of this database is in another schema than public; move it with: "
            "ALTER EXTENSION vector SET SCHEMA public"
        )
    with connection.transaction():
        connection.execute("CREATE SCHEMA IF NOT EXISTS semmem")
        connection.execute(statements("postgres")["migration_table"])
