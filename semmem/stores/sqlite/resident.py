"""The namespaces of a SQLite file in memory, from which the three legs of a recall read.

The file keeps the rows of each memory, and memory holds the arrays of ``stores/resident``: a model of one namespace,
read in one transaction. Every reader first asks for the state of the namespace, one row, and a model of another state
is brought up to date by the changes since, or read anew. So no reader sees an older state than the file has. A process
that holds none begins with the model that another one has saved (stores/sqlite/saved.py), if there is one.

A namespace of more than MOST memories is not held: its dense and graph legs say so, and FTS5 answers the lexical leg.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.errors import LegFailed
from semmem.model.exchange import Corrections
from semmem.model.process.forks import Lock
from semmem.stores.packed_postings import CANDIDATE, FORWARD, merged, unpack_candidates
from semmem.stores.resident import saved as files
from semmem.stores.resident.block import Block, Rows
from semmem.stores.resident.by_use import ByUse
from semmem.stores.resident.memory import Asked
from semmem.stores.resident.model import Model, State
from semmem.stores.resident.turns import Turns
from semmem.stores.sql_files import statements
from semmem.stores.sqlite import saved
from semmem.stores.sqlite.times import at_microsecond

if TYPE_CHECKING:
    from semmem.stores.sqlite.connection import Filed

__all__ = ["MOST", "FileModels", "corrections_of", "entries_of_tokens", "month_of", "vectors_of"]

_SQL = statements("sqlite")

MOST = 50_000
"""The most memories and parts of a namespace that are held in memory; see adr/0065."""

_BUDGET = 256 << 20
_SAVED_BUDGET = 1 << 30
_MOST_NOTED = 10_000
"""The number of namespaces of which it is noted that their vectors were read: a process may write to millions."""
_DAY = 86_400_000_000


class FileModels:
    """The models of one file, the one used last at the end. Safe to use from any thread.

    ``budget`` limits the bytes of all of them; the one used last stays however large it is. ``saved_budget`` limits
    those of saved models on disk. Where either is 0 no saved model is written or used.
    """

    def __init__(self, file: Filed) -> None:
        self.budget = _BUDGET
        self.saved_budget = _SAVED_BUDGET
        self._file = file
        self._models = ByUse[Model]()
        self._vectors_read: set[str] = set()
        self.asked = Asked()
        self._lock = Lock()
        self._bringing = Lock()

    @property
    def sizes(self) -> dict[str, int]:
        """Return the approximate number of bytes of each namespace in memory, the one asked last at the end."""
        with self._lock:
            return self._models.sizes

    @property
    def _saves(self) -> bool:
        return self.budget > 0 and self.saved_budget > 0

    def clear(self) -> None:
        """Drop all models."""
        with self._lock:
            self._models.clear()

    def states(self, namespaces: Collection[str]) -> dict[str, State | None]:
        """Return the state of each namespace now, None for one without memories."""
        return self._file._run(lambda c: {namespace: _state(c, namespace) for namespace in namespaces})

    def current(self, namespace: str) -> Model | None:
        """Return the namespace as it is now; None where it has no memories, or more than MOST."""
        state = self._file._run(lambda c: _state(c, namespace))
        if state is None or state.memories > MOST:
            return None
        model = self._held(namespace)
        return model if model is not None and model.state == state else self._brought(namespace)

    def needed(self, namespace: str) -> Model | None:
        """Return the namespace as it is now, None where it has no memories. Raises LegFailed where it has too many."""
        if (model := self.current(namespace)) is None:
            _check(namespace, self._file._run(lambda c: _state(c, namespace)))
        return model

    def present(self, namespace: str) -> Model | None:
        """Return the namespace as it is now; None where nothing of it is held: then nothing is read."""
        return self.current(namespace) if self._held(namespace) is not None else None

    def with_vectors(self, namespace: str) -> Model | None:
        """Return what ``needed`` does; the first time, where nothing is held, a model of the vectors alone.

        That one is not kept, as a process that remembers one memory needs no more. Raises LegFailed like ``needed``.
        """
        with self._lock:
            again = namespace in self._models or namespace in self._vectors_read
            if not again and len(self._vectors_read) >= _MOST_NOTED:  # their vectors are read alone once more
                self._vectors_read.clear()
            self._vectors_read.add(namespace)
        if again:
            return self.needed(namespace)
        return self._file._reading(lambda c: _vectors_alone(c, namespace))

    def _held(self, namespace: str) -> Model | None:
        with self._lock:
            return self._models.used(namespace)

    def _brought(self, namespace: str) -> Model | None:
        """Bring the model of a namespace up to date, or read it; other readers wait meanwhile."""
        with self._bringing:
            before = self._held(namespace)
            model = self._file._reading(lambda c: _read(c, namespace, before, maps=self._saves))
            whole = self._file.in_whole
            if whole is None or whole.connection is None:  # else it may be of what is never committed
                self._keep(namespace, model)
            return model

    def save(self, *, every: bool = False) -> dict[str, int]:
        """Save those models in memory that take long to read, or with ``every`` such models of the whole file.

        What somebody's write would have to wait for, or what fails, is left out. Returns the counts of ``counts_of``.
        """
        if not self._saves or not self._file.is_ready or self._file.in_whole is not None:
            return {}
        saved_count = unsaved = 0
        held = self._large()
        namespaces = self._large_of_file() if every else list(held)
        with files.left_out(sqlite3.Error):
            if every:
                unsaved = self._file._writing_at_once(lambda c: saved.shrink(c, self.saved_budget))
            else:
                self._file._reading(lambda c: saved.touch(c, held.values()))
        for namespace in namespaces:
            with files.left_out(sqlite3.Error):
                saved_count += self._save(namespace, every)
        return files.counts_of(saved=saved_count, unsaved=unsaved)

    def _large(self) -> dict[str, State]:
        """Return the states of the namespaces in memory that are worth saving, the one asked last at the end.

        So the file is not asked about each small one.
        """
        with self._lock:
            states = {name: model.state for name, model in self._models.items()}
        return {name: state for name, state in states.items() if state.memories >= files.FEWEST}

    def _large_of_file(self) -> list[str]:
        """Return the namespaces of the whole file that are worth saving."""
        return [name for (name,) in self._file._rows("namespace_large", {"least": files.FEWEST})]

    def _save(self, namespace: str, every: bool) -> bool:
        """Save the model of a namespace where that is due; return whether it is saved now."""
        held = self._held(namespace)

        def due(connection: sqlite3.Connection) -> State | None:
            state = _state(connection, namespace)
            if state is None or not files.FEWEST <= state.memories <= MOST:
                return None
            if saved.is_fresh(connection, namespace, state):
                return None
            return state

        def work(connection: sqlite3.Connection, model: Model) -> bool:
            state = due(connection)
            if state is None or not (state == model.state or state.follows(model.state)):
                return False
            now = _read(connection, namespace, model)
            return now is not None and saved.save(connection, now, self.saved_budget, makes_room=not every)

        if self._file._reading(due) is None:
            return False
        model = self._file._reading(lambda c: _read(c, namespace, held, maps=True)) if every else held
        return model is not None and self._file._writing_at_once(lambda c: work(c, model))

    def _keep(self, namespace: str, model: Model | None) -> None:
        with self._lock:
            if model is None:
                self._models.pop(namespace, None)
                return
            self._models.put(namespace, model)
            self._models.make_room(self.budget)


def _state(connection: sqlite3.Connection, namespace: str) -> State | None:
    """Return the state of a namespace that holds memories; ``created`` is its number, which is given once."""
    row = connection.execute(_SQL["resident_state"], {"namespace": namespace}).fetchone()
    if row is None:
        return None
    number, revision, changes, memories, length, embedder = row
    return State(revision, changes, 0, memories, length, False, float(number), 0.0, embedder, "")


def _read(connection: sqlite3.Connection, namespace: str, before: Model | None, *, maps: bool = False) -> Model | None:
    """Return the namespace as this transaction sees it, from the changes since ``before`` where these are known.

    Without ``before``, and with ``maps``, a saved model takes its place.
    """
    state = _state(connection, namespace)
    if state is None or state.memories > MOST:
        return None
    if before is not None and before.state == state:
        return before
    corrections = corrections_of(connection.execute(_SQL["corrections"], {"namespace": namespace}).fetchall())
    if before is None and maps and state.memories >= files.FEWEST:
        found = saved.load(connection, namespace, state)
        before = None if found is None else Model(namespace, *found, corrections=corrections)
        if before is not None and before.state == state:
            return before
    if before is not None and state.follows(before.state):
        where = {"namespace": namespace, "since": before.state.changes}
        changes = connection.execute(_SQL["resident_changes"], where).fetchall()
        if all(id for id, _ in changes):  # "" stands for a dropped namespace, or for changes that were swept
            gone = {id for id, kind in changes if kind != "written"}
            return before.after(state, _rows(connection, where, since=True), gone, corrections)
    rows = _rows(connection, {"number": int(state.created)})
    return Model(namespace, state, Block(rows, coarse=True).in_own_pages(), corrections=corrections)


def _check(namespace: str, state: State | None) -> None:
    """Raise LegFailed where a namespace has too many memories to be held in memory."""
    if state is not None and state.memories > MOST:
        raise LegFailed(
            f"SQLite answers this up to {MOST:,} memories in a namespace, and {namespace!r} has {state.memories:,}; "
            "move to PostgreSQL with semmem export and semmem import jsonl."
        )


def _vectors_alone(connection: sqlite3.Connection, namespace: str) -> Model | None:
    state = _state(connection, namespace)
    _check(namespace, state)
    if state is None:
        return None
    vectors = vectors_of(connection.execute(_SQL["resident_vectors"], {"number": int(state.created)}).fetchall())
    return Model(namespace, state, Block(replace(Rows.none(), vector_row_ids=vectors[0], vectors=vectors[1])))


def _rows(connection: sqlite3.Connection, where: Mapping[str, Any], *, since: bool = False) -> Rows:
    """Return the memories of a namespace, or those that changed since."""
    end = "_since" if since else ""
    stored = connection.execute(_SQL[f"resident_rows{end}"], where).fetchall()
    vectors = vectors_of(connection.execute(_SQL[f"resident_vectors{end}"], where).fetchall())
    turns = Turns.of([_turn(row) for row in stored])
    entries = [row[14] if row[16] is None else entries_of_tokens(row[16]).tobytes() for row in stored]
    runs = [row[15] or b"" for row in stored]
    return Rows(
        turns,
        np.array([row[13] for row in stored], dtype=np.int64),
        np.array([len(raw) for raw in entries], dtype=np.int64) // FORWARD.itemsize,
        np.frombuffer(b"".join(entries), dtype=FORWARD),
        unpack_candidates(
            turns.row_ids, np.array([len(raw) for raw in runs], dtype=np.int64) // CANDIDATE.itemsize, b"".join(runs)
        ),
        *vectors,
    )


def _turn(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row of the statement resident_rows in the columns of stores/resident/turns."""
    namespace, row_id, session, author, asks, at, id, part, importance, content, updated_at, title, position, *_ = row
    times = at / 1e6, updated_at / 1e6
    return (
        namespace, row_id, session, author, bool(asks), month_of(at), id, part, importance, content, *times, title,
        position, at,
    )  # fmt: skip


