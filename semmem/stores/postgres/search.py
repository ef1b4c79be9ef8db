"""How PostgreSQL is searched: the rows of postings and turns as arrays, and the nearest vectors.

Nearest vectors are exact in a small scope, HNSW on halfvec in a large one, rescored exactly. Inserting into HNSW costs
about a millisecond a vector, so new ones stay out of it: a query scans them exactly beside the index, and ``maintain``
takes them in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.encoded import maker
from semmem.model.exchange import BEHIND, LAST, Kinds, Scope, Turn, placed
from semmem.stores.packed_postings import FORWARD
from semmem.stores.postgres.connection import session_setting
from semmem.stores.postgres.encoding import Vector
from semmem.stores.sql_files import statements

__all__ = [
    "INDEX_FROM",
    "facts_asked",
    "facts_of",
    "index",
    "known_of",
    "labels_of",
    "literal",
    "made_by",
    "nearest",
    "postings_asked",
    "settings_together",
    "sorted_rows",
    "turns_of",
]

_SQL = statements("postgres")

_NO_LIMIT = 2**62

INDEX_FROM = 20_000
"""Vectors of a namespace from which on it is worth indexing: below, the exact scan takes about 0.7 ms a thousand."""

_WITHIN = 5_000
"""A filter that lets fewer through is scanned exactly; one that lets more through widens the index scan."""

_TAKEN_IN = 5_000

_WIDEST = 4_000


def facts_asked(namespace: str, keys: Collection[str]) -> dict[str, Any]:
    """Return the parameters of the statement ``memory_kinds``."""
    return {"namespace": namespace, "keys": list(keys), "last": LAST, "behind": BEHIND}


def facts_of(rows: Mapping[str, Sequence[Any]]) -> dict[str, Kinds]:
    """Return what each namespace has, from the rows of the statement ``memory_kinds`` by namespace."""
    return Kinds.of(list(rows), [(namespace, *row) for namespace, found in rows.items() for row in found])


def postings_asked(keys: Collection[int], max_df: int | None) -> dict[str, Any]:
    """Return the parameters of the statement ``postings``, but for the namespace."""
    wanted = np.unique(np.fromiter(keys, np.int64, len(keys)))
    return {"keys": wanted, "max_df": _NO_LIMIT if max_df is None else max_df}


def sorted_rows(rows: Sequence[Any]) -> tuple[tuple[int, int], list[tuple[int, int, bytes]], tuple[bytes, bytes]]:
    """Return the totals, the pending memories and the packed postings of the statement ``postings``."""
    totals, pending, folded = (0, 0), [], (b"", b"")
    for what, n, length, heads, raw in rows:
        if what == 0:
            totals = (n, length)
        elif what == 1:
            pending.append((n, length, raw))
        elif heads is not None:
            folded = (heads, raw)
    return totals, sorted(pending), folded


def known_of(rows: Sequence[tuple[int | None, bytes | None]]) -> set[int]:
    """Return the keys of the subjects, from the rows of the statement ``known_subjects``."""
    known = {key for key, _ in rows if key is not None}
    for key, raw in rows:
        if key is None and raw is not None:
            entries = np.frombuffer(raw, dtype=FORWARD)
            known.update(entries["key"][entries["subject"] > 0].tolist())
    return known


def labels_of(rows: Sequence[tuple[bytes, Sequence[str]]], keys: Collection[int]) -> dict[int, str]:
    """Return what people read for ``keys``, from the rows of the statement ``names_pending``."""
    found: dict[int, str] = {}
    for raw, names in rows:
        pairs = zip(np.frombuffer(raw, dtype=FORWARD)["key"].tolist(), names, strict=True)
        found |= {key: name for key, name in pairs if key in keys}
    return found


def settings_together(settings: Sequence[str]) -> str | None:
    """Return the settings of several namespaces as one JSON array, None where there are none."""
    if len(settings) < 2:
        return settings[0] if settings else None
    return json.dumps([row for each in settings for row in json.loads(each)])


def turns_of(rows: Sequence[Any], dimensions: int) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
    """Return the turns of rows that end in a vector or NULL, the ords that have one, ascending, and the vectors."""
    held = sorted((row[1], row[-1]) for row in rows if row[-1] is not None)
    packed = b"".join(raw[4:] for _, raw in held)  # each begins with its length
    found = np.frombuffer(packed, dtype=">f4").reshape(len(held), dimensions).astype(np.float32)
    return [Turn(*row[:-1]) for row in rows], np.array([ord for ord, _ in held], dtype=np.int64), found


def nearest(connection: Any, scope: Scope, vector: NDArray[np.float32], depth: int) -> list[tuple[int, float]]:
    """Return (ord, cosine) of the ``depth`` nearest within scope, best first, ties by ord.

    A scope never makes this return too few: what the index found outside it is made up for by an exact scan. Nothing is
    found where the vector is of another embedder than the one that fills the store.
    """
    if len(scope.namespaces) > 1:
        each = (nearest(connection, scope.within(n), vector, depth) for n in scope.namespaces)
        together = ((placed(ord, at), cosine) for at, rows in enumerate(each) for ord, cosine in rows)
        return sorted(together, key=lambda row: (-row[1], row[0]))[:depth]
    excluded = 0 if scope.excluded is None else len(scope.excluded)
    parameters = {
        "namespace": scope.namespaces[0],
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
