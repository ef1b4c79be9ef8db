"""Hold memories of a namespace in arrays: turns, packed postings and vectors. A block never changes once built."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semmem.model.arrays import chosen, held, lookup, runs
from semmem.model.exchange import CandidateMetadata, Turn
from semmem.model.process.forks import cached_property
from semmem.stores.packed_postings import FORWARD, OWNED_CANDIDATE, POSTING, ascending, mentions
from semmem.stores.resident.coarse import Coarse, is_possible
from semmem.stores.resident.turns import Turns
from semmem.text.tokens import author_key

__all__ = ["PER_MEMORY", "Beside", "Block", "InSession", "Rows", "aligned"]

InSession: TypeAlias = "tuple[int, int, str, int, Turn]"
"""A turn behind what orders a session: position, microseconds since 1970, id and part."""

_MOST_TURNS = 20_000
"""The number of turns, of some 700 bytes, in the sessions that a block keeps; a session that is longer stays alone."""

PER_MEMORY = 280
"""Bytes of memory taken by one stored memory without its entries and its vector, as measured."""
_LONGEST = 65_535
_ALIGNED = 64
_PAGED = 1 << 20
_ENTRY = np.dtype([("of", "<u4"), ("count", "<u2"), ("mention", "u1"), ("subject", "u1")])
"""An entry: ``of`` is the position of its key, or among the postings that of its memory."""
_WEIGHTS = ("count", "mention", "subject")
_ARRAYS = (
    "lengths", "vector_row_ids", "vectors", "candidates", "candidate_starts", "starts", "keys", "kinds", "places",
    "firsts", "postings", "about", "mentioned", "own", "named",
)  # fmt: skip


class _Sessions(dict[str, Sequence[InSession]]):
    """Sessions by name, of at most ``_MOST_TURNS`` turns; ``turns`` counts them, for there may be as many sessions."""

    turns = 0

    def keep(self, name: str, rows: Sequence[InSession]) -> None:
        """Keep a session, in place of all others where there is no room beside them."""
        if self.turns + len(rows) > _MOST_TURNS:
            self.clear()
            self.turns = 0
        self[name] = rows
        self.turns += len(rows)


@dataclass(frozen=True)
class Rows:
    """Memories as they are stored, row ids ascending, in parallel columns with one element per memory.

    ``sizes`` is the number of ``entries`` of each memory, ``candidates`` are (row id, key, place), by row id.
    ``vector_row_ids`` are the row ids that have a vector, ``vectors`` has one row for each of these.
    """

    turns: Turns
    lengths: NDArray[np.int64]
    sizes: NDArray[np.int64]
    entries: NDArray[Any]
    candidates: NDArray[Any]
    vector_row_ids: NDArray[np.int64]
    vectors: NDArray[np.float32]

    @property
    def row_ids(self) -> NDArray[np.int64]:
        """Return the row id of each memory."""
        return self.turns.row_ids

    @classmethod
    def none(cls) -> Rows:
        """Return no memories."""
        ids, vectors = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        return cls(Turns.of(()), ids, ids, np.zeros(0, FORWARD), np.zeros(0, OWNED_CANDIDATE), ids, vectors)

    def without(self, row_ids: NDArray[np.int64]) -> Rows:
        """Return the rows without ``row_ids``."""
        if not len(row_ids):
            return self
        stays, has = ~np.isin(self.row_ids, row_ids), ~np.isin(self.vector_row_ids, row_ids)
        return Rows(
            self.turns.select(stays),
            self.lengths[stays],
            self.sizes[stays],
            chosen(self.entries, np.repeat(stays, self.sizes)),
            chosen(self.candidates, ~np.isin(self.candidates["ord"], row_ids)),
            self.vector_row_ids[has],
            self.vectors[has],
        )

    @classmethod
    def gathered(cls, pieces: Iterable[Rows], count: int, vectors: int, entries: int, candidates: int) -> Rows:
        """Return the rows of pieces, piece after piece; row ids ascend where those of the pieces do.

        The pieces have ``count`` memories and so many vectors, entries and candidates in all, or fewer; raises
        ValueError for more, and for vectors of different dimensions. Each piece is copied before the next one is asked
        for, so at no time are there two copies of all.
        """
        most = {"vector_row_ids": vectors, "vectors": vectors, "entries": entries, "candidates": candidates}
        turns, columns, ends = [Turns.of(())], cls.none()._columns(), dict[str, int]()
        for piece in pieces:
            turns.append(piece.turns)
            for name, own in piece._columns().items():
                if not len(own):
                    continue
                begin = ends.get(name, 0)
                if not begin:
                    columns[name] = np.empty((most.get(name, count), *own.shape[1:]), own.dtype)
                if (end := begin + len(own)) > len(columns[name]):
                    raise ValueError(f"More {name} than were counted.")
                if own.shape[1:] != columns[name].shape[1:]:
                    raise ValueError("Vectors of different dimensions.")
                ends[name] = end
                columns[name][begin:end] = own
        return cls(Turns.joined(turns), **{name: column[: ends.get(name, 0)] for name, column in columns.items()})

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return all columns but the turns, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "turns"}

    @classmethod
    def merged(cls, one: Rows, other: Rows) -> Rows:
        """Return the rows of both arguments, which have no row id in common, with row ids ascending."""
        both = cls.gathered(
            (one, other),
            count=len(one.row_ids) + len(other.row_ids),
            vectors=len(one.vectors) + len(other.vectors),
            entries=len(one.entries) + len(other.entries),
            candidates=len(one.candidates) + len(other.candidates),
        )
        order, with_vector = np.argsort(both.row_ids), np.argsort(both.vector_row_ids)
        return cls(
            both.turns.select(order),
            both.lengths[order],
            both.sizes[order],
            chosen(both.entries, runs((np.cumsum(both.sizes) - both.sizes)[order], both.sizes[order])),
            chosen(both.candidates, np.argsort(both.candidates["ord"], kind="stable")),
            both.vector_row_ids[with_vector],
            both.vectors[with_vector],
        )


class Beside(NamedTuple):
    """Another block of the same namespace, and the positions, ascending, of keys of one's own that it has too.

    At least of those keys of which one's own block has a single entry: the others are known to be shared.
    """

    places: NDArray[np.int64]
    block: Block


class Block:
    """The entries of ``rows``, memory after memory, and the postings of their keys.

    Positions of keys begin with those that several memories have or one is about, ascending, and go on with those of
    one memory alone, ascending: nine of ten. Of these only the place of their entry is kept. With ``coarse`` many
    vectors are kept in bytes too, by which the nearest are looked for first. ``in_bytes`` says whether a block that is
    made of the rows of this one keeps them so.
    """

    def __init__(self, rows: Rows, *, coarse: bool = False) -> None:
        self.turns, self.row_ids, self.vector_row_ids, self.vectors = (
            rows.turns,
            rows.row_ids,
            rows.vector_row_ids,
            rows.vectors,
        )
        self.lengths = rows.lengths
        self.candidates = rows.candidates
        self.candidate_starts = np.searchsorted(rows.candidates["ord"], np.append(rows.row_ids, np.iinfo(np.int64).max))
        self.starts = np.concatenate([[0], np.cumsum(rows.sizes)])  # where each memory's entries begin in ``own``
        owner = np.repeat(np.arange(len(rows.row_ids), dtype=np.uint32), rows.sizes)
        order = np.argsort(rows.entries["key"], kind="stable")
        keys = rows.entries["key"][order]
        first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, dtype=np.int64)
        sizes = np.diff(np.append(first, len(keys)))
        about = np.add.reduceat(rows.entries["subject"][order] > 0, first) > 0 if len(first) else sizes > 0
        several = (sizes > 1) | about
        self.shared = int(several.sum())
        by_share = np.concatenate([np.flatnonzero(several), np.flatnonzero(~several)])
        self.keys: NDArray[np.int64] = keys[first][by_share].astype(np.int64)
        self.kinds: NDArray[np.uint8] = rows.entries["kind"][order][first][by_share]
        self.places = order[first[~several]].astype(np.uint32)  # where the entry of a key that one memory has is
        self.firsts = np.concatenate([[0], np.cumsum(sizes[several])])  # where a key's postings begin in ``postings``
        self.postings = _entries(rows.entries, order[np.repeat(several, sizes)])
        self.postings["of"] = owner[order[np.repeat(several, sizes)]]
        running_counts = np.concatenate([[0], np.cumsum(mentions(self.postings))])
        self.about = about[by_share][: self.shared]
        self.mentioned = (running_counts[self.firsts[1:]] - running_counts[self.firsts[:-1]]).astype(np.int32)
        position = np.empty(len(first), dtype=np.uint32)
        position[by_share] = np.arange(len(first), dtype=np.uint32)
        self.own = _entries(rows.entries, slice(None))  # the entries of one memory after the other
        self.own["of"][order] = np.repeat(position, sizes)
        self.named = self._named()
        self.is_mapped = False
        self.in_bytes = coarse
        self.coarse = Coarse.of(self.vectors) if coarse and is_possible(len(self.vectors)) else None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is kept but the namespace and the vectors in bytes, by name, for ``from_arrays``."""
        return {**self.turns.arrays(), **{name: getattr(self, name) for name in _ARRAYS}}

    @classmethod
    def from_arrays(cls, namespace: str, arrays: Mapping[str, NDArray[Any]]) -> Block:
        """Return the block that gave these ``arrays``; nothing is calculated, and no vector is kept in bytes.

        Blocks made of its rows have them, as putting vectors into bytes takes as long as a hundred questions gain.
        """
        block = cls.__new__(cls)
        for name in _ARRAYS:
            setattr(block, name, arrays[name])
        block.turns = Turns.from_arrays(namespace, arrays)
        block.row_ids = block.turns.row_ids
        block.shared = len(block.about)
        block.in_bytes, block.coarse, block.is_mapped = True, None, True
        return block

    def in_own_pages(self) -> Block:
        """Return the block with its arrays in pages of their own, which go back to the system with the block.

        An array of the heap goes back only where nothing younger lies above it. A block below a megabyte stays there,
        as does one for which the system has no pages.
        """
        if self._array_bytes < _PAGED:
            return self
        own = self.arrays()
        offsets, end = aligned(array.nbytes for array in own.values())
        try:
            pages = _pages(end)
        except OSError:
            return self
        arrays = {}
        for (name, array), offset in zip(own.items(), offsets, strict=True):
            arrays[name] = kept = np.ndarray(array.shape, array.dtype, pages, offset)
            kept[...] = array
        block = Block.from_arrays(self.turns.namespace, arrays)
        block.in_bytes, block.coarse, block.is_mapped = self.in_bytes, self.coarse, False
        return block

    @property
    def file_bytes(self) -> int:
        """Return how many bytes the arrays of the block take in a file."""
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def size(self) -> int:
        """Return the approximate number of bytes of memory that the block takes.

        The pages of a mapped file are the cache of the system, which takes them back where memory is short; what is
        made of them counts.
        """
        if self.is_mapped:
            return PER_MEMORY * len(self.row_ids)
        return self.whole_size + (0 if self.coarse is None else self.coarse.size)

    @property
    def whole_size(self) -> int:
        """Return ``size`` as it would be without a map, and without vectors in bytes."""
        return PER_MEMORY * len(self.row_ids) + self._array_bytes

    @property
    def _array_bytes(self) -> int:
        keys = (self.keys, self.kinds, self.places, self.firsts, self.mentioned, self.named)
        arrays = (self.own, self.postings, *keys, self.vectors, self.candidates)
        return sum(array.nbytes for array in arrays)

    @property
    def rows(self) -> Rows:
        """Return the memories that the block was built from."""
        entries = self._forward(slice(None))
        columns = (np.diff(self.starts), entries, self.candidates)
        return Rows(self.turns, self.lengths, *columns, self.vector_row_ids, self.vectors)

    def _named(self) -> NDArray[np.int32]:
        """Return of each candidate the position of its key where a memory is about it, else -1."""
        subjects = np.flatnonzero(self.about).astype(np.int32)
        here, places = lookup(self.keys[subjects], self.candidates["key"])
        return np.where(here, subjects[places], np.int32(-1)) if len(subjects) else np.full(len(here), -1, np.int32)

    @cached_property
    def by_session(self) -> dict[str, list[int]]:
        """Return the positions of the memories of each session; memories without a session are left out."""
        return self.turns.places("session")

    def session(self, name: str) -> Sequence[InSession]:
        """Return the memories of a session in its order; kept, for the models of many states have one block."""
        if (rows := self._sessions.get(name)) is None:
            turns = self.turns
            places = self.by_session.get(name, ())
            rows = sorted((*turns.place(place), (turn := turns[place]).id, turn.part, turn) for place in places)
            self._sessions.keep(name, rows)
        return rows

    @cached_property
    def _sessions(self) -> _Sessions:
        """The sessions by name, filled as they are asked for."""
        return _Sessions()

    @cached_property
    def by_author(self) -> dict[str, NDArray[np.int64]]:
        """Return the positions of the memories of each author, ascending, by author key."""
        positions: dict[str, list[int]] = {}
        for author, places in self.turns.places("author").items():
            if key := author_key(author):
                positions.setdefault(key, []).extend(places)
        return {key: np.array(sorted(places), dtype=np.int64) for key, places in positions.items()}

    @cached_property
    def talked(self) -> NDArray[np.bool_]:
        """Return which memories have a session."""
        return self.turns.given("session")

    @cached_property
    def signed(self) -> NDArray[np.bool_]:
        """Return which memories have an author."""
        signed = np.zeros(len(self.row_ids), dtype=bool)
        for places in self.by_author.values():
            signed[places] = True
        return signed

    @cached_property
    def _by_id(self) -> dict[str, list[int]]:
        row_ids_by_id: dict[str, list[int]] = {}
        for id, row_id in zip(self.turns.each("id"), self.row_ids.tolist(), strict=True):
            row_ids_by_id.setdefault(str(id), []).append(row_id)
        return row_ids_by_id

    def row_ids_of(self, ids: Collection[str]) -> NDArray[np.int64]:
        """Return the row ids of the memories with these ids, ascending, parts included."""
        row_ids_by_id = self._by_id if ids else {}
        return np.array(sorted(row_id for id in ids for row_id in row_ids_by_id.get(id, ())), dtype=np.int64)

    def _forward(self, which: NDArray[np.int64] | slice) -> NDArray[Any]:
        """Return the entries at some places of ``own``."""
        entries = chosen(self.own, which)
        forwards = np.zeros(len(entries), dtype=FORWARD)
        forwards["key"], forwards["kind"] = self.keys[entries["of"]], self.kinds[entries["of"]]
        for name in _WEIGHTS:
            forwards[name] = entries[name]
        return forwards

    @cached_property
    def metadata(self) -> dict[int, CandidateMetadata]:
        """The metadata of memories by row id, filled as they are asked for."""
        return {}

    def places_of(self, row_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of those of ``row_ids`` that the block holds, in the order of ``row_ids``."""
        if not len(self.row_ids):
            return np.zeros(0, dtype=np.int64)
        found = np.minimum(np.searchsorted(self.row_ids, row_ids), len(self.row_ids) - 1)
        places: NDArray[np.int64] = found[self.row_ids[found] == row_ids]
        return places

    def forwards(
        self, places: NDArray[np.int64], *, shared: bool = False, beside: Beside | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any], NDArray[Any]]:
        """Return Forwards of the memories at some positions.

        ``shared``: only entries of keys that several memories have or one is about, and candidates that one is about;
        where these may be memories of another block, ``beside`` says of which keys.
        """
        sizes = self.starts[places + 1] - self.starts[places]
        which = runs(self.starts[places], sizes)
        starts, ends = self.candidate_starts[places], self.candidate_starts[places + 1]
        words = runs(starts, ends - starts)
        if shared:
            of, named = self.own["of"][which], self.named[words] >= 0
            several = of < self.shared
            if beside is not None:
                several |= held(beside.places, of)
                named |= beside.block.has_subjects(self.candidates["key"][words])
            sizes = np.bincount(np.repeat(np.arange(len(places)), sizes)[several], minlength=len(places))
            which, words = which[several], words[named]
        return self.row_ids[places], sizes, self._forward(which), chosen(self.candidates, words)

    def has_subjects(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return of each of ``keys`` whether a memory of the block is about it."""
        here, places = self.find_shared(keys)
        return here & self.is_about(places)

    def shared_concepts(
        self, places: NDArray[np.int64], max_df: int
    ) -> tuple[
        tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any], NDArray[Any]],
        tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]],
    ]:
        """Return Forwards of the memories at some positions and postings_of their keys, by positions throughout.

        These are keys that several memories have or one is about, and that at most ``max_df`` mention; of candidates
        those alone that a memory is about.
        """
        sizes = self.starts[places + 1] - self.starts[places]
        which = runs(self.starts[places], sizes)
        of = self.own["of"][which].astype(np.int64)
        (several,) = (of < self.shared).nonzero()
        several = several[self.mentioned[of[several]] <= max_df]
        of, owner = of[several], np.arange(len(places)).repeat(sizes)[several]
        starts, ends = self.candidate_starts[places], self.candidate_starts[places + 1]
        runs_of_words = runs(starts, ends - starts)
        named = self.named[runs_of_words].astype(np.int64)
        (names,) = (named >= 0).nonzero()
        names = names[self.mentioned[named[names]] <= max_df]
        keys = ascending(np.concatenate([of, named[names]]))
        entries = self._forward(which[several]), chosen(self.candidates, runs_of_words[names])
        forwards = self.row_ids[places], np.bincount(owner, minlength=len(places)), *entries
        return forwards, (self.keys[keys], self.sizes(keys), self.entries(keys))

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which of ``keys`` the block holds, and the position of each; meaningless where it is not held."""
        here, places = self.find_shared(keys)
        alone, where = lookup(self.keys[self.shared :], keys)
        return here | alone, np.where(here, places, where + self.shared)

    def find_shared(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return what ``find`` does, of the keys that several memories have; a tenth of all is looked through."""
        return lookup(self.keys[: self.shared], keys)

    def postings_of(
        self, keys: NDArray[np.int64], max_df: int | None, *, shared: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return (keys, sizes, entries) of those of ``keys`` that the block holds; see Store.postings."""
        here, places = self.find_shared(keys) if shared else self.find(keys)
        keys, places = keys[here], places[here]  # most words of a question are the names of nothing
        if max_df is not None:
            few = (self.mentioned[places] if shared else self.mentions(places)) <= max_df
            keys, places = keys[few], places[few]
        return keys, self.sizes(places), self.entries(places)

    def sizes(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of entries of the keys at some positions."""
        alone = places >= self.shared
        sizes: NDArray[np.int64] = (
            self.firsts[np.minimum(places + 1, self.shared)] - self.firsts[np.minimum(places, self.shared)]
        )
        return sizes + alone

    def is_about(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether a memory is about the keys at some positions."""
        marked = np.zeros(len(places), dtype=bool)
        several = places < self.shared
        marked[several] = self.about[places[several]]
        return marked

    def mentions(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many memories mention the keys at some positions."""
        counts = np.zeros(len(places), dtype=np.int64)
        alone = places >= self.shared
        counts[~alone] = self.mentioned[places[~alone]]
        counts[alone] = mentions(chosen(self.own, self.places[places[alone] - self.shared]))
        return counts

    def entries(self, where: NDArray[np.int64]) -> NDArray[Any]:
        """Return the postings of the keys at some positions, key after key."""
        alone = where >= self.shared
        if not alone.any():
            of = chosen(self.postings, _run(self.firsts[where], self.firsts[where + 1] - self.firsts[where]))
            return self._posting(of["of"], of)
        sizes = self.sizes(where)
        starts = np.cumsum(sizes) - sizes
        out = np.empty(int(sizes.sum()), dtype=POSTING)
        if not alone.all():
            out[runs(starts[~alone], sizes[~alone])] = self.entries(where[~alone])
        places = self.places[where[alone] - self.shared]
        rows = np.searchsorted(self.starts, places, side="right") - 1
        out[starts[alone]] = self._posting(rows, chosen(self.own, places))
        return out

    def _posting(self, rows: NDArray[Any], entries: NDArray[Any]) -> NDArray[Any]:
        """Return entries of the memories at some positions as postings."""
        postings = np.zeros(len(entries), dtype=POSTING)
        postings["ord"] = self.row_ids[rows]
        postings["length"] = np.minimum(self.lengths[rows], _LONGEST)
        for name in _WEIGHTS:
            postings[name] = entries[name]
        return postings

    def vectors_of(self, row_ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of ``row_ids`` that have a vector, and the vectors."""
        if not len(self.vector_row_ids):
            return row_ids[:0], self.vectors[:0]
        places = np.minimum(np.searchsorted(self.vector_row_ids, row_ids), len(self.vector_row_ids) - 1)
        places = places[self.vector_row_ids[places] == row_ids]
        return self.vector_row_ids[places], self.vectors[places]


def _entries(entries: NDArray[Any], which: NDArray[np.int64] | slice) -> NDArray[Any]:
    """Return some entries as a store has them in the form that a block has them, without what they are ``of``."""
    picked = chosen(entries, which)
    out = np.zeros(len(picked), dtype=_ENTRY)
    for name in _WEIGHTS:
        out[name] = picked[name]
    return out


def _pages(size: int) -> mmap.mmap:
    """Return new pages of this process alone, large ones where the system has them, as numpy asks. Raises OSError."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def aligned(sizes: Iterable[int], start: int = 0) -> tuple[list[int], int]:
    """Return the offsets at which arrays of some sizes in bytes lie one after the other, and the end of the last one.

    Each array begins at the next multiple of 64 bytes, the first one at or after ``start``.
    """
    offsets, end = [], start
    for size in sizes:
        offsets.append(end + -end % _ALIGNED)
        end = offsets[-1] + size
    return offsets, end


def _run(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    if len(starts) == 1:  # one key needs no list of places
        return slice(int(starts[0]), int(starts[0] + sizes[0]))
    return runs(starts, sizes)
