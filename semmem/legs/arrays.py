"""Sums by row id, and membership among ascending numbers; for few numbers faster than numpy's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["held", "new_runs", "sums"]

_FEW = 500
"""Up to so many values are sorted, whatever their row ids: that takes less than looking for the ends of their range."""
_DENSE_RANGE = 8
"""Values are summed in an array over all row ids where its length is at most this multiple of the values."""


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


def held(ascending: NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of ``numbers`` are among ``ascending`` ones."""
    import numpy as np

    if not len(ascending):
        return np.zeros(len(numbers), dtype=bool)
    found: NDArray[np.bool_] = ascending[np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)] == numbers
    return found
