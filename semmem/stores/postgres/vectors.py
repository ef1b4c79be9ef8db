"""Vectors in PostgreSQL: the embedder that fills the store, missing vectors, and another embedder's staging vectors.

A rebuild fills the staging vectors while reads and writes go on; see semmem.stores.postgres.staging. When few are
missing, they replace the present ones. A writer of vectors reads which embedder fills the store once it holds its lock
on the table, so no vector of the old embedder can be written after the swap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from psycopg.types.json import Jsonb

from semmem.model.errors import StoreUnavailable
from semmem.model.exchange import MOST_TURNS, Ranking, RowIds, Scope, Turn, placed
from semmem.model.protocols import Embed
from semmem.model.store.encoded import vector_embedder
from semmem.model.types import Memory
from semmem.stores.filled_by import agree, claimed, unfinished
from semmem.stores.postgres import nearest, nodes, vector_index
from semmem.stores.postgres.connection import Pooled
from semmem.stores.postgres.encoding import made_by, memory_of, turns_of
from semmem.stores.postgres.saved import erase
from semmem.stores.postgres.staging import STAGING, TABLE, NotNow, clear_soon, lock_writers_out, swap
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vacuum import vacuum
from semmem.stores.sql_files import statements

__all__ = ["PostgresVectors", "claim", "fact"]

T = TypeVar("T")

_SQL = statements("postgres")

_STAGING_PATIENCE_S, _PAUSE_S = 900.0, 0.2
_REBUILD_THERE = "run `semmem rebuild` with the address of {coordinator}"


def claim(connection: Connection, embedder: Mapping[str, Any]) -> None:
    """Record ``embedder`` as the one that fills the store, in the transaction that stores the first vector.

    Raises EmbedderReplaced where another embedder fills the store by now.
    """
    connection.execute(_SQL["meta_claim"], {"key": "embedder", "value": Jsonb(dict(embedder))})
    claimed(fact(connection, "embedder"), embedder)


class PostgresVectors:
    """The vectors of a store: their embedder, the nearest to a question, and another embedder's staging vectors."""

    def __init__(self, pool: Pooled) -> None:
        self._pool = pool

    def embedder(self) -> Mapping[str, Any] | None:
        """Return the identity of the embedder that filled the store; None before the first vector."""
        return self._pool.run(lambda c: fact(c, "embedder"))

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        self._pool.execute("meta_claim", {"key": "embedder", "value": Jsonb(dict(identity))})
        return self.embedder() or identity

    def release_embedder(self) -> None:
        """Forget which embedder fills the store, if it holds no vector and nobody writes."""

        def work(connection: Connection) -> None:
            lock_writers_out(connection)
            connection.execute(_SQL["meta_release"])

        with suppress(NotNow):
            self._pool.transaction(work)

    # ------------------------------------------------------------------ reading

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories with the highest cosine within scope; see semmem.stores.postgres.nearest.

        Raises EmbedderReplaced when the vector's embedder does not fill the store any more.
        """
        rows = self._pool.run(lambda c: nearest.nearest(c, scope, vector, depth))
        self._compare(vector, bool(rows))
        return Ranking(tuple(o for o, _ in rows), tuple(s for _, s in rows), len(rows))

    def nearest_memories(
        self, namespace: str, vector: NDArray[np.float32], depth: int, *, least: float, excluded: NDArray[np.int64]
    ) -> Sequence[Memory]:
        """Return the memories and parts nearest to a vector; in one round trip where no index is used."""
        size = int(excluded.max())  # at most as many passages as the last row id
        if size >= nearest.INDEX_FROM:
            ranking = self.nearest(Scope((namespace,), size, excluded=excluded), vector, depth)
            pairs = zip(ranking.row_ids, ranking.scores, strict=True)
            row_ids = [row_id for row_id, cosine in pairs if cosine >= least]
            rows = self._pool.rows("memory_by_row_ids", {"namespace": namespace, "ords": row_ids}) if row_ids else []
            memories = {row[-1]: memory_of(row) for row in rows}
            return [memories[row_id] for row_id in row_ids if row_id in memories]
        near = {"vector": Vector(vector), "embedder": made_by(vector), "depth": depth, "least": least}
        rows = self._pool.rows("nearest_memories", {"namespace": namespace, "excluded": excluded, **near})
        return [memory_of(row[:-1]) for row in rows]

    def similarities(
        self, namespaces: Sequence[str], row_ids: RowIds, vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        more = {"vector": Vector(vector), "embedder": made_by(vector)}
        groups = self._pool.among("similarities", namespaces, row_ids, **more)
        cosines = {placed(row_id, place): value for place, rows in groups for row_id, value in rows}
        self._compare(vector, bool(cosines))
        return cosines

    def _compare(self, vector: NDArray[np.float32] | None, has_rows: bool) -> None:
        """Raise EmbedderReplaced where nothing was found because the vector is of another embedder than the store's."""
        if not has_rows and (by := vector_embedder(vector)) is not None:
            rows = self._pool.rows("meta_get", {"key": "embedder"})
            agree(rows[0][0] if rows else by, by)

    def turns_with_vectors(
        self, namespaces: Sequence[str], row_ids: RowIds, like: NDArray[np.float32]
    ) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the session turns around ``row_ids`` and their vectors; no vectors where the sessions were cut."""
        more = {"limit": MOST_TURNS + 1, "embedder": made_by(like)}
        groups = self._pool.among("memory_turns_vectors", namespaces, row_ids, **more)
        rows = [(row[0], placed(row[1], place), *row[2:]) for place, own_rows in groups for row in own_rows]
        turns, owners, values = turns_of(rows, len(like))
        if 0 < len(turns) <= MOST_TURNS:
            self._compare(like, bool(len(owners)))
        return turns, owners, values

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest`` and the ``turns_with_vectors`` around it; in one round trip where no index is used."""
        narrowed = scope.allowed is not None or scope.excluded is not None
        if narrowed or len(scope.namespaces) > 1 or scope.size >= nearest.INDEX_FROM:
            ranking = self.nearest(scope, vector, depth)
            return ranking, *self.turns_with_vectors(scope.namespaces, ranking.row_ids, vector)
        parameters = {
            "namespace": scope.namespaces[0],
            "vector": Vector(vector),
            "depth": depth,
            "embedder": made_by(vector),
            "limit": MOST_TURNS + 1,
        }
        rows = self._pool.rows("nearest_turns", parameters)
        near = [(row[1], row[8]) for row in rows if row[0] is None]
        self._compare(vector, bool(near))
        ranking = Ranking(tuple(row_id for row_id, _ in near), tuple(cosine for _, cosine in near), len(near))
        return ranking, *turns_of([row[:-1] for row in rows if row[0] is not None], len(vector))

    def vectors_of(
        self, namespaces: Sequence[str], row_ids: RowIds, like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the row ids with a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        by = None if like is None else made_by(like)
        row_id_arrays, packed = [], b""
        for place, ((heads, raw),) in self._pool.among("embedding_vectors", namespaces, row_ids, embedder=by):
            if heads is not None:
                row_id_arrays.append(placed(np.frombuffer(heads, dtype=">i8").astype(np.int64), place))
                packed += raw
        if not row_id_arrays:
            self._compare(like, False)
            return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        all_row_ids = np.concatenate(row_id_arrays)
        rows = np.frombuffer(packed, dtype=np.uint8).reshape(len(all_row_ids), -1)[:, 4:]  # each begins with its length
        return all_row_ids, np.frombuffer(rows.tobytes(), dtype=">f4").reshape(len(all_row_ids), -1).astype(np.float32)

    def stored_vectors(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str, int], NDArray[np.float32]]:
        """Return the vectors of each (namespace, id), by (namespace, id, part)."""
        groups = self._pool.named("memory_vectors", names, planned=True)
        rows = ((n, *row) for n, group in groups for row in group)
        return {(n, i, part): Vector.from_binary(raw).to_numpy() for n, i, part, raw in rows}

    # ------------------------------------------------------------------ filling in

    def missing_vectors(
        self, after: tuple[str, int], limit: int, *, staging: bool = False
    ) -> Sequence[tuple[int, Memory]]:
        """Return (row id, memory) of indexed memories without a vector, by (namespace, row id), from ``after`` on."""
        return self._pool.run(lambda c: _missing(c, after, limit, STAGING if staging else TABLE))

    def count_missing(self) -> int:
        """Return how many indexed memories, or parts of one, have no vector."""
        return int(self._pool.row("embedding_missing_count", {})[0])

    def unfinished_rebuilds(self) -> Mapping[str, tuple[str, int]]:
        """Return which rebuilds of ``vectors`` and ``concepts`` are unfinished or running: for what, and how far."""
        return self._pool.run(
            lambda c: unfinished(
                lambda key: fact(c, key), "embedder_next", lambda: only(c.execute(_SQL["staging_count"]))[0]
            )
        )

    def add_vectors(
        self,
        rows: Sequence[tuple[str, int, NDArray[Any]]],
        by: Mapping[str, Any] | None = None,
        *,
        staging: bool = False,
    ) -> None:
        """Store vectors of memories that have none; memories forgotten meanwhile are left out.

        Raises EmbedderReplaced, and stores none, when ``by`` does not (any longer) fill the store or its staging
        vectors.
        """
        table = STAGING if staging else TABLE

        def work(connection: Connection) -> None:
            _add(connection, rows, table, "FOR KEY SHARE OF m")
            if staging:
                agree(fact(connection, "embedder_next") if by else None, by)
            elif rows:
                recorded = fact(connection, "embedder")
                if recorded is None and by is not None:
                    claim(connection, by)
                else:
                    agree(recorded, by)

        self._pool.transaction(work)

    # ------------------------------------------------------------------ the staging vectors

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        return self._pool.rebuilding()

    def open_staging(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Let ``identity`` fill the staging vectors; return how many there are, and whose were deleted for it.

        Where ``maintain`` is building the index of vectors in their table, or a backup reads it, that is waited for.
        Raises StoreUnavailable where it goes on, and on a worker of Citus, where the tables could not change places in
        the end.
        """

        def work(connection: Connection) -> tuple[int, str | None]:
            nodes.check(connection, mend=_REBUILD_THERE)
            before = fact(connection, "embedder_next")
            if before is not None and dict(before) == dict(identity):
                return int(only(connection.execute(_SQL["staging_count"]))[0]), None
            if before is None and not only(connection.execute(_SQL["staging_claim_lock"]))[0]:
                raise NotNow(
                    "`semmem maintain` is building the index of vectors; call the same rebuild when it is done."
                )
            dropped = _clear(connection)
            connection.execute(_SQL["meta_set"], {"key": "embedder_next", "value": Jsonb(dict(identity))})
            return 0, dropped

        return self._in_time(work)

    def drop_staging(self) -> str | None:
        """Delete the staging vectors; return the name of their embedder, None where there were none.

        Raises StoreUnavailable where another program goes on reading them.
        """
        return self._in_time(_clear) if self._pool.run(lambda c: fact(c, "embedder_next")) is not None else None

    def _in_time(self, work: Callable[[Connection], T]) -> T:
        """Do ``work`` in a transaction, again while it raises NotNow. Raises StoreUnavailable where that goes on."""
        end = time.monotonic() + _STAGING_PATIENCE_S
        while True:
            try:
                return self._pool.transaction(work)
            except NotNow as error:
                if time.monotonic() > end:
                    raise StoreUnavailable(str(error)) from None
                time.sleep(_PAUSE_S)

    def index_staging(self, dimensions: int) -> int:
        """Index and analyse the staging vectors, if they are many; return the number of indexed vectors."""

        def work(connection: Connection) -> int:
            count = vector_index.index(connection, dimensions, STAGING) or 0
            vacuum(connection, [STAGING], "ANALYZE")
            return count

        return self._pool.run(work)

    def swap_staging(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Replace the vectors by the staging vectors; return how many were made while writers waited.

        Writers wait while the last vectors are made, readers only for the swap. Returns None, and changes nothing, if
        more than ``most`` are missing or the table stays in use. Raises EmbedderReplaced when the staging vectors are
        another embedder's by now.
        """

        def work(connection: Connection) -> int:
            lock_writers_out(connection)
            agree(fact(connection, "embedder_next"), identity)
            late = _missing(connection, ("", 0), 2**31 if most is None else most + 1, STAGING)
            if most is not None and len(late) > most:
                raise NotNow
            if late:
                vectors = embed([memory for _, memory in late])
                rows = [(m.namespace, row_id, v) for (row_id, m), v in zip(late, vectors, strict=True)]
                _add(connection, rows, STAGING, "")  # no row lock: who forgets now waits for us, and deletes then
            erase(connection)
            swap(connection)
            # also where a probe has forgotten meanwhile which one it was
            connection.execute(_SQL["meta_set"], {"key": "embedder", "value": Jsonb(dict(identity))})
            connection.execute(_SQL["meta_drop"], {"key": "embedder_next"})
            return len(late)

        try:
            return self._pool.transaction(work)
        except NotNow:
            return None


def _clear(connection: Connection) -> str | None:
    before = fact(connection, "embedder_next")
    clear_soon(connection)
    connection.execute(_SQL["meta_drop"], {"key": "embedder_next"})
    return None if before is None else str(before["name"])


def fact(connection: Connection, key: str) -> Mapping[str, Any] | None:
    row = connection.execute(_SQL["meta_get"], {"key": key}).fetchone()
    return row[0] if row else None


def _missing(connection: Connection, after: tuple[str, int], limit: int, table: str) -> list[tuple[int, Memory]]:
    parameters = {"namespace": after[0], "ord": after[1], "limit": limit}
    rows = connection.execute(_SQL["embedding_missing"].format(table=table), parameters, binary=True).fetchall()
    return [(row[-1], memory_of(row)) for row in rows]


def _add(connection: Connection, rows: Sequence[tuple[str, int, NDArray[Any]]], table: str, lock: str) -> None:
    for namespace in sorted({namespace for namespace, _, _ in rows}):
        own_rows = [(row_id, vector) for n, row_id, vector in rows if n == namespace]
        parameters = {
            "namespace": namespace,
            "ords": [row_id for row_id, _ in own_rows],
            "vectors": [Vector(vector).to_text() for _, vector in own_rows],
        }
        connection.execute(_SQL["embedding_add"].format(table=table, lock=lock), parameters)
        if table == TABLE:
            connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})
