"""Keep which memories filters admit, while the namespace stays as it was.

A server reads every row that a wide filter admits, which takes longer than all of the recall that follows. Most callers
ask with the same few filters again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semmem.model.types import Filters

__all__ = ["Admitted", "Known"]

_NONE = np.zeros(0, dtype=np.int64)


class Known(NamedTuple):
    """The ords that filters admit in a namespace, ascending, and its state in which they do.

    ``place`` identifies the history of the state, within which ``revision`` counts every change; None: not known.
    """

    place: str | None = None
    revision: int = 0
    changes: int = 0
    segments: int = 0
    ords: NDArray[np.int64] = _NONE


_LEAST = 1_000
"""Fewer ords are read faster than in a millisecond, so they are not kept."""
_NOTHING = Known()


class Admitted:
    """The ords that filters admit, by namespace and filters, at most ``budget`` bytes. Safe to use from any thread."""

    def __init__(self, budget: int = 0) -> None:
        self.budget = budget
        self._entries: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def of(self, namespaces: Sequence[str], filters: Filters) -> dict[str, Known]:
        """Return what is known of each namespace, in this order."""
        if not (self.budget and filters):
            return dict.fromkeys(namespaces, _NOTHING)
        which = repr(filters)
        with self._lock:
            return {n: self._entries.get((n, which), _NOTHING) for n in namespaces}

    def keep(self, filters: Filters, known: Mapping[str, Known]) -> None:
        """Keep what a recall has learned; what was asked longest ago makes room."""
        if not (self.budget and filters):
            return
        which = repr(filters)
        with self._lock:
            for namespace, one in known.items():
                self._size -= self._entries.pop((namespace, which), _NOTHING).ords.nbytes
                if one.place is not None and len(one.ords) >= _LEAST and one.ords.nbytes <= self.budget:
                    self._entries[namespace, which] = one
                    self._size += one.ords.nbytes
            while self._size > self.budget:
                self._size -= self._entries.popitem(last=False)[1].ords.nbytes

    def clear(self) -> None:
        """Keep nothing, now and later."""
        with self._lock:
            self.budget = self._size = 0
            self._entries.clear()
