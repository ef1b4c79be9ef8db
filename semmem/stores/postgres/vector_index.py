"""Maintain the index of vectors in PostgreSQL.

Inserting into HNSW costs one to three milliseconds per vector, so new vectors stay out of the index until ``maintain``
inserts them. Where they are many, and where there is no index, it copies all vectors to the staging table, builds
the index there, and lets the copies take the place of the vectors: readers use the old index until then. So taking
vectors in leaves no old row behind, which an update of each row would.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from psycopg import Error
from psycopg.errors import DiskFull, InsufficientPrivilege, LockNotAvailable, UndefinedTable

from semmem.model.process import machine
from semmem.stores.postgres import nearest, nodes, staging
from semmem.stores.postgres.nearest import MOST_INDEXED, with_index
from semmem.stores.postgres.staging import STAGING, TABLE
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vacuum import patient, session_setting, vacuum
from semmem.stores.sql_files import statements

__all__ = ["INDEXED", "build_memory", "index", "ready"]

_SQL = statements("postgres")

INDEXED = (TABLE, STAGING)
"""The tables that have an index of vectors, once they are large."""

_TAKEN_IN = 5_000

_ANEW = 3
"""Inserting a vector takes three to five times as long as its part of building the index in memory."""

_BUILD_MB = 512
_LINKS_BYTES = 800
"""What HNSW's links of one vector take while the index is built, with m = 16; 715 were measured."""

_MAINTAIN_THERE = "run `semmem maintain` with the address of {coordinator}"


def index(connection: Connection, dimensions: int, table: str = TABLE) -> int | None:
    """Take the vectors of large namespaces into the HNSW index, building it first if need be; return how many.

    An index is built anew, which is faster than inserting vectors, where more than a third of what it has is missing or
    gone, and all of it fits into the memory there is for that. That is done in the staging table, and readers use the
    old index until the new one takes its place. It is done in the table itself, vector by vector where there is an
    index, where it does not fit, the disk is full, or the staging table is not free: a rebuild fills it or was
    interrupted, or this user does not own it. An index that does not fit is vacuumed once as many vectors in it are
    gone. An index of none is dropped.

    Where another process is indexing the same table, nothing is done, and None returned: two builds would wait for each
    other. None is also returned where the tables stayed in use, so that they could not swap; the next call goes on with
    the index that was built. Raises StoreUnavailable on a worker of Citus, where no index can be made.
    """
    if not only(connection.execute(_SQL["embedding_index_lock"].format(table=table)))[0]:
        return None
    try:
        return _index(connection, dimensions, table)
    finally:
        if not connection.closed and not connection.broken:  # a lost connection holds no lock
            connection.execute(_SQL["embedding_index_unlock"].format(table=table))


def _index(connection: Connection, dimensions: int, table: str) -> int | None:
    large = connection.execute(_SQL["embedding_large"].format(table=table), {"least": nearest.INDEX_FROM}).fetchall()
    waiting: dict[str, int] = {namespace: rest for namespace, rest in large if rest}
    new, held, is_ready = sum(waiting.values()), _held(connection, table), ready(connection, table)
    entries = _entries(connection, table, held) if is_ready else held
    gone = entries - held
    needed, most = _memory(connection, held + new, dimensions)
    fits = needed <= most
    anew = bool(large) and (not is_ready or (fits and _worn(new, gone, held)))
    if table == TABLE and not anew and staging.has_copies(connection):  # an earlier call was going to build it anew
        nodes.check(connection, mend=_MAINTAIN_THERE)
        with suppress(LockNotAvailable), patient(connection):
            staging.clear(connection)
    if not large and (not held or not is_ready or _worn(0, gone, held)):
        if _given_up(connection, table):  # it serves nobody, and without it the rows of vectors that are gone go fast
            vacuum(connection, [table], "INDEX_CLEANUP ON")
        return 0
    takes_out = is_ready and not fits and _worn(0, gone, held)
    if not (anew or new or takes_out):
        return 0
    nodes.check(connection, mend=_MAINTAIN_THERE)
    if anew and fits and table == TABLE and staging.is_free(connection):
        with suppress(DiskFull):  # what was copied is deleted again
            names = [namespace for namespace, _ in large]
            renewed = _renewed(connection, dimensions, names, held + new)
            return max(_held(connection, table) - held, 0) or held if renewed else None  # late copies are not in it yet
    if is_ready and not (anew and table == STAGING and _given_up(connection, table)):  # nobody reads that one
        _insert(connection, table, waiting, entries, (held + new) if takes_out else None)
        return new
    _build_in_place(connection, dimensions, table, waiting)
    return new or held


def _insert(
    connection: Connection, table: str, waiting: Mapping[str, int], entries: int, cleaned: int | None = None
) -> None:
    """Insert the vectors of the ``waiting`` namespaces into the index; take out those that are gone if told so.

    ``entries`` were put into the index before, and ``cleaned`` is how many it has once those that are gone are out.
    """
    _take_in(connection, waiting, table)
    _note_entries(connection, table, entries + sum(waiting.values()))
    # otherwise the exact scan would still read the moved rows
    vacuum(connection, [table], "ANALYZE", *([] if cleaned is None else ["INDEX_CLEANUP ON"]))
    if cleaned is not None:
        _note_entries(connection, table, cleaned)


