"""The graph in SQLite: what the walk reads, from memory; names, corrections and the hash, from the file."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import Corrections, Extraction, Forwards, Kind, RowIds, apart, placed
from semmem.model.store.graph import PLACE
from semmem.stores.packed_postings import FORWARD, candidates, forward_entries, mentions, unpack_forwards
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.meta import fact
from semmem.stores.sqlite.resident import corrections_of

if TYPE_CHECKING:
    from semmem.stores.sqlite.store import SqliteStore

__all__ = ["SqliteGraph", "forget_extraction", "put_extraction"]

_SQL = statements("sqlite")
_NAME = int(Kind.NAME)
_SPELLINGS = 16
"""The memories of a name whose spellings are read, of which the most frequent is shown."""


def put_extraction(connection: sqlite3.Connection, row: int, extraction: Extraction, *, new: bool) -> bool:
    """Store the concepts of a memory, ``new`` or stored; return whether they are others than those stored."""
    values = {
        "row": row,
        "entries": forward_entries([extraction]).tobytes(),
        "candidates": candidates(extraction),
        "names": json.dumps(list(extraction.names), ensure_ascii=False),
    }
    ties = sorted(set(extraction.relationships))
    before = None if new else connection.execute(_SQL["forward_of"], {"row": row}).fetchone()
    if before is not None:
        tied = [(one, type, other) for one, type, other in connection.execute(_SQL["relationship_of"], {"row": row})]
        if before == (values["entries"], values["candidates"], values["names"]) and sorted(tied) == ties:
            return False
        connection.execute(_SQL["relationship_forget"], {"row": row})
    connection.execute(_SQL["forward_put"], values)
    each = [{"row": row, "subject": one, "predicate": type, "object": other} for one, type, other in ties]
    connection.executemany(_SQL["relationship_put"], each)
    return True


def forget_extraction(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Remove the concepts and the vectors of removed memories."""
    each = [{"row": row} for row in rows]
    for statement in ("forward_forget", "relationship_forget", "embedding_forget", "staging_forget"):
        connection.executemany(_SQL[statement], each)


