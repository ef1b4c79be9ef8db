"""The graph in PostgreSQL: re-extraction, waiting names, corrections, relationships, and its hash.

Functions take an open connection inside a transaction, and lock rows in the same order as those of write.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from semmem.model.exchange import Corrections, Extraction, Forwards, Kind, Ords, placed
from semmem.model.store.graph import PLACE
from semmem.stores.packed_postings import FORWARD, forward_entries, invert, mentions, unpack_forwards
from semmem.stores.postgres.connection import Pooled, by_namespace
from semmem.stores.postgres.encoding import corrections_of, labels_of, subjects_of
from semmem.stores.postgres.forget import clear_postings
from semmem.stores.postgres.postings import (
    copy_pending,
    copy_segments,
    note_aliases,
    write_relationships,
)
from semmem.stores.postgres.vectors import fact
from semmem.stores.sql_files import statements
from semmem.text.tokens import check_language

__all__ = ["PostgresGraph", "changes_of", "changes_queries", "reindex"]

_SQL = statements("postgres")
_NAME = int(Kind.NAME)


def _array(keys: Collection[int]) -> NDArray[np.int64]:
    return np.fromiter(sorted(keys), np.int64, len(keys))


def reindex(
    connection: Any, namespace: str, extractions: Sequence[tuple[int, Extraction]], language: str | None = None
) -> int:
    """Store new extractions of memories; return how many memories changed.

    A pending memory stays pending. Of a folded memory only the changed keys leave their segments, and enter a segment
    of this transaction. Memories forgotten meanwhile are left out.
    """
    which: dict[str, Any] = {"namespace": namespace, "ords": _array([ord for ord, _ in extractions])}
    locked_ords = {ord for (ord,) in connection.execute(_SQL["reindex_lock"], which, binary=True)}
    old = {
        ord: (length, bytes(raw))
        for ord, length, raw in connection.execute(_SQL["reindex_forwards"], which, binary=True)
        if ord in locked_ords
    }
    ties: dict[int, set[tuple[int, str, int]]] = {}
    for ord, *tie in connection.execute(_SQL["reindex_relationships"], which, binary=True):
        ties.setdefault(ord, set()).add((tie[0], tie[1], tie[2]))
    raw = {ord: forward_entries([e]).tobytes() for ord, e in extractions if ord in old}
    new = {
        ord: e
        for ord, e in extractions
        if ord in old and ((e.length, raw[ord]) != old[ord] or set(e.relationships) != ties.get(ord, set()))
    }
    if not new:
        return 0
    which["ords"] = _array(new)
    pending = dict(connection.execute(_SQL["reindex_pending"], which, binary=True))
    if pending:
        copy_pending(connection, namespace, [(ord, new[ord].names, pending[ord] > 0) for ord in sorted(pending)])
    longer = sum(e.length - old[ord][0] for ord, e in new.items())
    connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": longer})  # before any posting
    if language is not None:
        check_language(namespace, connection.execute(_SQL["language_of"], which).fetchone()[0], language)
    _move(connection, namespace, {ord: (old[ord], raw[ord], e) for ord, e in sorted(new.items()) if ord not in pending})
    forwards = {
        "namespace": namespace,
        "ords": which["ords"],
        "lengths": [new[ord].length for ord in which["ords"].tolist()],
        "entries": [raw[ord] for ord in which["ords"].tolist()],
    }
    connection.execute(_SQL["reindex_forward"], forwards)
    connection.execute(_SQL["relationship_forget"], which)
    write_relationships(connection, namespace, sorted(new.items()))
    return len(new)


def _move(connection: Any, namespace: str, changed: Mapping[int, tuple[tuple[int, bytes], bytes, Extraction]]) -> None:
    """Remove changed entries of folded memories from their segments, and write the new entries as one segment."""
    removals: dict[int, NDArray[np.int64]] = {}
    additions, names = [], []
    for ord, ((length, before), after, extraction) in changed.items():
        old_entries, new_entries = np.frombuffer(before, dtype=FORWARD), np.frombuffer(after, dtype=FORWARD)
        if length == extraction.length:  # each posting holds the length
            old_entries, new_entries = (
                old_entries[~_same(old_entries, new_entries)],
                new_entries[~_same(new_entries, old_entries)],
            )
        if len(old_entries):
            removals[ord] = old_entries["key"]
        if len(new_entries):
            additions.append((ord, extraction.length, new_entries))
            name_of = dict(zip(extraction.keys, extraction.names, strict=True))
            names += [name_of[key] for key in new_entries["key"].tolist()]
    clear_postings(connection, namespace, removals)
    if additions:
        ords, lengths = (np.array([row[at] for row in additions], dtype=np.int64) for at in (0, 1))
        sizes = np.array([len(row[2]) for row in additions], dtype=np.int64)
        segments = invert(ords, lengths, sizes, np.concatenate([row[2] for row in additions]), names)
        copy_segments(connection, namespace, segments)


def _same(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of ``one`` are equal to an entry of ``other``; the keys of both are ascending."""
    if not len(other):
        return np.zeros(len(one), dtype=bool)
    at = np.minimum(np.searchsorted(other["key"], one["key"]), len(other) - 1)
    same: NDArray[np.bool_] = other[at] == one
    return same


