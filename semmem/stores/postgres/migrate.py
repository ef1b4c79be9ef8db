"""Migrate a PostgreSQL store forward: numbered files, each applied in one transaction with its record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from semmem.model.errors import InvalidInput, SchemaTooNew, SchemaTooOld, StoreUnavailable
from semmem.stores.postgres import nodes, row_security
from semmem.stores.postgres.errors import error_at_connect, error_at_work, is_absent, starting, too_old, without
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import changed_by_newer, check_step, each_statement, migrations, statements, unmigrated
from semmem.stores.sql_files import too_old as outdated

__all__ = ["apply", "asked", "create", "migrate", "newer", "number", "present", "require_newest"]

T = TypeVar("T")
Before = Callable[[Connection, int, int], None]
Conninfo = str | Callable[[], str]
"""How to connect, or what says it before every try."""

Ran = Callable[[str], object]
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


def migrate(
    conninfo: Conninfo,
    *,
    before: Before | None = None,
    start_timeout_s: float = 3.0,
    upto: int | None = None,
    ran: Ran = lambda _: None,
) -> int:
    """Bring the schema at ``conninfo`` up to date, or to ``upto``, and return its number.

    Any number of processes may call this at once: they queue on an advisory lock. A schema that is up to date costs one
    query. ``before`` is called with (connection, present number, new number) before an older schema is changed; an
    error it raises stops the migration. ``ran`` is called with the name of each migration that this call, and no other
    process, has applied. A server that is starting or recovering is waited for, ``start_timeout_s`` in
    all. A function ``conninfo`` is called before every try, so it can restart the server.

    Raises SchemaTooNew when a newer semmem migrated the store, SchemaTooOld when it must be exported and imported,
    StoreUnavailable when the server cannot be reached, it or pgvector is too old, or pgvector or rights are missing,
    and InvalidInput when libpq cannot read ``conninfo``, or for an ``upto`` that no migration leads to.
    """
    return asked(conninfo, partial(_migrate, before=before, upto=upto, ran=ran), start_timeout_s)


def present(conninfo: Conninfo, *, start_timeout_s: float = 3.0) -> int:
    """Return the number of the schema at ``conninfo``, 0 without one; changes nothing. Raises as ``migrate`` does."""
    return asked(conninfo, _present, start_timeout_s)


def require_newest(conninfo: Conninfo, *, start_timeout_s: float = 3.0) -> None:
    """Raise SchemaTooOld unless the schema at ``conninfo`` is the newest; otherwise as ``present``."""
    schema = present(conninfo, start_timeout_s=start_timeout_s)
    if (sentence := unmigrated("This store", schema, migrations("postgres"))) is not None:
        raise SchemaTooOld(sentence)


def asked(conninfo: Conninfo, work: Callable[[Connection], T], start_timeout_s: float) -> T:
    """Return what ``work`` does on a new connection, as soon as the server takes one. Raises as ``migrate`` does."""
    import psycopg

    end, pause = time.monotonic() + start_timeout_s, _PAUSE_S
    while True:
        where = conninfo() if callable(conninfo) else conninfo
        try:
            return _connected(where, work)
        except psycopg.OperationalError as error:
            passes = starting(error) or (callable(conninfo) and is_absent(error))
            if not passes or time.monotonic() >= end:
                replacement = error_at_connect(error, where) if error.sqlstate is None else error_at_work(error)
                raise replacement or StoreUnavailable(f"The schema cannot be made: {_reason(error)}") from _quoted(
                    error, where
                )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _connected(conninfo: str, work: Callable[[Connection], T]) -> T:
    import psycopg

    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            return work(connection)
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise StoreUnavailable(
            "This database server takes no writes and semmem's tables are not there yet, or not up to date; let "
            "semmem connect once to the primary."
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"This database user may not use or create semmem's tables ({error.diag.message_primary}); grant CREATE on "
            "the database and USAGE on the schema semmem, or let an administrator run the first connect."
        ) from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is not None:
            raise
        sentence = without(f"The store URL cannot be used: {_reason(error)}.", conninfo)
        raise InvalidInput(sentence) from _quoted(error, conninfo)


def _quoted(error: BaseException, conninfo: str) -> BaseException:
    """Return the error to show as the cause in a traceback, without the password that libpq quotes with the URL."""
    words = without(str(error), conninfo)
    if words == str(error):
        return error
    return type(error)(words).with_traceback(error.__traceback__)


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())


def _present(connection: Connection) -> int:
    """Return the number of a schema that this semmem can migrate. Raises SchemaTooNew and SchemaTooOld."""
    schema, newest = number(connection), migrations("postgres")[-1][0]
    if schema > newest:
        raise SchemaTooNew(
            f"This store has schema {schema} and this version of semmem reads up to {newest}; "
            f"upgrade semmem as docs/operate.md says"
        )
    if (old := outdated("This store", schema, "postgres")) is not None:
        raise SchemaTooOld(old)
    return schema


def _migrate(
    connection: Connection, before: Before | None = None, upto: int | None = None, ran: Ran = lambda _: None
) -> int:
    known = migrations("postgres")
    target = known[-1][0] if upto is None else upto
    if (schema := number(connection)) == target:
        return schema
    sql = statements("postgres")
    connection.execute(sql["migration_lock"])
    try:
        schema = _present(connection)
        check_step("This store", schema, target, known)
        nodes.check(connection)
        if schema == 0:
            _prepare(connection)
        elif before is not None and schema < target:
            before(connection, schema, target)
        with nodes.placing(connection, new=schema == 0):
            apply(connection, schema, target, ran)
            row_security.extend(connection)
        return target
    finally:
        connection.execute(sql["migration_unlock"])


def apply(connection: Connection, after: int, upto: int, ran: Ran = lambda _: None) -> None:
    """Apply the migrations ``after`` < number <= ``upto``, each in a transaction with its record; see ``migrate``."""
    record = statements("postgres")["migration_record"]
    for step, name, body in migrations("postgres"):
        if after < step <= upto:
            with connection.transaction():
                connection.execute("SET LOCAL search_path TO semmem, public")
                for statement in each_statement(body):
                    connection.execute(statement)
                connection.execute(record, {"number": step, "name": name})
            ran(name)


def number(connection: Connection) -> int:
    """Return the number of the schema of this database, 0 where it has no semmem tables.

    Raises StoreUnavailable for a server or a pgvector that is too old, or a pooler that keeps no sessions.
    """
    sql = statements("postgres")
    record_table, vector, process = only(connection.execute(sql["migration_exists"]))
    if process != connection.info.backend_pid:  # somebody stands between
        _check_sessions(connection)
    if (old := too_old(connection.info.server_version, vector)) is not None:
        raise StoreUnavailable(old)
    if record_table is None:
        return 0
    return int(only(connection.execute(sql["migration_number"]))[0])


def _check_sessions(connection: Connection) -> None:
    """Raise StoreUnavailable where another client gets the session of this one, as from a pooler of transactions."""
    import psycopg

    sql, mark = statements("postgres"), os.urandom(8).hex()
    connection.execute(sql["session_set"], {"name": "semmem.mark", "value": mark})
    with psycopg.connect(connection.info.dsn, password=connection.info.password, autocommit=True) as other:
        if only(other.execute(sql["session_mark"]))[0] == mark:
            raise StoreUnavailable(
                "This URL leads to a pooler in transaction mode, such as PgBouncer, and semmem needs sessions of its "
                "own for prepared statements, settings and locks; set pool_mode = session there, or name the server "
                "itself."
            )


def newer(conninfo: str) -> SchemaTooNew | None:
    """Return the error of a program that is still open while a newer semmem has migrated the store; None otherwise."""
    import psycopg

    newest = migrations("postgres")[-1][0]
    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            schema = number(connection)
    except (psycopg.Error, StoreUnavailable):
        return None
    return SchemaTooNew(changed_by_newer(schema, newest)) if schema > newest else None


def _prepare(connection: Connection) -> None:
    import psycopg

    installed, available = only(connection.execute(statements("postgres")["vector_versions"]))
    if installed is None and available is None:
        raise StoreUnavailable(
            "This PostgreSQL server has no pgvector extension; install pgvector on it (0.8 or newer), or leave out the "
            "URL to use the embedded server."
        )
    if installed is None and (old := too_old(connection.info.server_version, available)) is not None:
        raise StoreUnavailable(old)
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreUnavailable(
            "This database user may not make the pgvector extension; let an administrator run once, in this database: "
            "CREATE EXTENSION vector SCHEMA public"
        ) from error
    if only(connection.execute(statements("postgres")["vector_exists"]))[0] is None:
        raise StoreUnavailable(
            "The pgvector extension of this database is in another schema than public; move it with: "
            "ALTER EXTENSION vector SET SCHEMA public"
        )
    create(connection)


def create(connection: Connection) -> None:
    """Create the schema and the empty record of migrations."""
    with connection.transaction():
        connection.execute("CREATE SCHEMA IF NOT EXISTS semmem")
        connection.execute(statements("postgres")["migration_table"])
