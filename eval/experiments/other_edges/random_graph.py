"""Rewire the graph at random with similar degrees: the control that asks whether the edges mean anything.

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
from semmem.model.exchange import Forwards, Postings, Question, Ranking, RowIds
from semmem.model.recipe import Recipe
from semmem.model.store import GraphStore, Snapshot, Store, graph_of
from semmem.stores.snapshot import Overlay

__all__ = ["Places", "Rewired", "dealt", "rewired", "row_ids_by_id"]

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


def row_ids_by_id(store: Store, namespace: str) -> list[int]:
    """Return the row id of every memory and part of a namespace that legs can return, in the order of their ids."""
    found: list[tuple[str, int]] = []
    last = -1
    while page := store.indexed_after(namespace, last, _PAGE):
        found += ((memory.id, row_id) for row_id, memory in page)
        last = page[-1][0]
    return [row_id for _, row_id in sorted(found)]


class Places:
    """Which place each memory of a namespace takes, and which memory has each place, by row id.

    The deal follows the ids of the memories, so the order in which a store was filled does not change it.
    """

    def __init__(self, store: Store, graph: GraphStore, seed: int) -> None:
        self._store, self._graph, self._seed = store, graph, seed
        self._dealt: dict[str, tuple[dict[int, int], dict[int, int]]] = {}

    def of(self, namespace: str) -> tuple[dict[int, int], dict[int, int]]:
        """Return place by memory, and memory by place."""
        if namespace not in self._dealt:
            row_ids = row_ids_by_id(self._store, namespace)
            content = self._graph.forwards([namespace], sorted(row_ids))
            ends = content.sizes.cumsum()
            many = dict.fromkeys(row_ids, 0) | {
                row_id: int((content.entries["mention"][end - size : end] > 0).sum())
                for row_id, size, end in zip(
                    content.row_ids.tolist(), content.sizes.tolist(), ends.tolist(), strict=True
                )
            }
            takes = dealt([many[row_id] for row_id in row_ids], self._seed)
            place_of = {row_id: row_ids[take] for row_id, take in zip(row_ids, takes.tolist(), strict=True)}
            self._dealt[namespace] = (place_of, {place: row_id for row_id, place in place_of.items()})
        return self._dealt[namespace]

    def taken(self, namespace: str, row_ids: RowIds) -> list[int]:
        """Return the places that memories take, ascending; those that are not there take none."""
        place_of, _ = self.of(namespace)
        return sorted(place_of[int(row_id)] for row_id in row_ids if int(row_id) in place_of)


class Rewired(Overlay):
    """A snapshot with the places of the memories in the graph permuted; the rest is that of the snapshot behind."""

    def __init__(self, behind: Snapshot, places: Places) -> None:
        super().__init__(behind)
        self._places = places

    def postings(self, namespace: str, *lookups: tuple[RowIds, int | None]) -> Sequence[Postings]:
        """Return the postings of each lookup, each entry with the memory that has the place."""
        return [self._moved(namespace, one) for one in self._behind.postings(namespace, *lookups)]

    def shared_postings(
        self, namespace: str, keys: RowIds, max_df: int | None = None, pending: Collection[int] = ()
    ) -> Postings:
        """Return the shared postings of ``keys``, each entry with the memory that has the place."""
        return self._moved(namespace, self._behind.shared_postings(namespace, keys, max_df, pending))

    def forwards(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return mentions and neighbours at each memory's place, and the real graph's keys of pending memories."""
        places = self._places.taken(namespace, row_ids)
        content, beside, pending = self._behind.forwards(namespace, places, neighbours=neighbours)
        return self._to_memories(namespace, content), self._beside(namespace, beside), pending

    def titles(self, namespace: str, row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title at each memory's place, with which the leg compares a name."""
        _, here = self._places.of(namespace)
        titles = self._behind.titles(namespace, self._places.taken(namespace, row_ids))
        return {here[row_id]: title for row_id, title in titles.items()}

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return the subjects at each memory's place: (row id, concept key, weight, name)."""
        _, here = self._places.of(namespace)
        rows = self._behind.subject_names(namespace, self._places.taken(namespace, row_ids))
        return sorted((here[row_id], key, weight, name) for row_id, key, weight, name in rows)

    def _to_memories(self, namespace: str, forwards: Forwards) -> Forwards:
        _, here = self._places.of(namespace)
        ends = forwards.sizes.cumsum()
        pieces = {
            here[row_id]: forwards.entries[end - size : end]
            for row_id, size, end in zip(forwards.row_ids.tolist(), forwards.sizes.tolist(), ends.tolist(), strict=True)
        }
        order = sorted(pieces)
        return Forwards(
            np.array(order, dtype=np.int64),
            np.array([len(pieces[row_id]) for row_id in order], dtype=np.int64),
            np.concatenate([pieces[row_id] for row_id in order]) if order else forwards.entries[:0],
        )

    def _beside(self, namespace: str, rows: Sequence[tuple[int, int, bool]]) -> Sequence[tuple[int, int, bool]]:
        _, here = self._places.of(namespace)
        return [(here[index], here[beside], own) for index, beside, own in rows]

    def _moved(self, namespace: str, postings: Postings) -> Postings:
        _, here = self._places.of(namespace)
        entries = postings.entries.copy()
        entries["ord"] = [here[row_id] for row_id in entries["ord"].tolist()]
        of_key = np.repeat(np.arange(len(postings.sizes)), postings.sizes)
        return Postings(
            postings.memories,
            postings.length,
            postings.keys,
            postings.sizes,
            entries[np.lexsort((entries["ord"], of_key))],
        )


class RewiredGraph(Graph):
    """The graph leg over a rewired snapshot."""

    def __init__(self, places: Places, language: str) -> None:
        super().__init__(language)
        self._places = places

    def prepare(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Any:
        """Link the question to the memories that have the places."""
        return super().prepare(question, Rewired(snapshot, self._places), recipe)

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        """Walk over the rewired graph."""
        return super().search(question, Rewired(snapshot, self._places), recipe)


@contextmanager
def rewired(mem: Any, seed: int | None) -> Iterator[None]:
    """Let the graph leg of ``mem`` walk in a random graph of like degrees while this lasts; None leaves it as it is."""
    if seed is None:
        yield
        return
    own = mem._here.legs["graph"]
    if not isinstance(own, Graph):
        yield  # the store keeps no graph; the leg says so when it is asked
        return
    mem._here.legs["graph"] = RewiredGraph(Places(mem.store, graph_of(mem.store), seed), mem.settings.language)
    try:
        yield
    finally:
        mem._here.legs["graph"] = own
