"""The graph in PostgreSQL: re-extraction, corrections, relationships, and its hash.

Functions take an open connection inside a transaction, and lock rows in the same order as those of write.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from semmem.model.exchange import Corrections, Extraction, Forwards, Kind, RowIds, placed
from semmem.model.store.graph import PLACE
from semmem.stores.packed_postings import (
    FORWARD,
    candidates,
    forward_entries,
    invert,
    mentions,
    unpack_forwards,
)
from semmem.stores.postgres.connection import Pooled
from semmem.stores.postgres.encoding import corrections_of, labels_of
from semmem.stores.postgres.forget import clear_postings
from semmem.stores.postgres.postings import (
    copy_pending,
    copy_segments,
    write_relationships,
)
from semmem.stores.postgres.saved import erase
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vectors import fact
from semmem.stores.sql_files import statements
from semmem.text.tokens import as_written, check_language

__all__ = ["PostgresGraph", "reindex"]

_SQL = statements("postgres")
_NAME = int(Kind.NAME)


def _array(keys: Collection[int]) -> NDArray[np.int64]:
    return np.fromiter(sorted(keys), np.int64, len(keys))


def reindex(
    connection: Connection, namespace: str, extractions: Sequence[tuple[int, Extraction]], language: str | None = None
) -> int:
    """Store new extractions of memories; return how many memories changed.

    A pending memory stays pending. Of a flushed memory only the changed keys leave their segments, and enter a segment
    of this transaction. Memories forgotten meanwhile are left out.
    """
    connection.execute(_SQL["by_index"])
    which: dict[str, Any] = {"namespace": namespace, "ords": _array([row_id for row_id, _ in extractions])}
    locked_row_ids = {row_id for (row_id,) in connection.execute(_SQL["reindex_lock"], which, binary=True)}
    old = {
        row_id: (length, bytes(raw), bytes(runs))
        for row_id, length, raw, runs in connection.execute(_SQL["reindex_forwards"], which, binary=True)
        if row_id in locked_row_ids
    }
    ties: dict[int, set[tuple[int, str, int]]] = {}
    for row_id, *tie in connection.execute(_SQL["reindex_relationships"], which, binary=True):
        ties.setdefault(row_id, set()).add((tie[0], tie[1], tie[2]))
    raw = {row_id: forward_entries([e]).tobytes() for row_id, e in extractions if row_id in old}
    runs = {row_id: candidates(e) for row_id, e in extractions if row_id in old}
    new = {
        row_id: e
        for row_id, e in extractions
        if row_id in old
        and ((e.length, raw[row_id], runs[row_id]) != old[row_id] or set(e.relationships) != ties.get(row_id, set()))
    }
    if not new:
        return 0
    which["ords"] = _array(new)
    pending: dict[int, int] = dict(connection.execute(_SQL["reindex_pending"], which, binary=True))
    if pending:
        copy_pending(
            connection, [(namespace, row_id, new[row_id].names, pending[row_id] > 0) for row_id in sorted(pending)]
        )
    longer = sum(e.length - old[row_id][0] for row_id, e in new.items())
    connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": longer})  # before any posting
    erase(connection, namespace)
    if language is not None:
        check_language(namespace, only(connection.execute(_SQL["language_of"], which))[0], language)
    _move(
        connection,
        namespace,
        {row_id: (old[row_id][:2], raw[row_id], e) for row_id, e in sorted(new.items()) if row_id not in pending},
    )
    forwards = {
        "namespace": namespace,
        "ords": which["ords"],
        "lengths": [new[row_id].length for row_id in which["ords"].tolist()],
        "entries": [raw[row_id] for row_id in which["ords"].tolist()],
        "candidates": [runs[row_id] for row_id in which["ords"].tolist()],
    }
    connection.execute(_SQL["reindex_forward"], forwards)
    connection.execute(_SQL["relationship_forget"], which)
    write_relationships(connection, [(namespace, row_id, new[row_id]) for row_id in sorted(new)])
    return len(new)


def _move(
    connection: Connection, namespace: str, changed: Mapping[int, tuple[tuple[int, bytes], bytes, Extraction]]
) -> None:
    """Remove changed entries of flushed memories from their segments, and write the new entries as one segment."""
    removals: dict[int, NDArray[np.int64]] = {}
    additions, names = [], []
    for row_id, ((length, before), after, extraction) in changed.items():
        old_entries, new_entries = np.frombuffer(before, dtype=FORWARD), np.frombuffer(after, dtype=FORWARD)
        if length == extraction.length:  # each posting holds the length
            old_entries, new_entries = (
                old_entries[~_same(old_entries, new_entries)],
                new_entries[~_same(new_entries, old_entries)],
            )
        if len(old_entries):
            removals[row_id] = old_entries["key"]
        if len(new_entries):
            additions.append((row_id, extraction.length, new_entries))
            name_of = dict(zip(extraction.keys, extraction.names, strict=True))
            names += [name_of[key] for key in new_entries["key"].tolist()]
    clear_postings(connection, namespace, removals)
    if additions:
        row_ids, lengths = (np.array([row[column] for row in additions], dtype=np.int64) for column in (0, 1))
        sizes = np.array([len(row[2]) for row in additions], dtype=np.int64)
        segments = invert(row_ids, lengths, sizes, np.concatenate([row[2] for row in additions]), names)
        copy_segments(connection, {namespace: segments})


def _same(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of ``one`` are equal to an entry of ``other``; the keys of both are ascending."""
    if not len(other):
        return np.zeros(len(one), dtype=bool)
    places = np.minimum(np.searchsorted(other["key"], one["key"]), len(other) - 1)
    same: NDArray[np.bool_] = other[places] == one
    return same


