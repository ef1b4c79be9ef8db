"""Hold memories of a namespace in arrays: heads, packed postings and vectors. A block never changes once built."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import Head, Turn
from semmem.stores.packed_postings import FORWARD, POSTING, mentions
from semmem.text.tokens import author_key

__all__ = ["PER_MEMORY", "Block", "Rows", "ascending", "runs"]

PER_MEMORY = 700
"""Bytes of memory taken by one stored memory without its entries and its vector, as measured."""
_LONGEST = 65_535
_OWN = np.dtype([("code", "<u4"), ("count", "<u2"), ("mention", "u1"), ("subject", "u1")])


@dataclass(frozen=True)
class Rows:
    """Memories as they are stored, ords ascending, in parallel columns with one element per memory.

    ``places`` are (position, microseconds since 1970), which order a session before the id does. ``sizes`` is the
    number of ``entries`` of each memory. ``held`` are the ords that have a vector, ``vectors`` has one row for each of
    these.
    """

    turns: list[Turn]
    titles: list[str | None]
    places: list[tuple[int, int]]
    ords: NDArray[np.int64]
    lengths: NDArray[np.int64]
    sizes: NDArray[np.int64]
    entries: NDArray[Any]
    held: NDArray[np.int64]
    vectors: NDArray[np.float32]

    def without(self, gone: NDArray[np.int64]) -> Rows:
        """Return the rows without the ords ``gone``."""
        if not len(gone):
            return self
        stays, has = ~np.isin(self.ords, gone), ~np.isin(self.held, gone)
        rows = np.flatnonzero(stays).tolist()
        return Rows(
            [self.turns[row] for row in rows],
            [self.titles[row] for row in rows],
            [self.places[row] for row in rows],
            self.ords[stays],
            self.lengths[stays],
            self.sizes[stays],
            self.entries[np.repeat(stays, self.sizes)],
            self.held[has],
            self.vectors[has],
        )

    @classmethod
    def joined(cls, one: Rows, other: Rows) -> Rows:
        """Return the rows of both arguments, which have no ord in common, with ords ascending."""
        ords = np.concatenate([one.ords, other.ords])
        order = np.argsort(ords)
        sizes = np.concatenate([one.sizes, other.sizes])
        entries = np.concatenate([one.entries, other.entries])
        held = np.concatenate([one.held, other.held])
        by_ord = np.argsort(held)
        filled = [rows.vectors for rows in (one, other) if len(rows.held)]
        vectors = np.concatenate(filled)[by_ord] if filled else one.vectors

        def column(name: str) -> list[Any]:
            both = [*getattr(one, name), *getattr(other, name)]
            return [both[row] for row in order.tolist()]

        return cls(
            column("turns"),
            column("titles"),
            column("places"),
            ords[order],
            np.concatenate([one.lengths, other.lengths])[order],
            sizes[order],
            entries[runs((np.cumsum(sizes) - sizes)[order], sizes[order])],
            held[by_ord],
            vectors,
        )


class Block:
    """The postings of ``rows`` by key, and for each memory the places of its own entries."""

    def __init__(self, rows: Rows) -> None:
        self.turns, self.titles, self.places = rows.turns, rows.titles, rows.places
        self.ords, self.held, self.vectors = rows.ords, rows.held, rows.vectors
        self.lengths = rows.lengths
        self.starts = np.concatenate([[0], np.cumsum(rows.sizes)])  # where each memory's entries begin in ``own``
        owner = np.repeat(np.arange(len(rows.ords)), rows.sizes)
        order = np.argsort(rows.entries["key"], kind="stable")
        packed = np.zeros(len(order), dtype=POSTING)
        packed["ord"] = rows.ords[owner[order]]
        packed["length"] = np.minimum(rows.lengths, _LONGEST)[owner[order]]
        for name in ("count", "mention", "subject"):
            packed[name] = rows.entries[name][order]
        keys = rows.entries["key"][order]
        first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, dtype=np.int64)
        self.entries = packed
        self.keys: NDArray[np.int64] = keys[first].astype(np.int64)
        self.kinds: NDArray[np.uint8] = rows.entries["kind"][order][first]
        self.firsts = np.append(first, len(keys)).astype(np.int64)  # where each key's entries begin in ``entries``
        self.shared = np.flatnonzero(np.diff(self.firsts) > 1)  # the keys of several memories, as positions
        self.shared_keys = self.keys[self.shared]
        counted = np.concatenate([[0], np.cumsum(mentions(packed))])
        self.mentioned = counted[self.firsts[1:]] - counted[self.firsts[:-1]]
        codes = np.empty(len(order), dtype=np.uint32)
        codes[order] = np.repeat(np.arange(len(first), dtype=np.uint32), np.diff(self.firsts))
        self.own = np.zeros(len(order), dtype=_OWN)  # the entries of one memory after the other
        self.own["code"] = codes
        for name in ("count", "mention", "subject"):
            self.own[name] = rows.entries[name]

    @property
    def size(self) -> int:
        """Return the approximate number of bytes that the block takes."""
        arrays = (self.entries, self.own, self.keys, self.firsts, self.mentioned, self.kinds, self.vectors)
        shared = self.shared.nbytes + self.shared_keys.nbytes
        return sum(array.nbytes for array in arrays) + shared + PER_MEMORY * len(self.ords)

    @property
    def rows(self) -> Rows:
        """Return the memories that the block was built from."""
        entries = self._forward(slice(None))
        sizes = np.diff(self.starts)
        places = self.turns, self.titles, self.places
        return Rows(*places, self.ords, self.lengths, sizes, entries, self.held, self.vectors)

    @cached_property
    def by_session(self) -> dict[str, list[int]]:
        """Return the positions of the memories of each session; memories without a session are left out."""
        found: dict[str, list[int]] = {}
        for at, turn in enumerate(self.turns):
            if turn.session is not None:
                found.setdefault(turn.session, []).append(at)
        return found

    @cached_property
    def by_author(self) -> dict[str, list[int]]:
        """Return the positions of the memories of each author, by author key."""
        found: dict[str, list[int]] = {}
        for at, turn in enumerate(self.turns):
            if turn.author is not None and (key := _author_key(turn.author)):
                found.setdefault(key, []).append(at)
        return found

    @cached_property
    def _by_id(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for turn in self.turns:
            found.setdefault(turn.id, []).append(turn.ord)
        return found

    def ords_of(self, ids: Collection[str]) -> NDArray[np.int64]:
        """Return the ords of the memories with these ids, ascending, parts included."""
        held = self._by_id if ids else {}
        return np.array(sorted(ord for id in ids for ord in held.get(id, ())), dtype=np.int64)

    def _forward(self, which: NDArray[np.int64] | slice) -> NDArray[Any]:
        """Return the entries at some places of ``own``."""
        held = self.own[which]
        found = np.zeros(len(held), dtype=FORWARD)
        found["key"], found["kind"] = self.keys[held["code"]], self.kinds[held["code"]]
        for name in ("count", "mention", "subject"):
            found[name] = held[name]
        return found

    @cached_property
    def heads(self) -> dict[int, Head]:
        """The heads of memories by position, filled as they are asked for."""
        return {}

    def places_of(self, ords: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of those of ``ords`` that the block holds, in the order of ``ords``."""
        if not len(self.ords):
            return np.zeros(0, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.ords, ords), len(self.ords) - 1)
        found: NDArray[np.int64] = at[self.ords[at] == ords]
        return found

    def forwards(self, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return (ords, sizes, entries) of the memories at some positions."""
        sizes = self.starts[at + 1] - self.starts[at]
        return self.ords[at], sizes, self._forward(runs(self.starts[at], sizes))

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which of ``keys`` the block holds, and the position of each; meaningless where it is not held."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.keys[at] == keys, at

    def find_shared(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return what ``find`` does, of the keys that several memories have; a tenth of all is looked through."""
        if not len(self.shared):
            return np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.shared_keys, keys), len(self.shared) - 1)
        return self.shared_keys[at] == keys, self.shared[at]

    def sizes(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of entries of the keys at some positions."""
        found: NDArray[np.int64] = self.firsts[at + 1] - self.firsts[at]
        return found

    def vectors_of(self, ords: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of ``ords`` that have a vector, and the vectors."""
        if not len(self.held):
            return ords[:0], self.vectors[:0]
        at = np.minimum(np.searchsorted(self.held, ords), len(self.held) - 1)
        at = at[self.held[at] == ords]
        return self.held[at], self.vectors[at]


@lru_cache(10_000)
def _author_key(author: str) -> str:
    return author_key(author)


def ascending(numbers: Collection[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers ascending without repeats; an array that is sorted already is returned unchanged."""
    if not isinstance(numbers, np.ndarray):
        return np.unique(np.fromiter(numbers, np.int64, len(numbers)))
    if len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all()):
        return numbers
    return np.unique(numbers)


def runs(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from each start on, as many as its size says, one run after the other."""
    whole = int(sizes.sum())
    if not whole:
        return np.zeros(0, dtype=np.int64)
    before = np.cumsum(sizes) - sizes
    found: NDArray[np.int64] = np.arange(whole) + np.repeat(starts - before, sizes)
    return found
