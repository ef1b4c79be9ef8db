"""Sums by row id, and membership among ascending numbers; for few numbers faster than numpy's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["held", "sums"]

_DENSE_RANGE = 8
"""Values are summed in an array over all row ids where its length is at most this multiple of the values."""


def sums(
    row_ids: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return distinct ``row_ids``, ascending, and of each the sum of its ``values`` and how many these are."""
    import numpy as np

    if not len(row_ids):
        return row_ids, np.zeros(0), np.zeros(0, dtype=np.int64)
    low, high = int(row_ids.min()), int(row_ids.max())
    if high - low < _DENSE_RANGE * len(row_ids) + 1024:
        slot = row_ids - low
        counts = np.bincount(slot)
        kept = np.flatnonzero(counts)
        return kept + low, np.bincount(slot, weights=values)[kept].astype(np.float64, copy=False), counts[kept]
    where, slot, counts = np.unique(row_ids, return_inverse=True, return_counts=True)
    return where, np.bincount(slot, weights=values).astype(np.float64, copy=False), counts


def held(ascending: NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of ``numbers`` are among ``ascending`` ones."""
    import numpy as np

    if not len(ascending):
        return np.zeros(len(numbers), dtype=bool)
    found: NDArray[np.bool_] = ascending[np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)] == numbers
    return found