class PostgresGraph:
    """The graph of a store; what stands in it of a memory depends on that memory alone."""

    def __init__(self, pool: Pooled) -> None:
        self._pool = pool

    def corrections(self, namespaces: Collection[str]) -> Mapping[str, Corrections]:
        """Return the corrections of each namespace."""
        names = sorted(namespaces)
        rows = self._pool.together(*(("corrections", {"namespace": n}) for n in names))
        return {n: corrections_of(own) for n, own in zip(names, rows, strict=True)}

    def record_correction(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Record that the name ``one`` means ``into``, or with None that it means only itself.

        Readers read the names of stored memories so from now on. ``into`` may itself be corrected to another name.
        Returns False, and changes nothing, where both are one name already; this is checked here, where no other
        correction can interfere.
        """

        def work(connection: Connection) -> bool:
            connection.execute(_SQL["namespace_own"], {"namespace": namespace})
            rows = connection.execute(_SQL["corrections"], {"namespace": namespace}, binary=True).fetchall()
            merged = corrections_of(rows).into
            parameters: dict[str, Any] = {"namespace": namespace, "key": one[0], "name": one[1]}
            target = into if into is None else merged.get(into[0], into)
            if target is None:
                connection.execute(_SQL["correct_not"], parameters)
                parameters |= {"into_key": None, "into_name": None}
            elif merged.get(one[0], one)[0] == target[0]:
                return False
            else:
                parameters |= {"into_key": target[0], "into_name": target[1]}
            connection.execute(_SQL["correct"], parameters)
            connection.execute(_SQL["namespace_count"], {"namespace": namespace, "memories": 0, "length": 0})
            return True

        return self._pool.transaction_once(work)

    def concept_counts(self, namespace: str, like: str | None, limit: int) -> list[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""

        def read(connection: Connection) -> list[tuple[int, str, int, int]]:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            which = {"namespace": namespace}
            keys: list[int] = []
            names: list[str] = []
            mentioned: list[int] = []
            subjects: list[int] = []
            for raw, labels in connection.execute(_SQL["concepts_pending"], which, binary=True):
                entries = np.frombuffer(raw, dtype=FORWARD)
                for index in np.flatnonzero(entries["kind"] == _NAME).tolist():
                    keys.append(int(entries["key"][index]))
                    names.append(labels[index])
                    mentioned.append(int(mentions(entries[index : index + 1])[0]))
                    subjects.append(int(entries["subject"][index] > 0))
            parameters = {
                **which,
                "kind": _NAME,
                "keys": np.array(keys, dtype=np.int64),
                "names": names,
                "n": mentioned,
                "subjects": subjects,
                "like": None if like is None else f"%{_literal(like)}%",
                "limit": limit,
            }
            rows: list[tuple[int, str, int, int]] = connection.execute(
                _SQL["concepts"], parameters, binary=True
            ).fetchall()
            return rows

        return self._pool.transaction(read)

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> list[tuple[int, int]]:
        """Return the pairs (one of ``keys``, key of a related concept), each once."""
        more = {"keys": _array(keys), "limit": limit}
        rows = self._pool.together(*(("relationships_of", {"namespace": n, **more}) for n in namespaces))
        return sorted({pair for pairs in rows for pair in pairs})[:limit]

    def forwards(self, namespaces: Sequence[str], row_ids: RowIds) -> Forwards:
        """Return the forward entries (concepts and terms) of each memory."""
        groups = [unpack_forwards(b"", b"", b"")]
        for place, ((heads, raw, runs),) in self._pool.among("forwards", namespaces, row_ids):
            one = unpack_forwards(heads or b"", raw or b"", runs or b"")
            one[3]["ord"] = placed(one[3]["ord"], place)
            groups.append((placed(one[0], place), *one[1:]))
        if len(groups) == 2:
            return Forwards(*groups[1])
        return Forwards(*(np.concatenate(column) for column in zip(*groups, strict=True)))

    def forwards_and_neighbours(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return the forward entries of each memory, its neighbours if asked for, and the keys of pending memories."""
        which = {"namespace": namespace, "ords": np.fromiter(row_ids, np.int64, len(row_ids))}
        queries: dict[str, Any] = {"forwards": which, "pending_entries": {"namespace": namespace}}
        if neighbours:
            queries["memory_neighbours"] = which
        rows = dict(zip(queries, self._pool.together(*queries.items()), strict=True))
        entries = np.frombuffer(b"".join(raw for (raw,) in rows["pending_entries"]), dtype=FORWARD)
        forwards = Forwards(*unpack_forwards(*(raw or b"" for raw in rows["forwards"][0])))
        return forwards, rows.get("memory_neighbours", ()), np.unique(entries["key"])

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return the spelling of each key's name; where namespaces differ, that of the first."""
        parameters = {"keys": list(keys)}
        spellings: dict[int, str] = {}
        for rows in self._pool.together(*(("names", {"namespace": n, **parameters}) for n in namespaces)):
            spellings = {**dict(rows), **spellings}
        if missing := set(keys) - set(spellings):
            for rows in self._pool.together(*(("names_pending", {"namespace": n}) for n in namespaces)):
                spellings = {**labels_of(rows, missing), **spellings}
        return spellings

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return (row id, key, weight in hundredths, spelling) for the names that memories are about.

        The spelling is that of the memory's own title, where it has the name.
        """
        which = {"namespace": namespace, "ords": np.fromiter(row_ids, np.int64, len(row_ids)), "kind": int(Kind.NAME)}
        rows, pending = self._pool.together(("subject_names", which), ("names_pending", {"namespace": namespace}))
        missing = {key for _, key, _, _, name in rows if name is None}
        labels = labels_of(pending, missing) if missing else {}
        return [
            (row_id, key, weight, as_written(title or "", labels.get(key, "") if name is None else name))
            for row_id, key, weight, title, name in rows
        ]

    def neighbours(self, namespaces: Sequence[str], row_ids: RowIds) -> Sequence[tuple[int, int, bool]]:
        """Return (row id, its previous or next memory in the session, whether both have the same author)."""
        groups = self._pool.among("memory_neighbours", namespaces, row_ids)
        return [
            (placed(row_id, place), placed(other, place), own) for place, rows in groups for row_id, other, own in rows
        ]

    def by_author(self, namespaces: Sequence[str], row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``, ascending."""
        groups = self._pool.among("memory_written_by", namespaces, row_ids, author=author)
        return np.array([placed(row_id, place) for place, rows in groups for (row_id,) in rows], dtype=np.int64)

    def titles(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        groups = self._pool.among("memory_titles", namespaces, row_ids)
        return {placed(row_id, place): title for place, rows in groups for row_id, title in rows}

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        return self._pool.rebuilding()

    def reextraction(self) -> Mapping[str, Any] | None:
        """Return how far an unfinished re-extraction is, and by which extractor; None where none is unfinished."""
        return self._pool.run(lambda c: fact(c, PLACE))

    def note_reextraction(self, place: Mapping[str, Any] | None) -> None:
        """Record how far a re-extraction is; None records that it is done."""
        parameters = {"key": PLACE, "value": Jsonb(dict(place or {}))}
        self._pool.execute("meta_drop" if place is None else "meta_set", parameters)

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of the concepts of the indexed memories, independent of the order of writing."""
        return str(self._pool.row("graph_hash", {"namespace": namespace})[0])


def _literal(text: str) -> str:
    """Return ``text`` escaped for LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
