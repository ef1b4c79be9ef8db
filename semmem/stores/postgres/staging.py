"""The staging vectors in PostgreSQL (``embedding_next``): a table like ``embedding`` that takes its place.

A rebuild fills it with the vectors of another embedder, ``maintain`` with copies of the present ones, to build their
index anew. Reads and writes go on meanwhile. In the end the two tables swap names in one transaction, for which
readers queue for milliseconds.

Only one of the two may fill it. A rebuild notes its embedder under ``embedder_next`` in ``meta``, until the swap;
``maintain`` holds the lock of the index of vectors, and a rebuild waits for that lock before it notes anything.

Whoever removes a memory deletes its vector from ``embedding``, then from here. A copy is made under a lock that such a
deletion here waits for, so no vector stays whose memory went meanwhile: a copy that read the vector is committed before
the deletion looks, and a deletion that was first is committed before the copy reads.
"""

from __future__ import annotations

import time
from collections.abc import Collection

import psycopg

from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vacuum import PATIENCE
from semmem.stores.sql_files import statements

__all__ = [
    "STAGING",
    "TABLE",
    "NotNow",
    "clear",
    "clear_soon",
    "copy",
    "has_copies",
    "is_free",
    "lock_writers_out",
    "replace",
    "swap",
]

_SQL = statements("postgres")

TABLE, STAGING = "embedding", "embedding_next"

_READERS_PATIENCE = "200ms"

_TURNS, _PAUSE = 10, 0.05

_COPIED_AT_ONCE = 5_000
"""Vectors that one transaction copies, and for which whoever removes a memory may have to wait: some .1 s."""

_COPY_TRIES = 60


class NotNow(Exception):
    """Raised to roll back and try later: too many vectors are missing, or the table is in use; it may say by whom."""


def is_free(connection: Connection) -> bool:
    """Return whether ``maintain`` may fill the table: no rebuild does, and this user owns it and sees all rows."""
    return bool(only(connection.execute(_SQL["staging_free"]))[0])


def clear(connection: Connection) -> None:
    """Delete the staging vectors and their index."""
    connection.execute(_SQL["embedding_index_drop"].format(table=STAGING))
    connection.execute(_SQL["staging_clear"])


def clear_soon(connection: Connection) -> None:
    """Do that in a transaction. Raises NotNow where a reader goes on, as all who forget something would wait for it."""
    connection.execute(f"SET LOCAL lock_timeout TO '{_READERS_PATIENCE}'")
    try:
        clear(connection)
    except psycopg.errors.LockNotAvailable:
        raise NotNow(
            "Another program, such as a backup, reads the staging vectors; call the same rebuild when it is done."
        ) from None


def has_copies(connection: Connection) -> bool:
    """Return whether ``maintain`` has left copies here; False where this user may not delete them."""
    return bool(only(connection.execute(_SQL["staging_left"]))[0]) and is_free(connection)


def copy(connection: Connection, indexed: Collection[str] = ()) -> None:
    """Copy the vectors that have no copy; those of the namespaces ``indexed`` are marked as being in the index.

    Outside a transaction; each range is one of its own. Raises NotNow where somebody who removes memories goes on.
    """
    after = {"namespace": "", "after": 0}
    while end := connection.execute(_SQL["staging_range"], {**after, "size": _COPIED_AT_ONCE}).fetchone():
        _copy_range(connection, {**after, "last": end[0], "upto": end[1], "indexed": sorted(indexed)})
        after = {"namespace": end[0], "after": end[1]}


def _copy_range(connection: Connection, bounds: dict[str, object]) -> None:
    for _ in range(_COPY_TRIES):
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout TO '{_READERS_PATIENCE}'")
                connection.execute(_SQL["staging_copy_lock"])
                connection.execute(_SQL["staging_copy"], bounds)
            return
        except psycopg.errors.LockNotAvailable:
            time.sleep(_PAUSE)
    raise NotNow


def replace(connection: Connection) -> bool:
    """Let the copies take the place of the vectors, without writers for a moment; return False where it stays in use.

    Vectors that have come since ``copy`` are copied now, and copies whose vector is gone deleted: a renamed namespace
    leaves one table after the other.
    """
    try:
        with connection.transaction():
            lock_writers_out(connection)
            connection.execute(_SQL["staging_late"])
            connection.execute(_SQL["staging_gone"])
            swap(connection)
    except NotNow:
        return False
    return True


def lock_writers_out(connection: Connection) -> None:
    """Lock out writers of vectors until the commit; readers go on. Raises NotNow where a writer goes on."""
    connection.execute(f"SET LOCAL lock_timeout TO '{PATIENCE}'")
    try:
        connection.execute(_SQL["staging_write_lock"])
    except psycopg.errors.LockNotAvailable:
        raise NotNow from None


def swap(connection: Connection) -> None:
    """Swap the two tables, under the lock of ``lock_writers_out``, and delete the old vectors with their index.

    Raises NotNow where a reader goes on, and StoreUnavailable where this user does not own the tables.
    """
    connection.execute(f"SET LOCAL lock_timeout TO '{_READERS_PATIENCE}'")
    for _ in range(_TURNS):  # each try lets readers queue only for a moment
        try:
            with connection.transaction():
                connection.execute(_SQL["staging_own_lock"])
                for command in _SQL["staging_swap"].split(";\n"):  # one by one, as a cluster of several nodes requires
                    connection.execute(command)
            return
        except psycopg.errors.LockNotAvailable:
            time.sleep(_PAUSE)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnavailable(
                "The new vectors are made, but this database user may not replace the old ones by them; call the "
                "same rebuild as the owner of the table semmem.embedding, and it continues from here."
            ) from error
    raise NotNow