class PostgresGraph:
    """The graph of a store, independent of the order of writing; see semmem.write.relink."""

    def __init__(self, pool: Pooled) -> None:
        self._pool = pool

    def snapshot(self, namespaces: Collection[str]) -> tuple[Mapping[str, int], Mapping[str, Corrections]]:
        """Return each namespace's last change number and its corrections."""
        names = sorted(namespaces)
        rows = self._pool.together(*(("moment", {"namespace": n}) for n in names))
        moments = dict(zip(names, rows, strict=True))
        return {n: rows[0][0] for n, rows in moments.items()}, {n: corrections_of(rows) for n, rows in moments.items()}

    def changed_subjects(self, namespace: str, since: int) -> set[int]:
        """Return the keys of subjects that came, went or were corrected after a change number."""
        return {key for (key,) in self._pool.rows("alias_changes", {"namespace": namespace, "since": since})}

    def snapshot_with_subjects(
        self, keys: Mapping[str, Collection[int]]
    ) -> tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, set[int]]]:
        """Return the result of ``snapshot``, and for each namespace those of the keys that are subjects of a memory.

        The keys are those after corrections.
        """
        return _snapshot_of(keys, self._pool.together(*_snapshot_queries(keys)))

    def payloads_and_subjects(
        self, names: Collection[tuple[str, str]], keys: Mapping[str, Collection[int]]
    ) -> tuple[
        Mapping[tuple[str, str], bytes] | None,
        tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, set[int]]],
    ]:
        """Return ``Store.payload_hashes`` and ``snapshot_with_subjects``, in one round trip.

        The hashes are None where one of the memories is being dropped or has expired; its removal has to be finished
        first.
        """
        each = by_namespace(names)
        queries = [("memory_payloads", {"namespace": n, "ids": ids}) for n, ids in each.items()]
        rows = self._pool.together(*queries, *_snapshot_queries(keys))
        payload_rows = [(n, *row) for n, own_rows in zip(each, rows[: len(each)], strict=True) for row in own_rows]
        payloads = {(n, id): bytes(payload) for n, id, payload, _ in payload_rows}
        return None if any(goes for *_, goes in payload_rows) else payloads, _snapshot_of(keys, rows[len(each) :])

    def changed_and_known_subjects(
        self, namespace: str, since: int, keys: Collection[int]
    ) -> tuple[set[int], set[int]]:
        """Return the result of ``changed_subjects``, and those of ``keys`` that are a subject of some memory."""
        rows = self._pool.together(*changes_queries(namespace, since, keys))
        return changes_of(rows, keys)

    def note_changed_subjects(self, namespace: str, keys: Collection[int]) -> None:
        """Record that older memories that mention ``keys`` are to be extracted again."""
        if keys:
            self._pool.transaction(lambda c: note_aliases(c, namespace, keys))

    def unpropagated(self, namespace: str, *, all: bool) -> list[tuple[int, list[int]]]:
        """Return (change number, keys) of the waiting names; without ``all`` only those not yet tried."""
        return self._pool.rows("alias_waiting", {"namespace": namespace, "all": all})

    def mark_propagated(self, namespace: str, numbers: Sequence[int], keys: Collection[int]) -> None:
        """Mark waiting names as propagated, except for ``keys``, which wait for maintain."""
        parameters = {"namespace": namespace, "numbers": list(numbers), "waiting": _array(keys)}

        def settle(connection: Any) -> None:
            connection.execute("SET LOCAL synchronous_commit TO off")
            connection.execute(_SQL["alias_looked"], parameters)

        self._pool.transaction(settle)

    def unpropagated_namespaces(self) -> list[str]:
        """Return the namespaces where names wait; delete the records of names propagated long ago."""
        self._pool.run(lambda c: c.execute(_SQL["alias_prune"]))
        return [namespace for (namespace,) in self._pool.rows("alias_namespaces", {})]

    def ords_with_words(self, namespace: str, words: Collection[str]) -> NDArray[np.int64]:
        """Return the memories whose text may hold one of ``words``; a superset of those that do."""
        patterns = [f"%{_literal(word)}%" for word in sorted(words)]
        return _array([o for (o,) in self._pool.rows("spelled", {"namespace": namespace, "patterns": patterns})])

    def record_correction(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Record that the name ``one`` means ``into``, or with None that it means only itself.

        The memories concerned are recorded for re-extraction. ``into`` may itself be corrected to another name. Returns
        False, and changes nothing, where both are one name already; this is checked here, where no other correction can
        interfere.
        """

        def work(connection: Any) -> bool:
            connection.execute(_SQL["namespace_own"], {"namespace": namespace})
            rows = connection.execute(_SQL["moment"], {"namespace": namespace}, binary=True).fetchall()
            merged = {row[1]: (row[3], row[4]) for row in rows if row[3] is not None}
            parameters: dict[str, Any] = {"namespace": namespace, "key": one[0], "name": one[1]}
            keys = {one[0], *(key for key, (other, _) in merged.items() if other == one[0])}
            keys |= {merged[one[0]][0]} if one[0] in merged else set()
            target = into if into is None else merged.get(into[0], into)
            if target is None:
                connection.execute(_SQL["correct_not"], parameters)
                parameters |= {"into_key": None, "into_name": None}
            elif merged.get(one[0], one)[0] == target[0]:
                return False
            else:
                keys.add(target[0])
                parameters |= {"into_key": target[0], "into_name": target[1]}
            connection.execute(_SQL["correct"], parameters)
            note_aliases(connection, namespace, keys)
            return True

        return self._pool.transaction(work)

    def concept_counts(self, namespace: str, like: str | None, limit: int) -> list[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""

        def read(connection: Any) -> list[tuple[int, str, int, int]]:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            which = {"namespace": namespace}
            keys: list[int] = []
            names: list[str] = []
            mentioned: list[int] = []
            subjects: list[int] = []
            for raw, labels in connection.execute(_SQL["concepts_pending"], which, binary=True):
                entries = np.frombuffer(raw, dtype=FORWARD)
                for at in np.flatnonzero(entries["kind"] == _NAME).tolist():
                    keys.append(int(entries["key"][at]))
                    names.append(labels[at])
                    mentioned.append(int(mentions(entries[at : at + 1])[0]))
                    subjects.append(int(entries["subject"][at] > 0))
            merged = connection.execute(_SQL["moment"], which).fetchall()
            corrected = [
                row[3] for row in merged if like is not None and row[3] is not None and like.lower() in row[2].lower()
            ]
            parameters = {
                **which,
                "kind": _NAME,
                "keys": np.array(keys, dtype=np.int64),
                "names": names,
                "n": mentioned,
                "subjects": subjects,
                "like": None if like is None else f"%{_literal(like)}%",
                "corrected": np.array(corrected, dtype=np.int64),
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

    def ords_with_relationships(self, namespace: str, keys: Collection[int]) -> NDArray[np.int64]:
        """Return the memories from which a relationship of one of ``keys`` was extracted."""
        return _array(
            [o for (o,) in self._pool.rows("relationship_ords", {"namespace": namespace, "keys": _array(keys)})]
        )

    def forwards(self, namespaces: Sequence[str], ords: Ords) -> Forwards:
        """Return the forward entries (concepts and terms) of each memory."""
        groups = [unpack_forwards(b"", b"")]
        for at, ((heads, raw),) in self._pool.among("forwards", namespaces, ords):
            own, sizes, entries = unpack_forwards(heads or b"", raw or b"")
            groups.append((placed(own, at), sizes, entries))
        if len(groups) == 2:
            return Forwards(*groups[1])
        owners, counts, all_entries = (np.concatenate(column) for column in zip(*groups, strict=True))
        return Forwards(owners, counts, all_entries)

    def forwards_and_neighbours(
        self, namespace: str, ords: Ords, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return the forward entries of each memory, its neighbours if asked for, and the keys of pending memories."""
        which = {"namespace": namespace, "ords": np.fromiter(ords, np.int64, len(ords))}
        queries: dict[str, Any] = {"forwards": which, "pending_entries": {"namespace": namespace}}
        if neighbours:
            queries["memory_neighbours"] = which
        rows = dict(zip(queries, self._pool.together(*queries.items()), strict=True))
        heads, raw = rows["forwards"][0]
        entries = np.frombuffer(b"".join(raw for (raw,) in rows["pending_entries"]), dtype=FORWARD)
        forwards = Forwards(*unpack_forwards(heads or b"", raw or b""))
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

    def subject_names(self, namespace: str, ords: Ords) -> Sequence[tuple[int, int, int, str]]:
        """Return (ord, key, weight in hundredths, spelling) for the names that memories are about."""
        which = {"namespace": namespace, "ords": np.fromiter(ords, np.int64, len(ords)), "kind": int(Kind.NAME)}
        rows, pending = self._pool.together(("subject_names", which), ("names_pending", {"namespace": namespace}))
        missing = {key for _, key, _, name in rows if name is None}
        labels = labels_of(pending, missing) if missing else {}
        return [(ord, key, weight, labels.get(key, "") if name is None else name) for ord, key, weight, name in rows]

    def neighbours(self, namespaces: Sequence[str], ords: Ords) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        groups = self._pool.among("memory_neighbours", namespaces, ords)
        return [(placed(ord, at), placed(other, at), own) for at, rows in groups for ord, other, own in rows]

    def by_author(self, namespaces: Sequence[str], ords: Ords, author: str) -> NDArray[np.int64]:
        """Return those of ``ords`` whose author is ``author``, ascending."""
        groups = self._pool.among("memory_written_by", namespaces, ords, author=author)
        return np.array([placed(ord, at) for at, rows in groups for (ord,) in rows], dtype=np.int64)

    def titles(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        groups = self._pool.among("memory_titles", namespaces, ords)
        return {placed(ord, at): title for at, rows in groups for ord, title in rows}

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        return self._pool.rebuilding()

    def reextraction(self) -> Mapping[str, Any] | None:
        """Return how far an unfinished re-extraction is, and by which extractor; None where none is unfinished."""
        return self._pool.run(lambda c: fact(c, PLACE))

    def note_reextraction(self, place: Mapping[str, Any] | None) -> None:
        """Record how far a re-extraction is; None records that it is done."""
        parameters = {"key": PLACE, "value": Jsonb(dict(place or {}))}
        self._pool.run(lambda c: c.execute(_SQL["meta_drop" if place is None else "meta_set"], parameters))

    def database_id(self) -> str:
        """Return an id that tells this database from every other, where a change number may mean another change."""
        return str(self._pool.rows("database_id", {})[0][0])

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of the concepts of the indexed memories, independent of the order of writing."""
        return str(self._pool.rows("graph_hash", {"namespace": namespace})[0][0])


def _snapshot_queries(keys: Mapping[str, Collection[int]]) -> list[tuple[str, dict[str, Any]]]:
    queries: list[tuple[str, dict[str, Any]]] = [("moment", {"namespace": namespace}) for namespace in sorted(keys)]
    some = [namespace for namespace in sorted(keys) if keys[namespace]]
    return queries + [("known_subjects_corrected", {"namespace": n, "keys": _array(keys[n])}) for n in some]


def _snapshot_of(
    keys: Mapping[str, Collection[int]], rows: Sequence[list[Any]]
) -> tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, set[int]]]:
    spaces = sorted(keys)
    first = dict(zip(spaces, rows[: len(spaces)], strict=True))
    corrections = {namespace: corrections_of(moment_rows) for namespace, moment_rows in first.items()}
    subjects: dict[str, set[int]] = {namespace: set() for namespace in keys}
    for namespace, moment_rows in zip((n for n in spaces if keys[n]), rows[len(spaces) :], strict=True):
        into = corrections[namespace]
        subjects[namespace] = subjects_of(moment_rows) & {into.key(at) for at in keys[namespace]}
    return {namespace: moment_rows[0][0] for namespace, moment_rows in first.items()}, corrections, subjects


def changes_queries(namespace: str, since: int, keys: Collection[int]) -> list[tuple[str, dict[str, Any]]]:
    """Return the statements, with parameters, of ``changed_and_known_subjects``."""
    queries: list[tuple[str, dict[str, Any]]] = [("alias_changes", {"namespace": namespace, "since": since})]
    if keys:
        queries.append(("known_subjects", {"namespace": namespace, "keys": _array(keys)}))
    return queries


def changes_of(rows: Sequence[list[Any]], keys: Collection[int]) -> tuple[set[int], set[int]]:
    """Return the result of ``changed_and_known_subjects`` from the rows of ``changes_queries``."""
    changed, *rest = rows
    return {key for (key,) in changed}, subjects_of(rest[0]) & set(keys) if rest else set()


def _literal(text: str) -> str:
    """Return ``text`` escaped for LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
