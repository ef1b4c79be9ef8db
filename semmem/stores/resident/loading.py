"""Load models from PostgreSQL: a whole namespace in one snapshot, the changes since an earlier one, or a saved one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np
import psycopg

from semmem.model.errors import SemmemError
from semmem.model.store import Moved
from semmem.stores.packed_postings import CANDIDATE, FORWARD, unpack_candidates
from semmem.stores.postgres.connection import on_nodes, pipelined_transaction
from semmem.stores.postgres.encoding import corrections_of
from semmem.stores.postgres.saved import key_of, path_of
from semmem.stores.postgres.typed import Connection, Cursor, only
from semmem.stores.resident import saved
from semmem.stores.resident.block import PER_MEMORY, Block, Rows
from semmem.stores.resident.model import Model, State
from semmem.stores.resident.turns import Turns
from semmem.stores.sql_files import statements

__all__ = ["follow", "load", "mapped"]

T = TypeVar("T")

_SQL = statements("postgres")
_KEPT = ("resident_memories", "resident_forwards", "resident_vectors")
_AT_A_TIME = 2_000
"""Memories read by a statement: a connection keeps the room for the largest value that it has received; see adr/0115.
"""
_JOINED_AT_ONCE = 2_000
"""Up to this many memories a recall joins the blocks of a model itself, in some 50 ms; see adr/0121."""
_PER_ENTRY = 1.2
"""Bytes of memory taken per byte of entries in the store: postings, the places of each memory's entries, and keys."""