def _build_in_place(connection: Connection, dimensions: int, table: str, waiting: Collection[str]) -> None:
    """Build the index over the table itself, which has none, with the vectors of the ``waiting`` namespaces."""
    connection.execute(_SQL["embedding_index_clear"].format(table=table))
    _take_in(connection, waiting, table)  # building over existing rows is much faster than inserting them
    _build(connection, dimensions, table)
    vacuum(connection, [table], "ANALYZE", "INDEX_CLEANUP ON")  # the new index has none of the rows that go


def _renewed(connection: Connection, dimensions: int, namespaces: Collection[str], count: int) -> bool:
    """Build the index over copies of the vectors, and let these take their place; return False where they stay in use.

    ``namespaces`` are those whose ``count`` vectors belong into the index. A call that finds the copies and the index
    of an earlier one, which could not end it, goes on with them.
    """
    try:
        if not _is_kept(connection, count):
            with patient(connection):
                staging.clear(connection)
            staging.copy(connection, namespaces)
            vacuum(connection, [STAGING], "ANALYZE")
            _build(connection, dimensions, STAGING)
        staging.copy(connection)
        return ready(connection, STAGING) and staging.replace(connection)  # a hard forget drops the index
    except (LockNotAvailable, staging.NotNow):
        return False
    except Error:
        with suppress(Error), patient(connection):
            staging.clear(connection)
        raise


def _is_kept(connection: Connection, count: int) -> bool:
    """Return whether the staging vectors have an index that is good enough for ``count`` vectors."""
    if not ready(connection, STAGING):
        return False
    held = _held(connection, STAGING)
    return not _worn(max(count - held, 0), _entries(connection, STAGING, held) - held, held)


def _build(connection: Connection, dimensions: int, table: str) -> None:
    """Build the index over the vectors that are marked as being in it; nobody waits."""
    count = _held(connection, table)
    with session_setting(connection, "maintenance_work_mem", build_memory(connection, count, dimensions)):
        connection.execute(with_index("embedding_index", dimensions, table))
    _note_entries(connection, table, count)


def _worn(missing: int, gone: int, held: int) -> bool:
    """Return whether an index that has ``held`` vectors is to be built anew, so many missing in it and gone from it."""
    return _ANEW * (missing + gone) > held


def _entries(connection: Connection, table: str, held: int) -> int:
    """Return how many vectors were put into the index since it was built, those included that are gone."""
    noted = only(connection.execute(_SQL["embedding_index_entries"].format(table=table)))[0]
    return max(held, int(noted or 0))


def _note_entries(connection: Connection, table: str, entries: int) -> None:
    """Note that number as the comment of the index, which goes with it; not where it is not ours, or gone by now."""
    with suppress(InsufficientPrivilege, UndefinedTable):
        connection.execute(_SQL["embedding_index_note"].format(table=table, entries=int(entries)))


def build_memory(connection: Connection, count: int, dimensions: int) -> str:
    """Return the memory in which the index of ``count`` vectors is built, as a value of maintenance_work_mem.

    The whole graph has to fit: beyond that pgvector writes each vector into the index by itself, many times as slowly.
    It is at most a quarter of this machine's memory, and on another machine, whose memory is not known, 512 MB.
    """
    needed, most = _memory(connection, count, dimensions)
    return f"{max(_BUILD_MB, min(needed, most))}MB"


def _memory(connection: Connection, count: int, dimensions: int) -> tuple[int, int]:
    """Return how many MB the index of ``count`` vectors needs while it is built, and how many it may take."""
    here = str(connection.info.host).startswith("/")  # a socket, so the server is on this machine
    most = machine.memory() >> 22 if here else _BUILD_MB
    return count * (2 * min(dimensions, MOST_INDEXED) + _LINKS_BYTES) >> 20, max(_BUILD_MB, most)


def _given_up(connection: Connection, table: str) -> bool:
    """Drop the index, to build it anew; return False where it stays.

    It does where others go on reading the table, who would have to queue behind us, and where it is not ours.
    """
    try:
        with patient(connection):
            connection.execute(_SQL["embedding_index_drop"].format(table=table))
    except (LockNotAvailable, InsufficientPrivilege):
        return False
    return True


def _take_in(connection: Connection, namespaces: Collection[str], table: str) -> None:
    for namespace in namespaces:
        parameters = {"namespace": namespace, "limit": _TAKEN_IN}
        while connection.execute(_SQL["embedding_take_in"].format(table=table), parameters).rowcount:
            pass  # one that finds fewer may be followed by others: of those that it found, some have gone meanwhile


def _held(connection: Connection, table: str) -> int:
    """Return how many vectors are marked as being in the index."""
    return int(only(connection.execute(_SQL["embedding_in_index_count"].format(table=table)))[0])


def ready(connection: Connection, table: str = TABLE) -> bool:
    """Return whether the index exists and is complete."""
    row = connection.execute(_SQL["embedding_index_ready"].format(table=table)).fetchone()
    return bool(row and row[0])