class SqliteGraph:
    """The graph of one file; what stands in it of a memory depends on that memory alone.

    What the walk reads raises LegFailed where the namespace is too large to be held in memory.
    """

    def __init__(self, file: SqliteStore) -> None:
        self._file = file

    def forwards(self, namespaces: Sequence[str], row_ids: RowIds) -> Forwards:
        """Return the forward entries (concepts and terms) of each memory."""
        groups = [unpack_forwards(b"", b"", b"")]
        for place, namespace, own in apart(namespaces, row_ids):
            if (model := self._file.models.needed(namespace)) is not None:
                one = model.forwards(own)
                runs = np.array(one.candidates)
                runs["ord"] = placed(runs["ord"], place)
                groups.append((placed(one.row_ids, place), one.sizes, one.entries, runs))
        if len(groups) == 2:
            return Forwards(*groups[1])
        return Forwards(*(np.concatenate(column) for column in zip(*groups, strict=True)))

    def forwards_and_neighbours(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return the forward entries of each memory, its neighbours if asked for, and no keys: no memory is pending."""
        none = np.zeros(0, dtype=np.int64)
        if (model := self._file.models.needed(namespace)) is None:
            return Forwards(*unpack_forwards(b"", b"", b"")), [], none
        return model.forwards(row_ids, shared=shared), model.neighbours(row_ids) if neighbours else [], none

    def neighbours(self, namespaces: Sequence[str], row_ids: RowIds) -> Sequence[tuple[int, int, bool]]:
        """Return (row id, its previous or next memory in the session, whether both have the same author)."""
        rows = []
        for place, namespace, own in apart(namespaces, row_ids):
            if (model := self._file.models.needed(namespace)) is not None:
                rows += [
                    (placed(row_id, place), placed(other, place), same) for row_id, other, same in model.neighbours(own)
                ]
        return rows

    def by_author(self, namespaces: Sequence[str], row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``, ascending."""
        found = [np.zeros(0, dtype=np.int64)]
        for place, namespace, own in apart(namespaces, row_ids):
            if (model := self._file.models.needed(namespace)) is not None:
                found.append(placed(model.by_author(own, author), place))
        return np.concatenate(found)

    def titles(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        titles: dict[int, str | None] = {}
        for place, namespace, own in apart(namespaces, row_ids):
            if (model := self._file.models.needed(namespace)) is not None:
                titles |= {placed(row_id, place): title for row_id, title in model.titles(own).items()}
        return titles

    # ------------------------------------------------------------------ names

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return the spelling of each key's name; where namespaces differ, that of the first."""
        spellings: dict[int, str] = {}
        for namespace in namespaces:
            if (model := self._file.models.needed(namespace)) is None:
                continue
            postings = model.postings(sorted(keys), None)
            row_ids = {row_id for _, entries in postings.items() for row_id in entries["ord"][:_SPELLINGS].tolist()}
            counts: dict[int, Counter[str]] = {}
            for _, entries, names in self._spelled(namespace, sorted(row_ids)):
                for key, name in zip(entries["key"].tolist(), names, strict=True):
                    counts.setdefault(key, Counter())[name] += 1
            own = {key: min(counts[key].items(), key=lambda one: (-one[1], one[0]))[0] for key in keys if key in counts}
            spellings = {**own, **spellings}
        return spellings

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return (row id, key, weight in hundredths, spelling) for the names that memories are about."""
        model = self._file.models.needed(namespace)
        if model is None:
            return []
        return model.subject_names(row_ids, lambda missing: self._subject_names(namespace, missing))

    def _subject_names(self, namespace: str, row_ids: Sequence[int]) -> list[tuple[int, int, int, str]]:
        """Return the names that memories are about, as the file has them."""
        rows = []
        for row_id, entries, names in self._spelled(namespace, row_ids):
            for place in np.flatnonzero((entries["kind"] == _NAME) & (entries["subject"] > 0)).tolist():
                rows.append((row_id, int(entries["key"][place]), int(entries["subject"][place]), names[place]))
        return rows

    def _spelled(self, namespace: str, row_ids: Sequence[int]) -> list[tuple[int, NDArray[Any], list[str]]]:
        """Return (row id, entries, the spelling of each) of memories."""
        rows = self._file._rows("forward_names", {"namespace": namespace, "ords": list(row_ids)})
        return [(row_id, np.frombuffer(raw, dtype=FORWARD), json.loads(names)) for row_id, raw, names in rows]

    def counts(self, namespace: str | None) -> tuple[int, int]:
        """Return how many concepts there are, each once for the whole store, and how often memories mention one."""
        rows = self._file._rows("forward_all", {"namespace": namespace})
        entries = np.frombuffer(b"".join(raw for raw, _ in rows), dtype=FORWARD)
        concepts = entries[entries["kind"] > 0]
        return len(np.unique(concepts["key"])), int(mentions(concepts).sum())

    def hubs(self, namespace: str, most: int) -> int:
        """Return how many names more than ``most`` memories of a namespace mention."""
        raws = self._file._rows("forward_all", {"namespace": namespace})
        entries = np.frombuffer(b"".join(raw for raw, _ in raws), dtype=FORWARD)
        named = entries["key"][(entries["kind"] == _NAME) & mentions(entries)]
        return int((np.unique(named, return_counts=True)[1] > most).sum())

    def concept_counts(self, namespace: str, like: str | None, limit: int) -> Sequence[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""
        spellings: dict[int, Counter[str]] = {}
        df: Counter[int] = Counter()
        subjects: Counter[int] = Counter()
        for raw, names in self._file._rows("forward_all", {"namespace": namespace}):
            entries = np.frombuffer(raw, dtype=FORWARD)
            is_name = np.flatnonzero(entries["kind"] == _NAME)
            labels = json.loads(names)
            counted = mentions(entries[is_name]).tolist()
            for index, mentioned in zip(is_name.tolist(), counted, strict=True):
                key = int(entries["key"][index])
                spellings.setdefault(key, Counter())[labels[index]] += mentioned
                df[key] += mentioned
                subjects[key] += int(entries["subject"][index] > 0)
        sought = None if like is None else like.lower()
        rows = [
            (key, min(forms, key=lambda name: (-forms[name], name)), df[key], subjects[key])
            for key, forms in spellings.items()
            if df[key] + subjects[key] and (sought is None or any(sought in name.lower() for name in forms))
        ]
        return sorted(rows, key=lambda row: (-row[2], row[1], row[0]))[:limit]

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, key of a related concept), each once."""
        which = {"keys": [int(key) for key in sorted(keys)], "limit": limit}
        pairs = {
            (one, other)
            for n in namespaces
            for one, other in self._file._rows("relationships_of", {"namespace": n, **which})
        }
        return sorted(pairs)[:limit]

    def corrections(self, namespaces: Collection[str]) -> Mapping[str, Corrections]:
        """Return the corrections of each namespace."""
        return {n: corrections_of(self._file._rows("corrections", {"namespace": n})) for n in sorted(namespaces)}

    def record_correction(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Record that the name ``one`` means ``into``, or with None that it means only itself.

        ``into`` may itself be corrected to another name. Returns False, and changes nothing, where both are one name.
        """

        def work(connection: sqlite3.Connection) -> bool:
            rows = connection.execute(_SQL["corrections"], {"namespace": namespace}).fetchall()
            merged = corrections_of(rows).into
            target = into if into is None else merged.get(into[0], into)
            if target is not None and merged.get(one[0], one)[0] == target[0]:
                return False
            into_key, into_name = (None, None) if target is None else target
            parameters = {"namespace": namespace, "key": one[0], "name": one[1]}
            parameters |= {"into_key": into_key, "into_name": into_name}
            connection.execute(_SQL["correct_not" if target is None else "correct_moved"], parameters)
            connection.execute(_SQL["correct"], parameters)
            connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})
            return True

        return self._file._writing(work)

    # ------------------------------------------------------------------ upkeep

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of the concepts of the indexed memories, independent of the order of writing."""

        def read(connection: sqlite3.Connection) -> str:
            where = {"namespace": namespace}
            whole = sha256()
            for row, id, part, length, entries, runs in connection.execute(_SQL["graph_hash_memories"], where):
                name = id.encode()
                own = sha256(pack(">i", len(name)) + name + pack(">iii", part, length, len(entries)) + entries)
                own.update(pack(">i", len(runs)) + runs)
                for one, type, other in connection.execute(_SQL["relationship_of"], {"row": row}):
                    own.update(pack(">qq", one, other) + type.encode() + b"\0")
                whole.update(own.digest())
            for key, _, into, _ in sorted(connection.execute(_SQL["corrections"], where)):
                whole.update(pack(">q", key) + (b"\0" if into is None else b"\1" + pack(">q", into)))
            for from_id, type, to_id in connection.execute(_SQL["graph_hash_links"], where):
                whole.update(b"".join(piece.encode() + b"\0" for piece in (from_id, type, to_id)))
            return whole.hexdigest()

        return self._file._reading(read)

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        return self._file.rebuilding()

    def reextraction(self) -> Mapping[str, Any] | None:
        """Return how far an unfinished re-extraction is, and by which extractor; None where none is unfinished."""
        return self._file._run(lambda c: fact(c, PLACE))

    def note_reextraction(self, place: Mapping[str, Any] | None) -> None:
        """Record how far a re-extraction is; None records that it is done."""
        parameters = {"key": PLACE, "value": json.dumps(dict(place or {}))}
        self._file._writing(lambda c: c.execute(_SQL["meta_drop" if place is None else "meta_set"], parameters))
