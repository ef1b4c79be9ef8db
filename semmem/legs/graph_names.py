"""Read the names of one namespace: people's corrections are applied, and candidates of a text recognised as names.

A store keeps what stands in each memory, which depends on that memory alone. Here a name that was merged into another
is read as that one, and a run of words that may be a name counts as a mention where some memory is about it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.concepts.names import MAX_NAME
from semmem.concepts.rules import NAME_WEIGHT
from semmem.model.arrays import chosen, concatenated, held, merged_groups, new_runs
from semmem.model.exchange import Corrections, Forwards, Kind, Postings, RowIds
from semmem.model.store import Snapshot

__all__ = ["Names", "longest_at", "mentioned", "recognised"]

_WEIGHT_UNIT = 100
"""Forward entries store weights in hundredths."""
_STRETCH = 1 << 17
"""More than the place behind any candidate of a memory, which has 16 bits."""


class Names:
    """The postings and forward entries of a namespace as its ``corrections`` have them."""

    def __init__(self, snapshot: Snapshot, namespace: str, corrections: Corrections) -> None:
        self._snapshot, self._namespace = snapshot, namespace
        self.corrections = corrections
        into = self.corrections.into
        self._merged = np.array(sorted(into), dtype=np.int64)
        self._targets = np.array([into[key][0] for key in sorted(into)], dtype=np.int64)

    def postings(
        self,
        keys: Collection[int] | NDArray[np.int64],
        *,
        max_df: int | None = None,
        shared: bool = False,
        pending: Collection[int] = (),
    ) -> Postings:
        """Return the postings of ``keys``; see Snapshot. Those of a name hold those of all merged into it."""
        if not len(self._merged):
            return self._read(keys, max_df, shared, pending)
        asked = np.unique(self._read_as(np.fromiter(keys, np.int64, len(keys))))
        joined = np.intersect1d(asked, self._targets)
        plain = self._read(np.setdiff1d(asked, joined), max_df, shared, pending)
        if not len(joined):
            return plain
        forms = np.union1d(joined, self._merged[np.isin(self._targets, joined)])
        whole = self._joined(self._read(forms), max_df)
        groups = ((one.keys, one.sizes, one.entries) for one in (plain, whole))
        keys, sizes, entries = merged_groups(*groups)
        return replace(plain, keys=keys, sizes=sizes, entries=entries)

    def _read(
        self, keys: RowIds, max_df: int | None = None, shared: bool = False, pending: Collection[int] = ()
    ) -> Postings:
        """Return the postings of ``keys`` as they are stored."""
        if shared:
            return self._snapshot.shared_postings(self._namespace, keys, max_df, pending)
        (postings,) = self._snapshot.postings(self._namespace, (keys, max_df))
        return postings

    def postings_of(self, *lookups: tuple[Collection[int], int | None]) -> Sequence[Postings]:
        """Return the result of ``postings`` for each (keys, max_df), without corrections in one round trip."""
        if len(self._merged):
            return [self.postings(keys, max_df=max_df) for keys, max_df in lookups]
        return self._snapshot.postings(self._namespace, *lookups)

    def forwards(self, row_ids: RowIds) -> Forwards:
        """Return the forward entries and candidates of each memory."""
        return self.forwards_and_neighbours(row_ids, neighbours=False)[0]

    def forwards_and_neighbours(
        self, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return forward entries, neighbours if asked for, and the keys of pending memories; see Snapshot.forwards."""
        forwards, beside, pending = self._snapshot.forwards(
            self._namespace, row_ids, neighbours=neighbours, shared=shared and not len(self._merged)
        )
        return self._corrected(forwards), beside, self._read_as(pending) if len(pending) else pending

    def shared_concepts(
        self, row_ids: RowIds, max_df: int, *, neighbours: bool
    ) -> tuple[Forwards, Postings, Sequence[tuple[int, int, bool]]] | None:
        """Return what the snapshot has by itself of the concepts that memories share; None where names are merged."""
        if len(self._merged):
            return None
        return self._snapshot.shared_concepts(self._namespace, row_ids, max_df, neighbours=neighbours)

    def relationships(self, keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, key of a related concept), each once, none of a concept with itself."""
        key = self.corrections.key
        pairs = self._snapshot.relationships(self._namespace, self.corrections.forms(keys), limit)
        return sorted({(key(one), key(other)) for one, other in pairs if key(one) != key(other)})

    def subject_names(self, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return (row id, key, weight in hundredths, spelling) for the names that memories are about."""
        into = self.corrections.into
        rows = self._snapshot.subject_names(self._namespace, row_ids)
        return [
            (row_id, *((into[key][0], weight, into[key][1]) if key in into else (key, weight, label)))
            for row_id, key, weight, label in rows
        ]

    def _read_as(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the key that each of ``keys`` is merged into, itself where it is not merged."""
        places = np.minimum(np.searchsorted(self._merged, keys), len(self._merged) - 1)
        return np.where(self._merged[places] == keys, self._targets[places], keys) if len(self._merged) else keys

    def _joined(self, postings: Postings, max_df: int | None) -> Postings:
        """Return postings of merged names under the names they are merged into, one entry a memory."""
        owner = self._read_as(np.repeat(postings.keys, postings.sizes))
        keys, _, entries = _one_each(owner, postings.entries["ord"].astype(np.int64), postings.entries)
        by, sizes = np.unique(keys, return_counts=True)
        if max_df is not None:
            df = np.bincount(np.searchsorted(by, keys), weights=entries["mention"] > 0, minlength=len(by))
            stays = df <= max_df
            entries = chosen(entries, stays[np.searchsorted(by, keys)])
            by, sizes = by[stays], sizes[stays]
        return replace(postings, keys=by, sizes=sizes.astype(np.int64), entries=entries)

    def _corrected(self, forwards: Forwards) -> Forwards:
        if not held(self._merged, forwards.entries["key"]).any():
            return self._candidates_corrected(forwards)
        entries = forwards.entries.copy()
        entries["key"] = self._read_as(entries["key"].astype(np.int64))
        owner = np.repeat(np.arange(len(forwards.row_ids)), forwards.sizes)
        owners, _, entries = _one_each(owner, entries["key"].astype(np.int64), entries)
        sizes = np.bincount(owners, minlength=len(forwards.row_ids)).astype(np.int64)
        return self._candidates_corrected(replace(forwards, sizes=sizes, entries=entries))

    def _candidates_corrected(self, forwards: Forwards) -> Forwards:
        if forwards.candidates is None or not len(self._merged):
            return forwards
        candidates = forwards.candidates.copy()
        candidates["key"] = self._read_as(candidates["key"].astype(np.int64))
        return replace(forwards, candidates=candidates)


def _one_each(
    first: NDArray[np.int64], second: NDArray[np.int64], entries: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Return entries in the order of (first, second), and these; of equal ones the largest weights are kept."""
    order = np.lexsort((second, first))
    first, second, entries = first[order], second[order], chosen(entries, order)
    if not len(order):
        return first, second, entries
    (starts,) = (new_runs(first) | new_runs(second)).nonzero()
    out = chosen(entries, starts)
    for name in ("mention", "subject", "count"):
        out[name] = np.maximum.reduceat(entries[name], starts)
    return first[starts], second[starts], out


def mentioned(forwards: Forwards, *, candidates: bool = True) -> NDArray[np.int64]:
    """Return the keys that memories mention, with ``candidates`` also those that they may mention."""
    keys: NDArray[np.int64] = forwards.entries["key"][forwards.entries["mention"] > 0]
    return keys if forwards.candidates is None or not candidates else np.concatenate([keys, forwards.candidates["key"]])


def recognised(forwards: Forwards, postings: Postings) -> Forwards:
    """Return ``forwards`` with the candidates that are names as mentions: the longest at each place.

    A candidate is a name where one of ``postings`` is a subject.
    """
    candidates = forwards.candidates
    if candidates is None or not len(candidates) or not len(postings.keys):
        return forwards
    slot = np.arange(len(postings.keys)).repeat(postings.sizes)
    known = postings.keys[np.bincount(slot, weights=postings.entries["subject"] > 0, minlength=len(postings.keys)) > 0]
    hits = chosen(candidates, held(known, candidates["key"]))
    if not len(hits):
        return forwards
    owner = np.searchsorted(forwards.row_ids, hits["ord"])
    # as if the memories were one text, each in a stretch of its own
    longest = longest_at(owner * _STRETCH + hits["place"])
    added = np.zeros(len(longest), dtype=forwards.entries.dtype)
    added["key"], added["kind"] = hits["key"][longest], int(Kind.NAME)
    added["mention"] = round(_WEIGHT_UNIT * NAME_WEIGHT)
    owner = np.concatenate([np.arange(len(forwards.row_ids)).repeat(forwards.sizes), owner[longest]])
    every = concatenated([forwards.entries, added])
    owners, _, entries = _one_each(owner, every["key"].astype(np.int64), every)
    sizes = np.bincount(owners, minlength=len(forwards.row_ids)).astype(np.int64)
    return replace(forwards, sizes=sizes, entries=entries)


def longest_at(places: NDArray[np.int64]) -> list[int]:
    """Return the positions in ``places`` of what ``concepts.names.longest`` yields where all runs are known."""
    if not len(places):
        return []
    firsts = places // MAX_NAME
    last = np.append(new_runs(firsts).nonzero()[0][1:], len(firsts)) - 1
    chosen: list[int] = []
    free = -1
    columns = (last, firsts[last], places[last] % MAX_NAME)
    for position, first, size in zip(*(column.tolist() for column in columns), strict=True):
        if first >= free:
            chosen.append(position)
            free = first + size + 1
    return chosen
