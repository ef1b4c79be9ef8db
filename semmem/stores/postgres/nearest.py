"""Find the nearest vectors in PostgreSQL.

A small scope is scanned exactly. A large one is searched by HNSW on halfvec and rescored exactly; of a vector with more
than 4,000 dimensions the index has the first 4,000, which is as many as pgvector takes. New vectors stay out of the
index until ``maintain``, see semmem.stores.postgres.vector_index: a query scans them exactly beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector

from semmem.model.exchange import Scope, placed
from semmem.stores.postgres.connection import planned_transaction
from semmem.stores.postgres.encoding import made_by
from semmem.stores.postgres.typed import Connection
from semmem.stores.sql_files import statements

__all__ = ["INDEX_FROM", "MOST_INDEXED", "nearest", "with_index"]

_SQL = statements("postgres")

INDEX_FROM = 10_000
"""Vectors of a namespace from which on it is worth indexing: below, the exact scan takes about 0.6 ms a thousand."""

_WITHIN = 5_000
"""A filter that matches fewer memories is scanned exactly; one that matches more widens the index scan."""

_WIDEST = 4_000

MOST_INDEXED = 4_000
"""The dimensions that an index of halfvec takes."""

_BREADTH = 1_000
"""What hnsw.ef_search can be at most."""


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
    with planned_transaction(connection):
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


def with_index(name: str, dimensions: int, table: str = "embedding") -> str:
    """Return a statement that builds or uses the index of ``table``, whose vectors have so many dimensions."""
    indexed, asked = _halved("vector", dimensions), _halved("%(vector)s::public.vector", dimensions)
    return _SQL[name].format(indexed=indexed, asked=asked, table=table)


def _halved(vector: str, dimensions: int) -> str:
    """Return the SQL of a vector as the index has it."""
    if dimensions <= MOST_INDEXED:
        return f"{vector}::public.halfvec({int(dimensions)})"
    return f"public.subvector({vector}, 1, {MOST_INDEXED})::public.halfvec({MOST_INDEXED})"