class Runs(Protocol):
    """What runs work on a connection that has no open transaction: a pool of connections, or one connection."""

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns."""


def load(pool: Runs, namespace: str, most: int, spare: int) -> Model | None:
    """Load a namespace; None where it would take more than ``most`` bytes.

    What depends on the clock is not in a model: the scope of each recall says which memories have expired or are not
    valid, as the database's clock has it. Sensitive memories are in no index, so no model has them.
    Vectors are kept in bytes too only where all fits into ``spare``, so that no other namespace makes room for these.
    """
    where = {"namespace": namespace}

    def read(connection: Connection) -> Model | None:
        with connection.transaction():
            _begin(connection)
            state_row = connection.execute(_SQL["resident_state"], where, binary=True).fetchone()
            if state_row is None:
                return None
            state = State(*state_row)
            count, vectors, *packed = map(int, only(connection.execute(_SQL["resident_size"], where, binary=True)))
            if state.dropping or _bytes(state, sum(packed)) > most:
                return None
            sizes = packed[0] // FORWARD.itemsize, packed[1] // CANDIDATE.itemsize
            rows = Rows.gathered(_read(connection, namespace), count, vectors, *sizes)
            correction_rows = connection.execute(_SQL["corrections"], where, binary=True).fetchall()
            base = Block(rows, coarse=_bytes(state, sum(packed), in_bytes=True) <= spare)
            if base.size > spare:  # more than was estimated
                base.coarse, base.in_bytes = None, False
            return Model(namespace, state, base.in_own_pages(), corrections=corrections_of(correction_rows))

    return _run_or_none(pool, read)


def _begin(connection: Connection) -> None:
    """Begin a snapshot that is read by indexes, and let no other table take the place of the vectors meanwhile.

    Not on several nodes: every one would be asked for the lock, also one that is down. There a model may lack the
    vectors of memories that came in the last moment before a swap, until the namespace changes.
    """
    connection.execute(_SQL["resident_snapshot"])
    connection.execute(_SQL["by_index"])
    if not on_nodes(connection):
        connection.execute(_SQL["embedding_stay"])


def _read(connection: Connection, namespace: str) -> Iterator[Rows]:
    """Yield the memories of a namespace, row ids ascending, at most ``_AT_A_TIME`` at a time."""
    where = {"namespace": namespace, "after": 0, "most": _AT_A_TIME}
    while memory_rows := connection.execute(_SQL["resident_memories"], where, binary=True).fetchall():
        turns = Turns.of(memory_rows)
        where["upto"] = int(turns.row_ids[-1])
        yield _rows(turns, *(connection.execute(_SQL[name], where, binary=True) for name in _KEPT[1:]))
        if len(memory_rows) < _AT_A_TIME:
            return
        where["after"] = where["upto"]


def follow(pool: Runs, model: Model, most: int) -> Model | None:
    """Load the changes since ``model``; None where there are too many or they are not known."""
    before = model.state
    where = {"namespace": model.namespace, "since": before.changes}

    def read(connection: Connection) -> Model | None:
        with pipelined_transaction(connection):
            _begin(connection)
            state_cursor = connection.execute(_SQL["resident_state"], where, binary=True)
            changes = connection.execute(_SQL["resident_changes"], where)
            correction_cursor = connection.execute(_SQL["corrections"], where, binary=True)
            cursors = [connection.execute(_SQL[f"{name}_since"], where, binary=True) for name in _KEPT]
        row = state_cursor.fetchone()
        state = None if row is None else State(*row)
        if state is None or not state.follows(before):
            return None
        ids = {id for id, kind in changes.fetchall() if kind != "written"}
        if "" in ids:  # a dropped namespace, or changes that were swept
            return None
        new_rows = _rows(Turns.of(cursors[0].fetchall()), *cursors[1:])
        return model.after(state, new_rows, ids, corrections_of(correction_cursor.fetchall()), joins=_JOINED_AT_ONCE)

    later = _run_or_none(pool, read)
    return None if later is None or later.size > most else later


def mapped(pool: Runs, namespace: str, most: int) -> Model | None:
    """Load what another process has saved of a namespace of the embedded server, and the changes since.

    None where nothing valid is saved, or it would take more than ``most`` bytes.
    """
    where = {"namespace": namespace}

    def read(connection: Connection) -> tuple[Model, State] | None:
        with pipelined_transaction(connection):
            connection.execute(_SQL["resident_snapshot"])
            state_cursor = connection.execute(_SQL["resident_state"], where, binary=True)
            correction_cursor = connection.execute(_SQL["corrections"], where, binary=True)
            name_cursor = connection.execute(_SQL["meta_get"], {"key": key_of(namespace)})
            place_cursor = connection.execute(_SQL["saved_place"])
        row, name = state_cursor.fetchone(), name_cursor.fetchone()
        if row is None or name is None:
            return None
        state = State(*row)
        found = saved.load(path_of(place_cursor.fetchone(), name[0]), namespace, state)
        corrections = corrections_of(correction_cursor.fetchall())
        return None if found is None else (Model(namespace, *found, corrections=corrections), state)

    if (saved_and_now := _run_or_none(pool, read)) is None:
        return None
    model, state = saved_and_now
    later = model if model.state == state else follow(pool, model, most)
    return None if later is None or later.size > most else later


def _run_or_none(pool: Runs, read: Callable[[Connection], T | None]) -> T | None:
    """Run ``read``; None where it fails or a standby does, so that the recall asks the database, which says why."""
    try:
        return pool.run(read)
    except (SemmemError, Moved, psycopg.Error, MemoryError, ValueError):
        return None


def _bytes(state: State, entries: int, *, in_bytes: bool = False) -> float:
    """Estimate the size of a model, vectors ``in_bytes`` included or not."""
    import json

    dimensions = json.loads(state.embedder)["dimensions"] if state.embedder else 0
    return state.memories * (PER_MEMORY + (5 if in_bytes else 4) * dimensions) + _PER_ENTRY * entries


def _rows(turns: Turns, forward_cursor: Cursor, vector_cursor: Cursor) -> Rows:
    """Return memories from their turns and the results of the two other statements, which read the same snapshot."""
    heads, raw, runs = only(forward_cursor)
    sizes = np.frombuffer(heads or b"", dtype=">i8").astype(np.int64).reshape(-1, 4)
    owners, packed = only(vector_cursor)
    vector_row_ids = np.frombuffer(owners or b"", dtype=">i8").astype(np.int64)
    if not np.array_equal(turns.row_ids, sizes[:, 0]):
        raise ValueError("A memory is in no index.")
    vectors = np.zeros((0, 0), dtype=np.float32)
    if len(vector_row_ids):
        rows = np.frombuffer(packed, dtype=np.uint8).reshape(len(vector_row_ids), -1)  # each begins with its length
        vectors = np.ascontiguousarray(rows[:, 4:]).view(">f4").astype(np.float32)
    return Rows(
        turns,
        sizes[:, 1],
        sizes[:, 2] // FORWARD.itemsize,
        np.frombuffer(raw or b"", dtype=FORWARD),
        unpack_candidates(sizes[:, 0], sizes[:, 3] // CANDIDATE.itemsize, runs or b""),
        vector_row_ids,
        vectors,
    )
