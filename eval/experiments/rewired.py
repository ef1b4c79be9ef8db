"""A random graph of like degrees, for the graph leg alone: the control that asks whether the edges mean anything.

Every memory takes the place that another one has in the graph: its concepts, its neighbours, what names it. The
places are dealt by chance among memories with about as many concepts, so the graph keeps its shape and each memory
about its degree, and what is tied is no longer what belongs together (Krackhardt 1988 calls the test that permutes
nodes QAP). Words and vectors stay where they are: the other legs, the gate and the authors are those of the real
store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.legs.graph import Graph
from semmem.model.exchange import Forwards, Postings

__all__ = ["Rewired", "dealt", "rewired"]

BIN = 10
"""Memories among which places are dealt, next to one another in the order of their degrees."""
_PAGE = 1_000


def dealt(degrees: Sequence[int], seed: int) -> NDArray[np.intp]:
    """Return which place each memory takes: a permutation without fixed points where there are two memories or more."""
    count = len(degrees)
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(count)
    order = shuffled[np.argsort(np.asarray(degrees)[shuffled], kind="stable")]
    takes = np.arange(count)
    starts = list(range(0, count, BIN)) or [0]
    if len(starts) > 1 and count - starts[-1] < 2:
        starts.pop()  # one memory alone could only keep its place
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        mixed = rng.permutation(order[start:end])
        takes[mixed] = np.roll(mixed, 1)
    return takes


class Rewired:
    """A store as the graph leg sees it, with the memories' places in the graph dealt anew; all else is passed on."""

    def __init__(self, store: Any, seed: int) -> None:
        self._store, self._seed = store, seed
        self._places: dict[str, tuple[dict[int, int], dict[int, int]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def forwards(self, namespaces: Sequence[str], ords: Sequence[int]) -> Forwards:
        """Return what each memory's place holds."""
        there, here = self._dealt(namespaces)
        found = self._store.forwards(namespaces, sorted(there[int(ord)] for ord in ords if int(ord) in there))
        ends = found.sizes.cumsum()
        pieces = {
            here[ord]: found.entries[end - size : end]
            for ord, size, end in zip(found.ords.tolist(), found.sizes.tolist(), ends.tolist(), strict=True)
        }
        order = sorted(pieces)
        return Forwards(
            np.array(order, dtype=np.int64),
            np.array([len(pieces[ord]) for ord in order], dtype=np.int64),
            np.concatenate([pieces[ord] for ord in order]) if order else found.entries[:0],
        )

    def postings(self, namespaces: Sequence[str], keys: Collection[int], **how: Any) -> Mapping[str, Postings]:
        """Return the postings of ``keys``, each entry with the memory that has the place."""
        out = {}
        for namespace, found in self._store.postings(namespaces, keys, **how).items():
            _, here = self._dealt([namespace])
            entries = found.entries.copy()
            entries["ord"] = [here[ord] for ord in entries["ord"].tolist()]
            of_key = np.repeat(np.arange(len(found.sizes)), found.sizes)
            out[namespace] = Postings(
                found.memories, found.length, found.keys, found.sizes, entries[np.lexsort((entries["ord"], of_key))]
            )
        return out

    def neighbours(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[tuple[int, int, bool]]:
        """Return the memories that have the places beside each memory's place."""
        there, here = self._dealt(namespaces)
        places = [there[int(ord)] for ord in ords if int(ord) in there]
        return [(here[at], here[beside], own) for at, beside, own in self._store.neighbours(namespaces, places)]

    def titles(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, Any]:
        """Return the title at each memory's place: a name is compared with what holds it."""
        there, here = self._dealt(namespaces)
        found = self._store.titles(namespaces, [there[int(ord)] for ord in ords if int(ord) in there])
        return {here[ord]: title for ord, title in found.items()}

    def _dealt(self, namespaces: Sequence[str]) -> tuple[dict[int, int], dict[int, int]]:
        """Return which place each memory of the namespace takes, and which memory has each place."""
        (namespace,) = namespaces
        if namespace not in self._places:
            ords = sorted(self._ords(namespace))
            held = self._store.forwards([namespace], ords)
            ends = held.sizes.cumsum()
            many = dict.fromkeys(ords, 0) | {
                ord: int((held.entries["mention"][end - size : end] > 0).sum())
                for ord, size, end in zip(held.ords.tolist(), held.sizes.tolist(), ends.tolist(), strict=True)
            }
            takes = dealt([many[ord] for ord in ords], self._seed)
            there = {ord: ords[at] for ord, at in zip(ords, takes.tolist(), strict=True)}
            self._places[namespace] = (there, {place: ord for ord, place in there.items()})
        return self._places[namespace]

    def _ords(self, namespace: str) -> Iterator[int]:
        last = -1
        while page := self._store.indexed_after(namespace, last, _PAGE):
            yield from (ord for ord, _ in page)
            last = page[-1][0]


@contextmanager
def rewired(mem: Any, seed: int | None) -> Iterator[None]:
    """Let the graph leg of ``mem`` walk in a random graph of like degrees while this lasts; None leaves it as it is."""
    if seed is None:
        yield
        return
    own = mem._legs["graph"]
    if not isinstance(own, Graph):
        yield  # the store keeps no graph; the leg says so when it is asked
        return
    mem._legs["graph"] = Graph(Rewired(mem.store, seed), mem.settings.language)
    try:
        yield
    finally:
        mem._legs["graph"] = own
