"""Vectors in PostgreSQL: who fills the store with them, those that are missing, and the shadow of another embedder.

The shadow (``embedding_next``) is a table like ``embedding`` that a rebuild fills while everybody goes on. When little
is missing in it, the two change names in one transaction. Whoever stores vectors looks, once its own lock on the table
is held, who fills the store; so a vector of the old embedder cannot come in behind the new one.

Nearest vectors in PostgreSQL: exact in a small scope, HNSW on halfvec in a large one, rescored exactly.

Inserting into HNSW costs about a millisecond a vector, so new ones stay out of it: a query scans them exactly beside
the index, and ``maintain`` takes them in.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from semmem.model.encoded import maker
from semmem.model.errors import Conflict, EmbedderReplaced, StoreUnavailable
from semmem.model.exchange import PLACE, Scope
from semmem.model.protocols import Embed
from semmem.model.types import Memory
from semmem.stores.postgres import vectors as postgres_dense
from semmem.stores.postgres.connection import Pooled, agree, session_setting
from semmem.stores.postgres.encoding import Vector, memory_of
from semmem.stores.sql_files import statements

__all__ = ["INDEX_FROM", "VectorTables", "claim_or_agree", "index", "literal", "made_by", "nearest"]

_SQL = statements("postgres")

_TABLE, _SHADOW = "embedding", "embedding_next"

_PATIENCE = "1500ms"
"""How long writers may have to queue behind us while we wait for one that is at work, or for autovacuum to give way."""

_READERS_PATIENCE = "200ms"

_TURNS, _PAUSE = 10, 0.05

_OTHERS_PATIENCE = 3.0
"""Seconds in which the server finds out that a process that was killed is gone."""


class _NotNow(Exception):
    """Too many vectors are missing, or the table is in use: roll back and come again."""


def claim_or_agree(connection: Any, recorded: Mapping[str, Any] | None, mine: Mapping[str, Any] | None) -> None:
    """Record ``mine`` as who fills the store where nobody does, in the transaction that stores the first vector.

    Raises EmbedderReplaced where it is another by now.
    """
    if recorded is not None or mine is None:
        agree(recorded, mine)
        return
    connection.execute(_SQL["meta_claim"], {"key": "embedder", "value": Jsonb(dict(mine))})
    now = _fact(connection, "embedder")
    if now is not None and dict(now) != dict(mine):
        raise EmbedderReplaced(
            f"Another process has just begun to fill this store, with {now['name']} ({now['dimensions']} dimensions), "
            f"and this vector is of {mine['name']} ({mine['dimensions']} dimensions); use the first, or another store."
        )


class VectorTables(Pooled):
    """The part of a store that knows whose vectors it holds."""

    def embedder(self) -> Mapping[str, Any] | None:
        """Return who filled the store with vectors, None before the first one."""
        return self.fact("embedder")

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        claim = {"key": "embedder", "value": Jsonb(dict(identity))}
        self._run(lambda c: c.execute(_SQL["meta_claim"], claim))
        return self.embedder() or identity

    def release_embedder(self) -> None:
        """Let nobody fill the store, if it holds no vector; while somebody writes, all stays as it is."""

        def work(connection: Any) -> None:
            connection.execute(f"SET LOCAL lock_timeout TO '{_PATIENCE}'")
            _locked(connection, "shadow_write_lock")
            connection.execute(_SQL["meta_release"])

        with suppress(_NotNow):
            self._transaction(work)

    def fact(self, key: str) -> Mapping[str, Any] | None:
        """Return what is noted of the whole store under ``key``."""
        return self._run(lambda c: _fact(c, key))

    def note_fact(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Note something of the whole store under ``key``; None takes it away."""
        parameters = {"key": key, "value": Jsonb(dict(value or {}))}
        self._run(lambda c: c.execute(_SQL["meta_drop" if value is None else "meta_set"], parameters))

    def database_id(self) -> str:
        """Return what tells this database from every other: a moment means nothing elsewhere."""
        return str(self._rows("database_id", {})[0][0])

    # ------------------------------------------------------------------ filling in

    def missing_vectors(
        self, after: tuple[str, int], limit: int, *, shadow: bool = False
    ) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of indexed memories without a vector, by (namespace, ord), from ``after`` on."""
        return self._run(lambda c: _missing(c, after, limit, _SHADOW if shadow else _TABLE))

    def without_vector(self) -> int:
        """Return how many indexed memories, or parts of one, have no vector."""
        return int(self._rows("embedding_missing_count", {})[0][0])

    def half_done(self) -> Mapping[str, tuple[str, int]]:
        """Return, for ``vectors`` and ``concepts``, by whom a rebuild is half done or under way, and how far it is."""
        found: dict[str, tuple[str, int]] = {}
        if (coming := self.fact("embedder_next")) is not None:
            found["vectors"] = (str(coming["name"]), int(self._rows("shadow_count", {})[0][0]))
        if (place := self.fact(PLACE)) is not None:
            found["concepts"] = (str(place["by"]["name"]), int(place.get("read", 0)))
        return found

    def add_vectors(
        self,
        rows: Sequence[tuple[str, int, NDArray[Any]]],
        by: Mapping[str, Any] | None = None,
        *,
        shadow: bool = False,
    ) -> None:
        """Store vectors of memories that have none; those forgotten meanwhile are left out.

        Raises EmbedderReplaced, and stores none, when ``by`` is not (any more) who fills the store, or its shadow.
        """
        table = _SHADOW if shadow else _TABLE

        def work(connection: Any) -> None:
            _add(connection, rows, table, "FOR KEY SHARE OF m")
            if shadow:
                agree(_fact(connection, "embedder_next") if by else None, by)
            elif rows:
                claim_or_agree(connection, _fact(connection, "embedder"), by)

        self._transaction(work)

    # ------------------------------------------------------------------ the shadow

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """Be the only rebuild of this store for a while, in all processes. Raises Conflict when another one runs."""
        self._run(lambda c: c.execute("SELECT 1"))  # so that a server that is not there is told as ever
        connection = psycopg.connect(self._conninfo(), autocommit=True)
        try:  # not a context manager: one that was lost meanwhile would tell so at the end, when all is done
            end = time.monotonic() + _OTHERS_PATIENCE
            while not connection.execute(_SQL["rebuild_lock"]).fetchone()[0]:  # type: ignore[index]  # one row
                if time.monotonic() > end:
                    raise Conflict("Another process rebuilds this store; wait until it is done, or stop it.")
                time.sleep(_PAUSE)
            yield
        finally:
            connection.close()

    def open_shadow(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Let ``identity`` fill the shadow; return how many vectors of it are there, and whose were thrown away."""

        def work(connection: Any) -> tuple[int, str | None]:
            before = _fact(connection, "embedder_next")
            if before is not None and dict(before) == dict(identity):
                return int(connection.execute(_SQL["shadow_count"]).fetchone()[0]), None
            dropped = _clear(connection)
            connection.execute(_SQL["meta_set"], {"key": "embedder_next", "value": Jsonb(dict(identity))})
            return 0, dropped

        return self._transaction(work)

    def drop_shadow(self) -> str | None:
        """Throw the shadow away; return whose vectors were in it, None when there were none."""
        return self._transaction(_clear) if self.fact("embedder_next") is not None else None

    def index_shadow(self, dimensions: int) -> int:
        """Index the shadow, if it is large enough, and let the planner know it; return how many were taken in."""

        def work(connection: Any) -> int:
            taken = postgres_dense.index(connection, dimensions, _SHADOW)
            connection.execute(f"VACUUM (ANALYZE) {_SHADOW}")
            return taken

        return self._run(work)

    def take_over(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Let the shadow take the place of the vectors; return how many were made while writers waited.

        Writers wait while the last ones are made, readers for the swap alone. Returns None, and nothing has changed, if
        more than ``most`` are missing or the table is in use for long. Raises EmbedderReplaced when the shadow is
        another embedder's by now.
        """

        def work(connection: Any) -> int:
            connection.execute(f"SET LOCAL lock_timeout TO '{_PATIENCE}'")
            _locked(connection, "shadow_write_lock")
            agree(_fact(connection, "embedder_next"), identity)
            late = _missing(connection, ("", 0), 2**31 if most is None else most + 1, _SHADOW)
            if most is not None and len(late) > most:
                raise _NotNow
            if late:
                vectors = embed([memory for _, memory in late])
                found = [(m.namespace, ord, v) for (ord, m), v in zip(late, vectors, strict=True)]
                _add(connection, found, _SHADOW, "")  # no row lock: who forgets now waits for us, and deletes then
            connection.execute(f"SET LOCAL lock_timeout TO '{_READERS_PATIENCE}'")
            _swap(connection)
            return len(late)

        try:
            return self._transaction(work)
        except _NotNow:
            return None


def _swap(connection: Any) -> None:
    for _ in range(_TURNS):  # each time those who read queue behind us for a moment only
        try:
            with connection.transaction():
                connection.execute(_SQL["shadow_own_lock"])
                connection.execute(_SQL["shadow_swap"])
            return
        except psycopg.errors.LockNotAvailable:
            time.sleep(_PAUSE)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnavailable(
                "The vectors are made, but this database user may not put them in the place of the old ones; call the "
                "same rebuild as the owner of the table semmem.embedding, and it goes on from here."
            ) from error
    raise _NotNow


def _locked(connection: Any, statement: str) -> None:
    try:
        connection.execute(_SQL[statement])
    except psycopg.errors.LockNotAvailable:
        raise _NotNow from None


def _clear(connection: Any) -> str | None:
    before = _fact(connection, "embedder_next")
    connection.execute(_SQL["embedding_index_drop"].format(table=_SHADOW))
    connection.execute(_SQL["shadow_clear"])
    connection.execute(_SQL["meta_drop"], {"key": "embedder_next"})
    return None if before is None else str(before["name"])


def _fact(connection: Any, key: str) -> Mapping[str, Any] | None:
    row = connection.execute(_SQL["meta_get"], {"key": key}).fetchone()
    return row[0] if row else None


def _missing(connection: Any, after: tuple[str, int], limit: int, table: str) -> list[tuple[int, Memory]]:
    parameters = {"namespace": after[0], "ord": after[1], "limit": limit}
    rows = connection.execute(_SQL["embedding_missing"].format(table=table), parameters, binary=True).fetchall()
    return [(row[-1], memory_of(row)) for row in rows]


def _add(connection: Any, rows: Sequence[tuple[str, int, NDArray[Any]]], table: str, lock: str) -> None:
    parameters = {
        "namespaces": [namespace for namespace, _, _ in rows],
        "ords": [ord for _, ord, _ in rows],
        "vectors": [postgres_dense.literal(vector) for _, _, vector in rows],
    }
    connection.execute(_SQL["embedding_add"].format(table=table, lock=lock), parameters)


INDEX_FROM = 20_000
"""Vectors of a namespace from which on it is worth indexing: below, the exact scan takes about 0.7 ms a thousand."""

_WITHIN = 5_000
"""A filter that lets fewer through is scanned exactly; one that lets more through widens the index scan."""

_TAKEN_IN = 5_000

_WIDEST = 4_000


def nearest(connection: Any, scope: Scope, vector: NDArray[np.float32], depth: int) -> list[tuple[int, float]]:
    """Return (ord, cosine) of the ``depth`` nearest within scope, best first, ties by ord.

    A scope never makes this return too few: what the index found outside it is made up for by an exact scan. Nothing is
    found where the vector is of another embedder than the one that fills the store.
    """
    excluded = 0 if scope.excluded is None else len(scope.excluded)
    parameters = {
        "namespaces": list(scope.namespaces),
        "vector": Vector(vector),
        "depth": depth + excluded,
        "embedder": made_by(vector),
    }
    if scope.size >= INDEX_FROM and _ready(connection):
        rows = _indexed(connection, scope, len(vector), parameters, depth)
        if len(rows) >= depth:
            return rows
    if scope.allowed is None:
        rows = connection.execute(_SQL["nearest"], parameters, binary=True).fetchall()
    else:
        within = {**parameters, "ords": scope.allowed}
        rows = connection.execute(_SQL["nearest_within"], within, binary=True).fetchall()
    return _admitted(rows, scope)[:depth]


def _indexed(
    connection: Any, scope: Scope, dimensions: int, parameters: dict[str, Any], depth: int
) -> list[tuple[int, float]]:
    """Ask the index for more than is wanted, since halfvec and HNSW are approximate and filters drop some."""
    wanted = parameters["depth"] + max(50, parameters["depth"] // 2)
    if scope.allowed is not None:
        if len(scope.allowed) < _WITHIN:
            return []
        wanted = min(_WIDEST, 4 * wanted)
    statement = _SQL["nearest_indexed"].format(dimensions=dimensions)
    asked = {**parameters, "candidates": wanted, "depth": wanted}
    with connection.transaction():
        connection.execute(_SQL["plan_for_these"])
        rows = connection.execute(statement, asked, binary=True).fetchall()
    if not rows or rows[0][2] < wanted:  # a small share of a large index: the scan gave up before it had seen them
        return []
    return _admitted([row[:2] for row in rows], scope)[:depth]


def _admitted(rows: list[tuple[int, float]], scope: Scope) -> list[tuple[int, float]]:
    if scope.allowed is None and scope.excluded is None:
        return rows
    inside = scope.admits(np.array([ord for ord, _ in rows], dtype=np.int64))
    return [row for row, kept in zip(rows, inside.tolist(), strict=True) if kept]


def index(connection: Any, dimensions: int, table: str = "embedding") -> int:
    """Take the vectors of large namespaces into the HNSW index, building it first if need be; return how many."""
    waiting = connection.execute(_SQL["embedding_unindexed"].format(table=table), {"least": INDEX_FROM}).fetchall()
    ready = _ready(connection, table)
    if not waiting and (ready or not _interrupted(connection, table)):
        return 0
    if not ready:
        connection.execute(_SQL["embedding_index_drop"].format(table=table))
    _take_in(connection, waiting, table)  # building over rows that are there is much faster than inserting them
    if not ready:
        with session_setting(connection, "maintenance_work_mem", "512MB"):
            connection.execute(_SQL["embedding_index"].format(dimensions=int(dimensions), table=table))
    connection.execute(f"VACUUM (ANALYZE) {table}")  # else the scan of the rest would read what has moved
    return sum(rest for _, rest, _ in waiting)


def _take_in(connection: Any, waiting: list[tuple[str, int, int]], table: str) -> None:
    for namespace, _, _ in waiting:
        parameters = {"namespace": namespace, "limit": _TAKEN_IN}
        while connection.execute(_SQL["embedding_take_in"].format(table=table), parameters).rowcount == _TAKEN_IN:
            pass


def _ready(connection: Any, table: str = "embedding") -> bool:
    row = connection.execute(_SQL["embedding_index_ready"].format(table=table)).fetchone()
    return bool(row and row[0])


def _interrupted(connection: Any, table: str) -> bool:
    """Return whether vectors were taken into an index that is not there: its build was interrupted."""
    return bool(connection.execute(_SQL["embedding_in_index"].format(table=table)).fetchone()[0])


def made_by(vector: NDArray[np.float32]) -> str | None:
    """Return the maker of a vector as a statement compares it, None where nobody said."""
    by = maker(vector)
    return None if by is None else json.dumps(dict(by))


def literal(vector: NDArray[np.float32]) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
