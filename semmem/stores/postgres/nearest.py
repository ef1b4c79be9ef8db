"""Find the nearest vectors in PostgreSQL, and maintain their index.

A small scope is scanned exactly. A large one is searched by HNSW on halfvec and rescored exactly; of a vector with more
than 4,000 dimensions the index has the first 4,000, which is as many as pgvector takes. Inserting into HNSW
costs one to three milliseconds per vector, so new vectors stay out of the index: a query scans them exactly beside the
index, and ``maintain`` inserts them, or builds the index anew where they are many.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from psycopg.errors import InsufficientPrivilege, LockNotAvailable, UndefinedTable

from semmem.model.exchange import Scope, placed
from semmem.model.process import machine
from semmem.stores.postgres import nodes
from semmem.stores.postgres.connection import pipelined_transaction
from semmem.stores.postgres.encoding import made_by
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vacuum import session_setting, vacuum
from semmem.stores.sql_files import statements

__all__ = ["INDEXED", "INDEX_FROM", "build_memory", "index", "nearest", "with_index"]

_SQL = statements("postgres")

INDEXED = ("embedding", "embedding_next")
"""The tables that have an index of vectors, once they are large."""

INDEX_FROM = 10_000
"""Vectors of a namespace from which on it is worth indexing: below, the exact scan takes about 0.6 ms a thousand."""

_WITHIN = 5_000
"""A filter that matches fewer memories is scanned exactly; one that matches more widens the index scan."""

_TAKEN_IN = 5_000

_ANEW = 3
"""Inserting a vector takes three to five times as long as its part of building the index in memory."""

_BUILD_MB = 512
_LINKS_BYTES = 800
"""What HNSW's links of one vector take while the index is built, with m = 16; 715 were measured."""

_PATIENCE = "1500ms"
"""How long readers may have to queue behind us while we wait for the table."""

_WIDEST = 4_000

_MOST_INDEXED = 4_000
"""The dimensions that an index of halfvec takes."""

_BREADTH = 1_000
"""What hnsw.ef_search can be at most."""
_MAINTAIN_THERE = "run `semmem maintain` with the address of {coordinator}"


def nearest(connection: Connection, scope: Scope, vector: NDArray[np.float32], depth: int) -> list[tuple[int, float]]:
    """Return (row id, cosine) of the ``depth`` nearest within scope, best first, ties by row id.

    A scope never makes this return too few: an exact scan replaces what the index found outside the scope. Nothing is
    returned where the vector is of another embedder than the one that fills the store.
    """
    if len(scope.namespaces) > 1:
        each = (nearest(connection, one, vector, depth) for one in scope.each())
        together = ((placed(row_id, place), cosine) for place, rows in enumerate(each) for row_id, cosine in rows)
        return sorted(together, key=lambda row: (-row[1], row[0]))[:depth]
    excluded = 0 if scope.excluded is None else len(scope.excluded)
    parameters = {
        "namespace": scope.namespaces[0],
        "vector": Vector(vector),
        "depth": depth + excluded,
        "embedder": made_by(vector),
    }
    if scope.size >= INDEX_FROM:
        rows = _indexed(connection, scope, len(vector), parameters, depth)
        if len(rows) >= depth:
            return rows
    if scope.allowed is None:
        rows = connection.execute(_SQL["nearest"], parameters, binary=True).fetchall()
    else:
        within = {**parameters, "ords": scope.allowed}
        rows = connection.execute(_SQL["nearest_within"], within, binary=True).fetchall()
    return _matching(rows, scope)[:depth]


