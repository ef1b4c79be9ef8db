"""Pack postings into bytes for every store: one row per key and segment, with columns of fixed width."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from semmem.model.arrays import Groups, chosen, concatenated
from semmem.model.errors import StoreError
from semmem.model.exchange import Extraction, Kind

__all__ = [
    "CANDIDATE",
    "FIRST_EARLIER",
    "FORWARD",
    "OWNED_CANDIDATE",
    "POSTING",
    "WEIGHT_UNIT",
    "Segments",
    "ascending",
    "candidates",
    "cut",
    "forward_entries",
    "in_order",
    "invert",
    "mentions",
    "merged",
    "pending_keys",
    "unpack_candidates",
    "unpack_forwards",
    "unpack_postings",
    "without_numbers",
]

FORWARD = np.dtype(
    [("key", "<i8"), ("count", "<u2"), ("mention", "u1"), ("subject", "u1"), ("kind", "u1"), ("pad", "V3")]
)

CANDIDATE = np.dtype([("key", "<i8"), ("place", "<u2")])
"""A run of words that may be a name; a store keeps those of a memory beside its forward entries."""

POSTING = np.dtype(
    [("ord", "<u4"), ("count", "<u2"), ("length", "<u2"), ("mention", "u1"), ("subject", "u1"), ("pad", "V2")]
)

OWNED_CANDIDATE = np.dtype([("ord", "<i8"), ("key", "<i8"), ("place", "<u2")])
"""A candidate with the memory that it stands in."""

WEIGHT_UNIT = 100
"""One byte holds a mention or subject weight in hundredths."""

FIRST_EARLIER = (1 << 32) - (1 << 16)
"""From here on row ids belong to no memory: they number the earlier versions that one recall looks at."""

_LARGEST = 65_535


class Segments(NamedTuple):
    """The postings of many keys within one batch, keys ascending, as columns with one element per key.

    ``n`` is how many memories mention a key, which is its part of df, ``subjects`` how many are about it, and ``lows``
    and ``highs`` are the least and the greatest row id. ``sizes`` are how many entries each key has, ``entries`` those
    of all, one key after the other.
    """

    keys: NDArray[np.int64]
    kinds: NDArray[Any]
    n: NDArray[Any]
    subjects: NDArray[Any]
    lows: NDArray[Any]
    highs: NDArray[Any]
    names: list[str]
    sizes: NDArray[np.int64]
    entries: bytes

    def packed(self) -> list[bytes]:
        """Return the entries of each key."""
        ends = np.cumsum(self.sizes) * POSTING.itemsize
        starts = ends - self.sizes * POSTING.itemsize
        return [self.entries[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def ascending(numbers: Collection[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers ascending without repeats; an array that is sorted already is returned unchanged."""
    if not isinstance(numbers, np.ndarray):
        distinct = set(numbers)  # np.unique would load numpy.ma
        return np.sort(np.fromiter(distinct, np.int64, len(distinct)))
    if len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all()):
        return numbers
    ordered: NDArray[np.int64] = np.sort(numbers)  # a third of the time of np.unique
    distinct_numbers: NDArray[np.int64] = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return distinct_numbers


def cut(values: NDArray[Any]) -> list[bytes]:
    """Return the bytes of each element of an array."""
    raw, width = values.tobytes(), values.dtype.itemsize
    return [raw[start : start + width] for start in range(0, len(raw), width)]