def month_of(at: int) -> int:
    """Return 12 · year + month - 1 of a time in microseconds."""
    return _month(at // _DAY)


@lru_cache(maxsize=4096)
def _month(day: int) -> int:
    at = at_microsecond(day * _DAY)
    return 12 * at.year + at.month - 1


def entries_of_tokens(tokens: str) -> NDArray[Any]:
    """Return the entries of the words of a memory from its tokens in FTS5, keys ascending: terms alone, no concepts."""
    words = [word.partition("n")[2] for word in tokens.split()]
    entries = np.zeros(len(words), dtype=FORWARD)
    entries["key"] = np.array([int(word, 16) for word in words], dtype=np.uint64).astype(np.int64)
    entries["count"] = 1
    return merged([entries])


def vectors_of(rows: Sequence[tuple[int, bytes]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the row ids and the vectors of rows (row id, vector), one vector a row."""
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
    packed = np.frombuffer(b"".join(raw for _, raw in rows), dtype="<f4")
    return np.array([row_id for row_id, _ in rows], dtype=np.int64), packed.reshape(len(rows), -1).astype(np.float32)


def corrections_of(rows: Sequence[Any]) -> Corrections:
    """Return the corrections of a namespace from the rows of the statement ``corrections``."""
    return Corrections(
        {key: (into, into_name) for key, _, into, into_name in rows if into is not None},
        frozenset(key for key, _, into, _ in rows if into is None),
        {key: name for key, name, _, _ in rows},
    )
