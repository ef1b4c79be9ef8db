"""Vectors in SQLite: the embedder that fills the file, missing vectors, and another embedder's staging vectors.

The nearest are found in memory (stores/sqlite/resident.py), exactly. Where a process holds nothing of a namespace, as
when it remembers one memory, the vectors alone are read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import MOST_TURNS, Ranking, RowIds, Scope, Turn, apart, placed
from semmem.model.protocols import Embed
from semmem.model.store.encoded import vector_embedder
from semmem.model.types import Memory
from semmem.stores.filled_by import agree, unfinished
from semmem.stores.resident.model import Model
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.meta import claim, fact
from semmem.stores.sqlite.resident import vectors_of
from semmem.stores.sqlite.saved import erase
from semmem.stores.sqlite.write import memory_of

if TYPE_CHECKING:
    from semmem.stores.sqlite.store import SqliteStore

__all__ = ["SqliteVectors"]

_SQL = statements("sqlite")
_NEXT = "embedder_next"


class SqliteVectors:
    """The vectors of one file: their embedder, the nearest to a question, and another embedder's staging vectors."""

    def __init__(self, file: SqliteStore) -> None:
        self._file = file

    def embedder(self) -> Mapping[str, Any] | None:
        """Return the identity of the embedder that filled the store; None before the first vector."""
        return self._file._run(fact)

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        value = {"key": "embedder", "value": json.dumps(dict(identity))}
        self._file._writing(lambda c: c.execute(_SQL["meta_claim"], value))
        return self.embedder() or identity

    def release_embedder(self) -> None:
        """Forget which embedder fills the store, if it holds no vector."""
        self._file._writing(lambda c: c.execute(_SQL["meta_release"]))

    # ------------------------------------------------------------------ reading

    def _compared(self, namespace: str, vector: NDArray[np.float32]) -> Model | None:
        """Return the model of a namespace whose vectors can be compared with ``vector``; None where there are none.

        Raises EmbedderReplaced where another embedder fills the store, LegFailed where the namespace is too large.
        """
        model = self._file.models.with_vectors(namespace)
        if model is None:
            return None
        _agree(model, vector)
        return model if model.dimensions == len(vector) else None

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories with the highest cosine within scope; exact."""
        rows: list[tuple[int, float]] = []
        for place, (namespace, one) in enumerate(zip(scope.namespaces, scope.each(), strict=True)):
            if (model := self._compared(namespace, vector)) is not None:
                near = model.nearest(one, vector, depth)
                rows += (
                    (placed(row_id, place), score) for row_id, score in zip(near.row_ids, near.scores, strict=True)
                )
        best = sorted(rows, key=lambda row: (-row[1], row[0]))[:depth]
        return Ranking(tuple(row_id for row_id, _ in best), tuple(score for _, score in best), len(best))

    def nearest_memories(
        self, namespace: str, vector: NDArray[np.float32], depth: int, *, least: float, excluded: NDArray[np.int64]
    ) -> Sequence[Memory]:
        """Return the memories and parts nearest to a vector."""
        ranking = self.nearest(Scope((namespace,), int(excluded.max()), excluded=excluded), vector, depth)
        row_ids = [row_id for row_id, cosine in zip(ranking.row_ids, ranking.scores, strict=True) if cosine >= least]
        memories = self._file.indexed_memories((namespace,), row_ids)
        return [memories[row_id] for row_id in row_ids if row_id in memories]

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest`` and the ``turns_with_vectors`` around it."""
        ranking = self.nearest(scope, vector, depth)
        return ranking, *self.turns_with_vectors(scope.namespaces, ranking.row_ids, vector)

    def turns_with_vectors(
        self, namespaces: Sequence[str], row_ids: RowIds, like: NDArray[np.float32]
    ) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the session turns around ``row_ids`` and their vectors; no vectors where the sessions were cut."""
        turns = self._file.session_turns(namespaces, row_ids)
        near = [turn.row_id for turn in turns] if len(turns) <= MOST_TURNS else []
        return turns, *self.vectors_of(namespaces, sorted(near), like)

    def similarities(
        self, namespaces: Sequence[str], row_ids: RowIds, vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        owners, rows = self.vectors_of(namespaces, row_ids, vector)
        if not len(owners) or rows.shape[1] != len(vector):
            return {}
        products = (rows.astype(np.float64) * np.asarray(vector, dtype=np.float64)).sum(axis=1)
        return dict(zip(owners.tolist(), products.tolist(), strict=True))

    def vectors_of(
        self, namespaces: Sequence[str], row_ids: RowIds, like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the row ids with a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        if (
            like is not None
            and len(namespaces) == 1
            and (model := self._file.models.present(namespaces[0])) is not None
        ):
            _agree(model, like)
            return model.vectors_of(row_ids)
        groups = apart(namespaces, row_ids)

        def read(connection: sqlite3.Connection) -> list[tuple[int, bytes]]:
            if (by := vector_embedder(like)) is not None and (recorded := fact(connection)) is not None:
                agree(recorded, by)
            pairs: list[tuple[int, bytes]] = []
            for place, namespace, own in groups:
                which = {"namespace": namespace, "ords": json.dumps(own.tolist())}
                rows = connection.execute(_SQL["embedding_some"], which)
                pairs += ((placed(row_id, place), raw) for row_id, raw in rows)
            return pairs

        return vectors_of(self._file._reading(read))

    def stored_vectors(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str, int], NDArray[np.float32]]:
        """Return the vectors of each (namespace, id), by (namespace, id, part)."""
        rows = self._file._rows("embedding_named", {"names": json.dumps([list(name) for name in names])})
        return {(n, id, part): np.frombuffer(raw, dtype="<f4").astype(np.float32) for n, id, part, raw in rows}

    # ------------------------------------------------------------------ filling in

    def missing_vectors(
        self, after: tuple[str, int], limit: int, *, staging: bool = False
    ) -> Sequence[tuple[int, Memory]]:
        """Return (row id, memory) of indexed memories without a vector, by (namespace, row id), from ``after`` on."""
        return self._file._run(lambda c: _missing(c, after, limit, staging))

    def count_missing(self) -> int:
        """Return how many indexed memories, or parts of one, have no vector."""
        return int(self._file._rows("embedding_missing_count", {})[0][0])

    def unfinished_rebuilds(self) -> Mapping[str, tuple[str, int]]:
        """Return which rebuilds of ``vectors`` and ``concepts`` are unfinished or running: for what, and how far."""
        return self._file._reading(
            lambda c: unfinished(
                lambda key: fact(c, key), _NEXT, lambda: c.execute(_SQL["staging_count"]).fetchone()[0]
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

        def work(connection: sqlite3.Connection) -> None:
            recorded = fact(connection, _NEXT if staging else "embedder")
            if staging:
                agree(recorded if by else None, by)
            elif rows and recorded is None and by is not None:
                claim(connection, by)
            elif rows:
                agree(recorded, by)
            _add(connection, rows, staging)

        self._file._writing(work)

    # ------------------------------------------------------------------ the staging vectors

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        return self._file.rebuilding()

    def open_staging(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Let ``identity`` fill the staging vectors; return how many there are, and whose were deleted for it."""

        def work(connection: sqlite3.Connection) -> tuple[int, str | None]:
            before = fact(connection, _NEXT)
            if before is not None and dict(before) == dict(identity):
                return int(connection.execute(_SQL["staging_count"]).fetchone()[0]), None
            dropped = _clear(connection)
            connection.execute(_SQL["meta_set"], {"key": _NEXT, "value": json.dumps(dict(identity))})
            return 0, dropped

        return self._file._writing(work)

    def drop_staging(self) -> str | None:
        """Delete the staging vectors; return the name of their embedder, None where there were none."""
        return self._file._writing(_clear) if self._file._run(lambda c: fact(c, _NEXT)) is not None else None

    def index_staging(self, dimensions: int) -> int:
        """Return 0: no vector is indexed, all are compared."""
        return 0

    def swap_staging(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Replace the vectors by the staging vectors; return how many ``embed`` made while writers waited.

        Returns None, and changes nothing, if more than ``most`` are missing. Raises EmbedderReplaced when the staging
        vectors are another embedder's by now.
        """

        def work(connection: sqlite3.Connection) -> int | None:
            agree(fact(connection, _NEXT), identity)
            late = _missing(connection, ("", 0), -1 if most is None else most + 1, staging=True)
            if most is not None and len(late) > most:
                return None
            if late:
                vectors = embed([memory for _, memory in late])
                _add(
                    connection,
                    [(m.namespace, row_id, v) for (row_id, m), v in zip(late, vectors, strict=True)],
                    staging=True,
                )
            for statement in (
                "staging_empty_place",
                "staging_move",
                "staging_clear",
                "staging_counted",
            ):
                connection.execute(_SQL[statement])
            # also where a probe has forgotten meanwhile which one it was
            connection.execute(_SQL["meta_set"], {"key": "embedder", "value": json.dumps(dict(identity))})
            connection.execute(_SQL["meta_drop"], {"key": _NEXT})
            erase(connection)
            return len(late)

        return self._file._writing(work)


def _agree(model: Model, vector: NDArray[np.float32]) -> None:
    if model.state.embedder is not None:
        agree(json.loads(model.state.embedder), vector_embedder(vector))


def _clear(connection: sqlite3.Connection) -> str | None:
    before = fact(connection, _NEXT)
    connection.execute(_SQL["staging_clear"])
    connection.execute(_SQL["meta_drop"], {"key": _NEXT})
    return None if before is None else str(before["name"])


def _missing(
    connection: sqlite3.Connection, after: tuple[str, int], limit: int, staging: bool
) -> list[tuple[int, Memory]]:
    statement = "staging_missing" if staging else "embedding_missing"
    rows = connection.execute(_SQL[statement], {"namespace": after[0], "ord": after[1], "limit": limit}).fetchall()
    return [(row[-1], memory_of(row)) for row in rows]


def _add(connection: sqlite3.Connection, rows: Sequence[tuple[str, int, NDArray[Any]]], staging: bool) -> None:
    each = [{"namespace": n, "ord": row_id, "vector": vector.astype("<f4").tobytes()} for n, row_id, vector in rows]
    connection.executemany(_SQL["staging_add" if staging else "embedding_add"], each)
    if not staging:
        namespaces = sorted({namespace for namespace, _, _ in rows})
        connection.executemany(_SQL["namespace_revise"], [{"namespace": n, "length": 0} for n in namespaces])