def mentions(entries: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries count for df: those that mention the key, and not those that are only about it."""
    mask: NDArray[np.bool_] = (entries["mention"] > 0) | (entries["count"] > 0)
    return mask


def forward_entries(extractions: Sequence[Extraction]) -> NDArray[Any]:
    """Return the forward entries of many memories in one array, one memory after the other."""
    size = sum(len(e.keys) for e in extractions)
    out = np.zeros(size, dtype=FORWARD)

    def column(name: str, dtype: type) -> NDArray[Any]:
        return np.fromiter(itertools.chain.from_iterable(getattr(e, name) for e in extractions), dtype, size)

    out["key"] = column("keys", np.int64)
    out["kind"] = column("kinds", np.uint8)
    out["count"] = np.minimum(column("counts", np.int64), _LARGEST)
    out["mention"] = np.rint(column("mentions", np.float64) * WEIGHT_UNIT)
    out["subject"] = np.rint(column("subjects", np.float64) * WEIGHT_UNIT)
    return out


def candidates(extraction: Extraction) -> bytes:
    """Return the candidates of a memory as a store keeps them."""
    return np.array(list(extraction.candidates), dtype=CANDIDATE).tobytes()


def unpack_candidates(row_ids: NDArray[np.int64], sizes: NDArray[np.int64], raw: bytes) -> NDArray[Any]:
    """Return (row id, key, place) of candidates, of which each of ``row_ids`` has so many; see Forwards."""
    packed = np.frombuffer(raw, dtype=CANDIDATE)
    out = np.empty(len(packed), dtype=OWNED_CANDIDATE)
    out["ord"] = np.repeat(row_ids, sizes)
    out["key"], out["place"] = packed["key"], packed["place"]
    return out


def merged(passages: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Merge the entries of a memory's passages: keys ascending, counts added, the largest weights kept."""
    every = concatenated(passages) if passages else np.zeros(0, dtype=FORWARD)
    keys, first, owner = np.unique(every["key"], return_index=True, return_inverse=True)
    out = every[first]
    counts = np.bincount(owner, weights=every["count"], minlength=len(keys))
    out["count"] = np.minimum(counts, _LARGEST)
    for name in ("mention", "subject"):
        most = np.zeros(len(keys), dtype=np.uint8)
        np.maximum.at(most, owner, every[name])
        out[name] = most
    return out


def unpack_forwards(
    heads: bytes, raw: bytes, runs: bytes
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any], NDArray[Any]]:
    """Return row ids, sizes, forward entries and candidates (see Forwards), as SQL packed them.

    ``heads`` are (row id, length of its entries, length of its candidates), ``raw`` and ``runs`` one run of each.
    """
    triples = np.frombuffer(heads, dtype=">i8").astype(np.int64).reshape(-1, 3)
    row_ids, sizes = triples[:, 0], triples[:, 1] // FORWARD.itemsize
    candidates = unpack_candidates(row_ids, triples[:, 2] // CANDIDATE.itemsize, runs)
    return row_ids, sizes, np.frombuffer(raw, dtype=FORWARD), candidates


def unpack_postings(
    heads: bytes, raw: bytes, pending: Sequence[tuple[int, int, bytes]], keys: NDArray[np.int64], max_df: int
) -> Groups:
    """Return the postings of ``keys`` that at most ``max_df`` memories mention.

    ``heads`` are (key, n, length in bytes) of segments and ``raw`` holds their entries; a segment with more than
    ``max_df`` mentions has no entries there. ``pending`` are (row id, length, packed forward entries) of memories not
    yet in a segment.
    """
    triples = np.frombuffer(heads, dtype=">i8").astype(np.int64).reshape(-1, 3)
    owner = np.repeat(triples[:, 0], triples[:, 2] // POSTING.itemsize)
    segment_keys, mentioned = triples[:, 0], triples[:, 1]
    if pending:
        added_keys, added = _pending_entries(pending, keys)
        raw += added.tobytes()
        owner = np.concatenate([owner, added_keys])
        segment_keys = np.concatenate([segment_keys, added_keys])
        mentioned = np.concatenate([mentioned, mentions(added).astype(np.int64)])
    entries = np.frombuffer(raw, dtype=POSTING)
    distinct, slot = np.unique(segment_keys, return_inverse=True)
    few = distinct[np.bincount(slot, weights=mentioned, minlength=len(distinct)) <= max_df]
    places = np.searchsorted(few, owner)
    mask = (
        (places < len(few)) & (few[np.minimum(places, max(len(few) - 1, 0))] == owner)
        if len(few)
        else np.zeros(len(owner), bool)
    )
    entries, owner = chosen(entries, mask), owner[mask]
    order = in_order(owner, entries["ord"])
    entries, owner = chosen(entries, order), owner[order]
    ids, sizes = np.unique(owner, return_counts=True)
    return ids, sizes.astype(np.int64), entries


def in_order(owner: NDArray[np.int64], row_ids: NDArray[Any]) -> NDArray[np.int64] | slice:
    """Return the index that sorts entries by key (``owner``), and by memory (``row_ids``) within a key.

    The sum of floats depends on the order of its terms. Without a fixed order the last digits of a score would depend
    on the plan of a query and on which memories are flushed.
    """
    later = owner[1:] > owner[:-1]
    if (later | ((owner[1:] == owner[:-1]) & (row_ids[1:] > row_ids[:-1]))).all():
        return slice(None)
    order: NDArray[np.int64] = np.lexsort((row_ids, owner))
    return order


def pending_keys(pending: Sequence[tuple[int, int, bytes]], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those of ``keys`` that some pending memory has."""
    entries = np.frombuffer(b"".join(raw for _, _, raw in pending), dtype=FORWARD)
    return np.intersect1d(entries["key"], keys)


def _pending_entries(
    pending: Sequence[tuple[int, int, bytes]], keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    sizes = [len(raw) // FORWARD.itemsize for _, _, raw in pending]
    entries = np.frombuffer(b"".join(raw for _, _, raw in pending), dtype=FORWARD)
    mask = np.isin(entries["key"], keys)
    added = np.zeros(int(mask.sum()), dtype=POSTING)
    added["ord"] = np.repeat([row_id for row_id, _, _ in pending], sizes)[mask]
    added["length"] = np.repeat(np.minimum([length for _, length, _ in pending], _LARGEST), sizes)[mask]
    for field in ("count", "mention", "subject"):
        added[field] = entries[field][mask]
    return entries["key"][mask].astype(np.int64), added


def invert(
    row_ids: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    entries: NDArray[Any],
    names: Sequence[str],
) -> Segments:
    """Invert the forward entries of many memories into one segment per key, keys ascending.

    ``row_ids``, ``lengths`` and ``sizes`` (the number of entries) have one element per memory; ``entries`` and
    ``names`` have one per entry. A key gets the name that most of its entries have.
    """
    owner = np.repeat(np.arange(len(row_ids)), sizes)
    order = np.lexsort((row_ids[owner], entries["key"]))
    entries, owner = entries[order], owner[order]
    packed = np.zeros(len(entries), dtype=POSTING)
    packed["ord"] = row_ids[owner]
    packed["length"] = np.minimum(lengths[owner], _LARGEST)
    for field in ("count", "mention", "subject"):
        packed[field] = entries[field]
    keys = entries["key"]
    starts = np.flatnonzero(np.r_[len(keys) > 0, keys[1:] != keys[:-1]])  # none where all is punctuation, as an emoji
    ends = np.r_[starts[1:], len(keys)][: len(starts)]
    kinds = entries["kind"][starts]
    firsts = order[starts].tolist()
    labels = [names[first] for first in firsts]
    several = (kinds == Kind.NAME) & (ends - starts > 1)  # stems are all alike
    for index in np.flatnonzero(several).tolist():  # as most of these memories write it
        written = order[starts[index] : ends[index]].tolist()
        labels[index] = Counter(names[place] for place in written).most_common(1)[0][0]
    return Segments(
        keys[starts].astype(np.int64),
        kinds,
        np.add.reduceat(mentions(entries).astype(np.int64), starts) if len(starts) else starts,
        np.add.reduceat((entries["subject"] > 0).astype(np.int64), starts) if len(starts) else starts,
        packed["ord"][starts],
        packed["ord"][ends - 1],
        labels,
        (ends - starts).astype(np.int64),
        packed.tobytes(),
    )


def without_numbers(namespace: str) -> StoreError:
    """Return the error for a namespace that has used up all row ids a posting can hold."""
    return StoreError(
        f"The namespace {namespace!r} has given out all of its 4,294,901,760 numbers; export it, and import it into "
        "another one."
    )
