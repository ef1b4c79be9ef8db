"""Keep which memories filters match, while the namespace stays as it was.

A server reads every row that a wide filter matches, which takes longer than all of the recall that follows. Most
callers ask with the same few filters again.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semmem.model.memory_fields import FILTERS
from semmem.model.process.forks import Lock
from semmem.model.types import Filters

__all__ = ["FilterMatches", "Known"]

_NONE = np.zeros(0, dtype=np.int64)


class Known(NamedTuple):
    """The row ids that filters match in a namespace, ascending, and its state in which they do.

    ``place`` identifies the history of the state, within which ``changes`` counts what came and went; None: not known.
    """

    place: str | None = None
    changes: int = 0
    row_ids: NDArray[np.int64] = _NONE


_LEAST = 1_000
"""Fewer row ids are read faster than in a millisecond, so they are not kept."""
_ENTRY = 500
"""About what an entry takes beside its row ids, in bytes."""
_NOTHING = Known()


class FilterMatches:
    """The row ids that filters match, by namespace and filters, in about ``budget`` bytes. Safe for all threads."""

    def __init__(self, budget: int = 0) -> None:
        self.budget = budget
        self._entries: OrderedDict[tuple[str, bytes], Known] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def of(self, namespaces: Sequence[str], filters: Filters) -> dict[str, Known]:
        """Return what is known of each namespace."""
        if not (self.budget and filters):
            return dict.fromkeys(namespaces, _NOTHING)
        which = _digest(filters)
        return {n: self._entries.get((n, which), _NOTHING) for n in namespaces}  # a fork may leave the lock locked

    def keep(self, filters: Filters, known: Mapping[str, Known]) -> None:
        """Keep what a recall has learned; what was asked longest ago makes room."""
        if not (self.budget and filters):
            return
        which = _digest(filters)
        with self._lock:
            for namespace, one in known.items():
                if (before := self._entries.pop((namespace, which), None)) is not None:
                    self._size -= _size(before)
                if one.place is not None and len(one.row_ids) >= _LEAST and _size(one) <= self.budget:
                    self._entries[namespace, which] = one
                    self._size += _size(one)
            while self._size > self.budget:
                self._size -= _size(self._entries.popitem(last=False)[1])

    def clear(self) -> None:
        """Keep nothing, now and later."""
        with self._lock:
            self.budget = self._size = 0
            self._entries.clear()


def _size(known: Known) -> int:
    return known.row_ids.nbytes + _ENTRY


def _digest(filters: Filters) -> bytes:
    """Return what equal filters have in common: what is sent, as values of other types may look like one another."""
    sent = json.dumps({name: _sent(getattr(filters, name)) for name in FILTERS}, sort_keys=True)
    return hashlib.blake2b(sent.encode(), digest_size=16).digest()


def _sent(value: object) -> object:
    if isinstance(value, datetime):
        return str(value.replace(tzinfo=None)), str(value.utcoffset())  # in UTC a year may end
    return dict(value) if isinstance(value, Mapping) else value
