"""Arrays without numpy's slow ways: records copied as bytes, sums by number, membership, runs, groups by id.

numpy copies the records of a structured array one field after the other: 6,000 of twelve bytes take 180 us by an index,
90 by a mask and 60 to be joined with others, where their bytes take 4 to 9; see adr/0124. Sums and membership take less
time here for few numbers; see adr/0091.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Groups",
    "chosen",
    "concatenated",
    "groups_without",
    "held",
    "lookup",
    "merged_groups",
    "new_runs",
    "runs",
    "sums",
]

Groups: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]"
"""(ids, sizes, records): ids ascending, the number of records of each id, and the records of one id after the other."""

_FEW = 500
"""Up to so many values are sorted, whatever their numbers: that takes less than looking for the ends of their range."""
_DENSE_RANGE = 8
"""Values are summed in an array over all numbers where its length is at most this multiple of the values."""


def chosen(records: NDArray[Any], which: NDArray[np.integer[Any]] | NDArray[np.bool_] | slice) -> NDArray[Any]:
    """Return ``records[which]``, for positions, a mask or a slice."""
    if isinstance(which, slice):
        return records[which]
    return records.compress(which) if which.dtype.kind == "b" else records.take(which)


def concatenated(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays of records of one kind as one array."""
    import numpy as np

    kind = parts[0].dtype
    return np.concatenate([part.view(f"V{kind.itemsize}") for part in parts]).view(kind)


def sums(
    row_ids: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return distinct ``row_ids``, ascending, and of each the sum of its ``values`` and how many these are."""
    import numpy as np

    if not len(row_ids):
        return row_ids, np.zeros(0), np.zeros(0, dtype=np.int64)
    if len(row_ids) > _FEW and (low := int(row_ids.min())) + _DENSE_RANGE * len(row_ids) > int(row_ids.max()):
        slot = row_ids - low
        counts = np.bincount(slot)
        (kept,) = counts.nonzero()
        return kept + low, np.bincount(slot, weights=values)[kept].astype(np.float64, copy=False), counts[kept]
    order = row_ids.argsort(kind="stable")
    ordered = row_ids[order]
    begins = new_runs(ordered)
    slot = np.empty(len(order), dtype=np.int64)
    slot[order] = begins.cumsum() - 1
    return ordered[begins], np.bincount(slot, weights=values).astype(np.float64, copy=False), np.bincount(slot)


def new_runs(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of sorted numbers differ from the one before; the first does."""
    import numpy as np

    begins = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins


def lookup(ascending: NDArray[Any], numbers: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which of ``numbers`` are among ``ascending`` ones, and the place of each there; meaningless where not."""
    import numpy as np

    if not len(ascending):
        return np.zeros(len(numbers), dtype=bool), np.zeros(len(numbers), dtype=np.int64)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return ascending[places] == numbers, places


def held(ascending: NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of ``numbers`` are among ``ascending`` ones."""
    return lookup(ascending, numbers)[0]


def runs(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from each start on, as many as its size says, one run after the other."""
    import numpy as np

    whole = int(sizes.sum())
    if not whole:
        return np.zeros(0, dtype=np.int64)
    before = sizes.cumsum() - sizes
    numbers: NDArray[np.int64] = np.arange(whole) + (starts - before).repeat(sizes)
    return numbers


def merged_groups(one: Groups, other: Groups) -> Groups:
    """Return the groups of two, which have no id in common, as one, ids ascending."""
    import numpy as np

    ids, sizes = np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])
    order, starts = np.argsort(ids), np.cumsum(sizes) - sizes
    return ids[order], sizes[order], chosen(concatenated([one[2], other[2]]), runs(starts[order], sizes[order]))


def groups_without(groups: Groups, gone: NDArray[Any]) -> Groups:
    """Return ``groups`` without those of the ids ``gone``, which are ascending."""
    ids, sizes, records = groups
    stays = ~held(gone, ids)
    return ids[stays], sizes[stays], chosen(records, stays.repeat(sizes))
