"""Answer what recalls ask of a store, for one namespace at one sequence number, from arrays in memory.

A model has a large block, and a small one with what was written since the large one was built; row ids that were
removed from the large block are left out of every answer. A model never changes, so many threads can read it.
"""

from __future__ import annotations

import heapq
import json
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from semmem.model.arrays import Groups, chosen, concatenated, held, lookup, merged_groups
from semmem.model.exchange import (
    BEHIND,
    LAST,
    MOST_TURNS,
    CandidateMetadata,
    Corrections,
    Forwards,
    Kinds,
    Postings,
    Ranking,
    RowIds,
    Scope,
    Turn,
)
from semmem.model.process.forks import cached_property
from semmem.stores.packed_postings import ascending, mentions
from semmem.stores.resident.block import Beside, Block, Rows

__all__ = ["Model", "State"]

T = TypeVar("T", bound=np.generic)
Subjects: TypeAlias = "list[tuple[int, int, int, str]]"
"""The names that a memory is about; see Snapshot.subject_names."""

_NOTHING = np.zeros(0, dtype=np.int64)
_NONE = Corrections()
_UNSURE = 4e-6
"""The error of a single-precision product of unit vectors is below this; products this near the cut are recomputed."""
_VECDOT = hasattr(np, "vecdot")
"""Numpy 1 has none; there its other way without threads takes half as long again."""
_MOST_FOLLOWED = 5_000
"""A model that more memories were written after is read anew: following takes 90 us a memory, reading 40 to 70.

So many rows and removals the small block of a model has at most that cannot be built anew.
"""
_TAIL = 1_000
"""The size of the small block, or the number of removed memories, at which both blocks are rebuilt into one."""


class State(NamedTuple):
    """The state of a namespace as a recall found it: two equal states have equal answers."""

    sequence: int
    changes: int
    segments: int
    memories: int
    length: int
    dropping: bool
    created: float
    server: float
    embedder: str | None
    file: str
    copied: str | None = None

    @property
    def place(self) -> tuple[float, float, str | None, str, str | None]:
        """Return what identifies the history of a state: only states with an equal ``place`` can be compared."""
        return self.created, self.server, self.embedder, self.file, self.copied

    def follows(self, before: State) -> bool:
        """Return whether the table of changes names everything that changed since ``before``.

        A segment of postings, or a merge of some, changes no memory. Other changes advance the sequence number alone:
        re-extracted memories, a rebuild. Nor does it follow where more than 5,000 memories were written.
        """
        change_count = (self.changes - before.changes) + (self.segments - before.segments)
        named = self.place == before.place and 0 < self.sequence - before.sequence == change_count
        return named and not self.dropping and self.written_since(before) <= _MOST_FOLLOWED

    def written_since(self, before: State) -> int:
        """Return how many memories were written or removed since ``before``, at least: a change may be of a batch."""
        return max(self.changes - before.changes, abs(self.memories - before.memories))