def _indexed(
    connection: Connection, scope: Scope, dimensions: int, parameters: dict[str, Any], depth: int
) -> list[tuple[int, float]]:
    """Query the index for more than needed, because halfvec and HNSW are approximate and filters drop some."""
    count = parameters["depth"] + max(50, parameters["depth"] // 2)
    if scope.allowed is not None:
        if len(scope.allowed) < _WITHIN:
            return []
        count = min(_WIDEST, 4 * count)
    statement = with_index("nearest_indexed", dimensions)
    index_parameters = {**parameters, "candidates": count, "depth": count}
    with pipelined_transaction(connection):
        connection.execute(_SQL["plan_for_these"])
        # a search that is narrower than what is wanted would begin again where it ends
        connection.execute(_SQL["nearest_breadth"], {"breadth": str(min(2 * count, _BREADTH))})
        cursor = connection.execute(statement, index_parameters, binary=True)
    rows = cursor.fetchall()
    if not rows or rows[0][2] < count:  # a small share of a large index: the index scan stopped early
        return []
    return _matching([row[:2] for row in rows], scope)[:depth]


def _matching(rows: list[tuple[int, float]], scope: Scope) -> list[tuple[int, float]]:
    if scope.allowed is None and scope.excluded is None:
        return rows
    inside = scope.matches(np.array([row_id for row_id, _ in rows], dtype=np.int64))
    return [row for row, is_inside in zip(rows, inside.tolist(), strict=True) if is_inside]


def index(connection: Connection, dimensions: int, table: str = "embedding", *, shrink: bool = False) -> int | None:
    """Take the vectors of large namespaces into the HNSW index, building it first if need be; return how many.

    An index is built anew, which is faster than inserting vectors, where more than a third of what it has is missing or
    gone, and all of it fits into the memory there is for that; meanwhile there is none, and queries scan exactly. Where
    it does not fit, a vacuum takes out those that are gone, once they are so many. An index of none is dropped.
    ``shrink`` writes the table anew before that: every vector that is taken in leaves its old row behind. Where another
    process is indexing the same table, nothing is done, and None returned: two builds would wait for each other, or
    drop each other's index. Raises StoreUnavailable on a worker of Citus, where no index can be made.
    """
    if not only(connection.execute(_SQL["embedding_index_lock"].format(table=table)))[0]:
        return None
    try:
        return _index(connection, dimensions, table, shrink)
    finally:
        if not connection.closed and not connection.broken:  # a lost connection holds no lock
            connection.execute(_SQL["embedding_index_unlock"].format(table=table))


def _index(connection: Connection, dimensions: int, table: str, shrink: bool) -> int:
    namespace_rows = connection.execute(
        _SQL["embedding_unindexed"].format(table=table), {"least": INDEX_FROM}
    ).fetchall()
    held = int(only(connection.execute(_SQL["embedding_in_index_count"].format(table=table)))[0])
    if not namespace_rows and not held:
        if _given_up(connection, table):  # it has only vectors that are gone, and without it their rows go fast
            vacuum(connection, [table], "INDEX_CLEANUP ON")
        return 0
    vector_count = int(sum(rest for _, rest, _ in namespace_rows))
    entries, takes_out = held, False
    if ready := _ready(connection, table):
        entries = _entries(connection, table, held)
        needed, most = _memory(connection, held + vector_count, dimensions)
        fits, gone = needed <= most, entries - held
        takes_out = not fits and _ANEW * gone > held
        if fits and _ANEW * (vector_count + gone) > held:
            ready = not _given_up(connection, table)
        elif not vector_count and not takes_out:
            return 0
    else:
        connection.execute(_SQL["embedding_index_clear"].format(table=table))
    nodes.check(connection, mend=_MAINTAIN_THERE)
    _take_in(connection, namespace_rows, table)  # building over existing rows is much faster than inserting them
    if ready:
        _note_entries(connection, table, entries + vector_count)
        # otherwise the exact scan would still read the moved rows
        vacuum(connection, [table], "ANALYZE", *(["INDEX_CLEANUP ON"] if takes_out else []))
        if takes_out:
            _note_entries(connection, table, held + vector_count)
        return vector_count
    if shrink:
        with suppress(LockNotAvailable), session_setting(connection, "lock_timeout", _PATIENCE):
            connection.execute(f"VACUUM (FULL) {table}")
    count = int(only(connection.execute(_SQL["embedding_in_index_count"].format(table=table)))[0])
    with session_setting(connection, "maintenance_work_mem", build_memory(connection, count, dimensions)):
        connection.execute(with_index("embedding_index", dimensions, table))
    _note_entries(connection, table, count)
    vacuum(connection, [table], "ANALYZE", "INDEX_CLEANUP ON")  # the new index has none of the rows that go
    return vector_count or count


def _entries(connection: Connection, table: str, held: int) -> int:
    """Return how many vectors were put into the index since it was built, those included that are gone."""
    noted = only(connection.execute(_SQL["embedding_index_entries"].format(table=table)))[0]
    return max(held, int(noted or 0))


def _note_entries(connection: Connection, table: str, entries: int) -> None:
    """Note that number as the comment of the index, which goes with it; not where it is not ours, or gone by now."""
    with suppress(InsufficientPrivilege, UndefinedTable):
        connection.execute(_SQL["embedding_index_note"].format(table=table, entries=int(entries)))


def with_index(name: str, dimensions: int, table: str = "embedding") -> str:
    """Return a statement that builds or uses the index of ``table``, whose vectors have so many dimensions."""
    indexed, asked = _halved("vector", dimensions), _halved("%(vector)s::public.vector", dimensions)
    return _SQL[name].format(indexed=indexed, asked=asked, table=table)


def _halved(vector: str, dimensions: int) -> str:
    """Return the SQL of a vector as the index has it."""
    if dimensions <= _MOST_INDEXED:
        return f"{vector}::public.halfvec({int(dimensions)})"
    return f"public.subvector({vector}, 1, {_MOST_INDEXED})::public.halfvec({_MOST_INDEXED})"


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
    return count * (2 * min(dimensions, _MOST_INDEXED) + _LINKS_BYTES) >> 20, max(_BUILD_MB, most)


def _given_up(connection: Connection, table: str) -> bool:
    """Drop the index, to build it anew; return False where it stays.

    It does where others go on reading the table, who would have to queue behind us, and where it is not ours.
    """
    try:
        with session_setting(connection, "lock_timeout", _PATIENCE):
            connection.execute(_SQL["embedding_index_drop"].format(table=table))
    except (LockNotAvailable, InsufficientPrivilege):
        return False
    return True


def _take_in(connection: Connection, namespace_rows: list[tuple[str, int, int]], table: str) -> None:
    for namespace, _, _ in namespace_rows:
        parameters = {"namespace": namespace, "limit": _TAKEN_IN}
        while connection.execute(_SQL["embedding_take_in"].format(table=table), parameters).rowcount == _TAKEN_IN:
            pass


def _ready(connection: Connection, table: str = "embedding") -> bool:
    row = connection.execute(_SQL["embedding_index_ready"].format(table=table)).fetchone()
    return bool(row and row[0])