class Model:
    """A namespace at the sequence number of ``state``: ``base`` without the row ids ``removals``, and ``tail``."""

    def __init__(
        self,
        namespace: str,
        state: State,
        base: Block,
        tail: Block | None = None,
        removals: NDArray[np.int64] = _NOTHING,
        corrections: Corrections = _NONE,
        subjects: Mapping[int, Subjects] | None = None,
    ) -> None:
        self.namespace = namespace
        self.state = state
        self.corrections = corrections
        self._base = base
        self._tail = tail
        self._removals = removals
        self._blocks = [base] if tail is None else [base, tail]
        self._subjects = dict(subjects or {})
        self._sessions: dict[str, tuple[list[Turn], dict[int, int]]] = {}
        removed_entries = base.forwards(base.places_of(removals))[2] if len(removals) else None
        self._removed_counts = _key_counts(removed_entries) if removed_entries is not None else None

    @property
    def size(self) -> int:
        """Return the approximate number of bytes that the model takes."""
        return sum(block.size for block in self._blocks)

    @property
    def is_mapped(self) -> bool:
        """Whether the large block is a file of a saved model."""
        return self._base.is_mapped

    @property
    def behind(self) -> int:
        """How many memories have changed since the large block was built, at least: one that is updated counts once."""
        return max(len(self._removals), 0 if self._tail is None else len(self._tail.row_ids))

    @property
    def block(self) -> Block:
        """The memories of the model in one block, which keeps nothing of others."""
        if self._tail is None and not len(self._removals):
            return self._base
        return Block(self._rows)

    @property
    def _rows(self) -> Rows:
        rows = self._base.rows.without(self._removals)
        return rows if self._tail is None else Rows.merged(rows, self._tail.rows)

    def after(
        self,
        state: State,
        new_rows: Rows,
        ids: Collection[str],
        corrections: Corrections = _NONE,
        *,
        joins: int = sys.maxsize,
    ) -> Model | None:
        """Return the model at a later ``state``: without the memories of ``ids``, and with ``new_rows``.

        Both blocks are joined from time to time where the large one has at most ``joins`` memories. Otherwise the small
        one grows until somebody replaces this model by the ``joined`` one; None where it would have too many rows.
        """
        in_base, in_tail = self._base.row_ids_of(ids), _NOTHING if self._tail is None else self._tail.row_ids_of(ids)
        subjects = self._subjects_after(state, new_rows, self._present(in_base, in_tail))
        removals = np.union1d(self._removals, in_base)
        if self._tail is not None:
            new_rows = Rows.merged(self._tail.rows.without(in_tail), new_rows)
        behind, base = len(new_rows.row_ids) + len(removals), self._base
        is_joined = behind >= _TAIL and len(base.row_ids) <= joins
        if behind > _MOST_FOLLOWED and not is_joined:
            return None
        later = Model(
            self.namespace,
            state,
            base,
            Block(new_rows) if len(new_rows.row_ids) else None,
            removals,
            corrections,
            subjects,
        )
        return later.joined() if is_joined else later

    def joined(self, most: float = math.inf) -> Model | None:
        """Return the same model with both blocks built into one; None where that one would take more than ``most``.

        That takes about 25 us a memory, so no recall does it for a large namespace.
        """
        whole_size = self._base.whole_size
        if whole_size > most:
            return None
        coarse = self._base.in_bytes and whole_size + self._base.vectors.size <= most
        base = Block(self._rows, coarse=coarse).in_own_pages()
        return Model(self.namespace, self.state, base, corrections=self.corrections, subjects=self._subjects)

    def is_built_on(self, other: Model) -> bool:
        """Return whether this model has the large block of another one, so that it only has other changes since."""
        return self._base is other._base

    # ------------------------------------------------------------------ postings

    def postings(self, keys: RowIds, max_df: int | None, *, shared: bool = False) -> Postings:
        """Return the postings of ``keys``; see Store.postings."""
        sorted_keys = ascending(keys)
        changed = held(self._changed_keys, sorted_keys)
        groups = self._base.postings_of(sorted_keys[~changed], max_df, shared=shared)
        if changed.any():
            groups = merged_groups(groups, self._changed(sorted_keys[changed], max_df, shared))
        return Postings(self.state.memories, self.state.length, *groups)

    @cached_property
    def _changed_keys(self) -> NDArray[np.int64]:
        """Return the keys, ascending, whose entries are not those of the large block alone."""
        removed = _NOTHING if self._removed_counts is None else self._removed_counts[0]
        return removed if self._tail is None else np.union1d(self._tail.keys, removed)

    def _changed(self, sorted_keys: NDArray[np.int64], max_df: int | None, shared: bool) -> Groups:
        """Return the postings of some of the changed keys."""
        # a key that one block has once may be in the other too
        positions = [block.find(sorted_keys) for block in self._blocks]
        sizes = np.zeros(len(sorted_keys), dtype=np.int64)
        mentioned = np.zeros(len(sorted_keys), dtype=np.int64)
        about = np.zeros(len(sorted_keys), dtype=bool)
        for block, (here, places) in zip(self._blocks, positions, strict=True):
            if len(block.keys):
                sizes += np.where(here, block.sizes(places), 0)
                mentioned[here] += block.mentions(places[here])
                about[here] |= block.is_about(places[here])
        if self._removed_counts is not None:
            removed_keys, count, times = self._removed_counts
            affected, of = lookup(removed_keys, sorted_keys)
            sizes[affected] -= count[of[affected]]
            mentioned[affected] -= times[of[affected]]
        mask = (sizes > 0) & ((sizes > 1) | about) if shared else sizes > 0
        if max_df is not None:
            mask &= mentioned <= max_df
        owners, pieces = [], []
        for block, (here, places) in zip(self._blocks, positions, strict=True):
            own_mask = mask & here
            entries = block.entries(places[own_mask])
            owner = np.repeat(own_mask.nonzero()[0], block.sizes(places[own_mask]))
            if block is self._base and len(self._removals):
                alive = ~held(self._removals, entries["ord"])
                entries, owner = chosen(entries, alive), owner[alive]
            owners.append(owner)
            pieces.append(entries)
        owner, entries = np.concatenate(owners), concatenated(pieces)
        by = owner.astype(np.int64) << 32 | entries["ord"]
        order = np.argsort(by, kind="stable")  # merges what is sorted in each block
        return sorted_keys[mask], sizes[mask], chosen(entries, order)

    def forwards(self, row_ids: RowIds, *, shared: bool = False) -> Forwards:
        """Return the forward entries of each of ``row_ids``; ``shared`` leaves out keys that only one memory has."""
        beside = self._beside if shared and self._tail is not None else (None,) * len(self._blocks)
        parts = [
            block.forwards(places, shared=shared, beside=other)
            for (block, places), other in zip(self._at(row_ids), beside, strict=True)
        ]
        if len(parts) == 1:
            return Forwards(*parts[0])
        owners, sizes, entries = merged_groups(*(part[:3] for part in parts))
        candidates = concatenated([part[3] for part in parts])
        return Forwards(owners, sizes, entries, chosen(candidates, np.argsort(candidates["ord"], kind="stable")))

    @cached_property
    def _beside(self) -> tuple[Beside, Beside]:
        """What either block needs to know of the other one."""
        base, tail = self._blocks
        here, places = base.find(tail.keys)
        alone = np.sort(places[here & (places >= base.shared)])
        return Beside(alone, tail), Beside(np.flatnonzero(here), base)

    def shared_concepts(self, row_ids: RowIds, max_df: int) -> tuple[Forwards, Postings] | None:
        """Return what ``Snapshot.shared_concepts`` does; None where there are two blocks, or memories were removed."""
        if len(self._blocks) > 1 or len(self._removals):
            return None  # a key that one block has once may be in the other too
        forwards, postings = self._base.shared_concepts(self._base.places_of(ascending(row_ids)), max_df)
        return Forwards(*forwards), Postings(self.state.memories, self.state.length, *postings)

    def _without_removals(self, row_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return row_ids[~held(self._removals, row_ids)] if len(self._removals) else row_ids

    def _at(self, row_ids: RowIds) -> list[tuple[Block, NDArray[np.int64]]]:
        """Return each block with the positions of those of ``row_ids`` that it holds, ascending."""
        sorted_row_ids = ascending(row_ids)
        in_base = self._without_removals(sorted_row_ids)
        return [(b, b.places_of(in_base if b is self._base else sorted_row_ids)) for b in self._blocks]

    # ------------------------------------------------------------------ candidate metadata and sessions

    def turns_of(self, row_ids: RowIds) -> list[Turn]:
        """Return ``row_ids`` as turns of their sessions; forgotten memories are left out."""
        return [block.turns[place] for block, places in self._at(row_ids) for place in places.tolist()]

    def metadata(self, row_ids: RowIds) -> dict[int, CandidateMetadata]:
        """Return the metadata of each of ``row_ids``; forgotten memories are left out."""
        older, newer = self._base.metadata, {} if self._tail is None else self._tail.metadata
        if not newer and not len(self._removals) and all(map(older.__contains__, row_ids)):  # as almost always
            return {row_id: older[row_id] for row_id in row_ids}
        gone = self._removal_set
        metadata = {}
        for row_id in row_ids:
            candidate = newer.get(row_id)
            if candidate is None and row_id not in gone:
                candidate = older.get(row_id)
            if candidate is not None:
                metadata[row_id] = candidate
        missing = [row_id for row_id in row_ids if row_id not in metadata]
        for block, places in self._at(missing) if missing else ():
            for place in places.tolist():
                candidate = block.turns[place].candidate
                metadata[candidate.row_id] = block.metadata[candidate.row_id] = candidate
        return metadata

    def subject_names(
        self, row_ids: RowIds, read: Callable[[list[int]], Sequence[tuple[int, int, int, str]]]
    ) -> Subjects:
        """Return the names that memories are about, by row id, as ``Snapshot.subject_names`` does.

        ``read`` reads those that no recall has asked for before. They are kept, and most are handed on to the model of
        a later state.
        """
        if missing := [row_id for row_id in map(int, row_ids) if row_id not in self._subjects]:
            names: dict[int, Subjects] = {row_id: [] for row_id in missing}
            for row in read(missing):
                names[row[0]].append(row)
            self._subjects |= names
        return [row for row_id in sorted(map(int, row_ids)) for row in self._subjects[row_id]]

    def _subjects_after(self, state: State, new_rows: Rows, gone: NDArray[np.int64]) -> Mapping[int, Subjects]:
        """Return the names that are kept in a later state, in which ``new_rows`` are written and ``gone`` are not.

        A store may spell a name as another memory does. So a name is read again once a memory with its key is written
        or removed, and all are where postings were folded or merged.
        """
        if not self._subjects or state.segments != self.state.segments:
            return {}
        removed = (block.forwards(places)[2]["key"] for block, places in self._at(gone))
        keys = set(np.concatenate([new_rows.entries["key"], *removed]).tolist())
        gone_ids = set(gone.tolist())
        known = dict(self._subjects)  # another thread may add to it
        return {
            row_id: rows
            for row_id, rows in known.items()
            if row_id not in gone_ids and not any(key in keys for _, key, _, _ in rows)
        }

    def titles(self, row_ids: RowIds) -> dict[int, str | None]:
        """Return the title of each of ``row_ids``."""
        return {
            int(b.row_ids[place]): b.turns.title(place) for b, places in self._at(row_ids) for place in places.tolist()
        }

    def by_author(self, row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``, ascending."""
        return np.array(sorted(turn.row_id for turn in self.turns_of(row_ids) if turn.author == author), dtype=np.int64)

    @cached_property
    def _removal_set(self) -> frozenset[int]:
        return frozenset(self._removals.tolist())

    def _session(self, name: str) -> tuple[list[Turn], dict[int, int]]:
        """Return the turns of a session in order, and the place of each row id in it."""
        session = self._sessions.get(name)
        if session is None:
            rows = list(self._base.session(name))
            if gone := self._removal_set:
                rows = [row for row in rows if row[-1].row_id not in gone]
            if self._tail is not None:
                rows = sorted((*rows, *self._tail.session(name)))  # merges what is sorted in each block
            turns = [row[-1] for row in rows]
            session = self._sessions[name] = turns, {turn.row_id: place for place, turn in enumerate(turns)}
        return session

    def session_turns(self, row_ids: RowIds) -> list[Turn]:
        """Return the sessions of ``row_ids``, each in its order; see Store.session_turns."""
        around = self.turns_of(row_ids)
        turns: list[Turn] = []
        for name in sorted({turn.session for turn in around if turn.session is not None}):
            turns += self._session(name)[0]
            if len(turns) > MOST_TURNS:
                return turns[: MOST_TURNS + 1]
        alone = [turn for turn in around if turn.session is None]
        return [*turns, *alone][: MOST_TURNS + 1]

    def neighbours(self, row_ids: RowIds) -> list[tuple[int, int, bool]]:
        """Return (row id, row id of its previous or next memory in the session, whether both have the same author)."""
        pairs = []
        for block, places in self._at(row_ids):
            for where in places.tolist():
                if (session := block.turns.session(where)) is None:
                    continue
                turns, place = self._session(session)
                index = place[int(block.row_ids[where])]
                own = turns[index]
                for other in (*turns[max(index - 1, 0) : index], *turns[index + 1 : index + 2]):
                    pairs.append((own.row_id, other.row_id, own.author is not None and own.author == other.author))
        return pairs

    def row_ids_of(self, ids: Collection[str]) -> NDArray[np.int64]:
        """Return the row ids of the memories with these ids, ascending, parts included."""
        return self._present(*(block.row_ids_of(ids) for block in self._blocks))

    def _present(self, in_base: NDArray[np.int64], in_tail: NDArray[np.int64] = _NOTHING) -> NDArray[np.int64]:
        """Return row ids of the two blocks, ascending, without those of the large one that were removed since."""
        return np.sort(np.concatenate([np.setdiff1d(in_base, self._removals), in_tail]))

    def kinds(self, keys: Collection[str]) -> Kinds | None:
        """Return ``Store.conversation_facts``; None where an author's text was split, because only parts are here."""
        talked, signed = self._in_conversations
        named: dict[str, list[tuple[str | None, ...]]] = {}
        for key in keys if signed else ():
            newest: list[tuple[int, str, Turn]] = []
            for block in self._blocks:
                places = block.by_author.get(key, _NOTHING)
                if block is self._base and len(self._removals):
                    places = places[~held(self._removals, block.row_ids[places])]
                if block.turns.has_parts(places):
                    return None
                turns = [(place, block.turns[place]) for place in block.turns.newest(places, LAST).tolist()]
                newest += [(block.turns.place(place)[1], turn.id, turn) for place, turn in turns]
            for _, _, turn in heapq.nlargest(LAST, newest, key=lambda row: row[:2]):
                named.setdefault(str(turn.author), []).append(self._behind(turn))
        return Kinds(talked, signed, named)

    @cached_property
    def _in_conversations(self) -> tuple[bool, bool]:
        """Whether a memory has a session, and whether one has an author."""
        stays = np.ones(len(self._base.row_ids), dtype=bool)
        stays[self._base.places_of(self._removals)] = False
        masks = [(self._base.talked & stays, self._base.signed & stays)]
        masks += [(block.talked, block.signed) for block in self._blocks[1:]]
        return any(bool(talked.any()) for talked, _ in masks), any(bool(signed.any()) for _, signed in masks)

    def _behind(self, turn: Turn) -> tuple[str | None, ...]:
        """Return the authors of the memories before this one in its session, nearest first."""
        if turn.session is None:
            return ()
        turns, place = self._session(turn.session)
        index = place[turn.row_id]
        return tuple(other.author for other in turns[max(index - BEHIND, 0) : index][::-1])

    # ------------------------------------------------------------------ vectors

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories with the highest inner product with a unit vector, within scope; exact.

        Products are computed in single precision, of those alone that bytes leave where the block has them. Those near
        the cut are computed again in double precision, row by row, so that equal vectors have equal products wherever
        they stand.
        """
        query = np.asarray(vector, dtype=np.float32)
        blocks = [block for block in self._blocks if len(block.vector_row_ids)] if depth > 0 else []
        near = [self._near(block, scope, query, depth) for block in blocks]
        count = min(depth, sum(len(products) for _, products in near))
        if not count:
            return Ranking()
        values = _one_array([products for _, products in near])
        cut = np.partition(values, len(values) - count)[len(values) - count]
        kept = values >= max(cut - _UNSURE, np.float32(-3))
        ends = np.cumsum([len(products) for _, products in near])
        rows: list[NDArray[np.float32]] = []
        row_ids: list[NDArray[np.int64]] = []
        for block, (places, _), share in zip(blocks, near, np.split(kept, ends[:-1]), strict=True):
            (own,) = share.nonzero()
            own = own if places is None else places[own]
            rows.append(block.vectors[own])
            row_ids.append(block.vector_row_ids[own])
        exact, candidates = _products(_one_array(rows), query), _one_array(row_ids)
        order = np.lexsort((candidates, -exact))[:depth]
        return Ranking(tuple(candidates[order].tolist()), tuple(exact[order].tolist()), len(order))

    def _near(
        self, block: Block, scope: Scope, query: NDArray[np.float32], depth: int
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float32]]:
        """Return the places of the vectors of a block that may be among the ``depth`` nearest, None for all of them.

        With their products in single precision, below all others outside the scope.
        """
        matching: NDArray[np.bool_] | None = None
        if scope.allowed is not None or scope.excluded is not None:
            matching = scope.matches(block.vector_row_ids)
        if block is self._base and (stays := self._stays) is not None:
            matching = stays if matching is None else matching & stays
        places = block.coarse.among_nearest(query, depth, matching) if block.coarse is not None else None
        if places is not None:
            return places, _single(block.vectors[places], query)
        near = _single(block.vectors, query)
        if matching is not None:
            near[~matching] = -np.inf
        return None, near

    @cached_property
    def _stays(self) -> NDArray[np.bool_] | None:
        """Return of each vector of the large block whether its memory was not removed; None where all are there."""
        if not len(self._removals):
            return None
        stays = np.ones(len(self._base.vector_row_ids), dtype=bool)
        here, places = lookup(self._base.vector_row_ids, self._removals)
        stays[places[here]] = False
        return stays

    def vectors_of(self, row_ids: RowIds) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the row ids with a vector, ascending, and their vectors, one a row."""
        sorted_row_ids = ascending(row_ids)
        in_base = self._without_removals(sorted_row_ids)
        parts = [b.vectors_of(in_base if b is self._base else sorted_row_ids) for b in self._blocks]
        parts = [part for part in parts if len(part[0])] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        vector_row_ids, vectors = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        order = np.argsort(vector_row_ids)
        return vector_row_ids[order], vectors[order]

    def similarities(self, row_ids: RowIds, vector: NDArray[np.float32]) -> dict[int, float]:
        """Return the inner product of each memory's vector with ``vector``; those without one are left out."""
        vector_row_ids, vectors = self.vectors_of(row_ids)
        if not len(vector_row_ids):
            return {}
        return dict(zip(vector_row_ids.tolist(), _products(vectors, np.asarray(vector)).tolist(), strict=True))

    def is_of(self, embedder: Mapping[str, Any] | None) -> bool:
        """Return whether the vectors were made by ``embedder``; None means an unknown embedder."""
        return embedder is None or dict(embedder) == self._embedder

    @cached_property
    def _embedder(self) -> Mapping[str, Any] | None:
        return None if self.state.embedder is None else dict(json.loads(self.state.embedder))

    @cached_property
    def dimensions(self) -> int | None:
        """Return the length of the vectors; None where there are none."""
        return next((b.vectors.shape[1] for b in self._blocks if len(b.vector_row_ids)), None)


def _one_array(arrays: Sequence[NDArray[T]]) -> NDArray[T]:
    """Return arrays one after the other; a single one as it is."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _single(rows: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the inner products in single precision, in this thread alone.

    A product of matrices is shared among the threads of numpy's library, and the last of them is waited for: where
    another process has its processor, for as long as that is let run.
    """
    products: NDArray[np.float32] = np.vecdot(rows, query) if _VECDOT else np.einsum("ij,j->i", rows, query)
    return products


def _products(rows: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    # numpy makes the rows doubles piece by piece: a copy of all takes several times as long
    products: NDArray[np.float64] = (rows * query.astype(np.float64)).sum(axis=1)
    return products


def _key_counts(entries: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of some entries, ascending, with the number of entries of each and how many mention the key."""
    keys, slot = np.unique(entries["key"], return_inverse=True)
    times = np.bincount(slot, weights=mentions(entries), minlength=len(keys)).astype(np.int64)
    return keys, np.bincount(slot, minlength=len(keys)).astype(np.int64), times
