"""Walk to the nearest vectors in place of the edges of the texts: the control that asks for more than dense neighbours.

The walk is the graph's own: it starts at the heads of the other legs, and its gate, its decay, its regime and its place
in the fusion stay. Only where it goes is another thing: from each memory to the memories whose vectors are nearest to
that of the memory, by cosine. That is feedback without judgments (Rocchio 1971, with the first ten taken for relevant
and one neighbourhood for each), and a graph of nearest neighbours with one hop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.experiments.other_edges.random_graph import row_ids_by_id
from semmem.legs.graph import Graph
from semmem.legs.graph_walk import Edges, Mass
from semmem.model.errors import LegFailed

__all__ = ["NEAREST", "DenseNeighbours", "nearest", "over_vectors"]

NEAREST = 20
"""Memories to which a memory has edges: as many as the concepts of a memory that the graph's walk follows."""
_NONE = (np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))


def nearest(
    matrix: NDArray[np.float32], row_ids: NDArray[np.int64], sources: NDArray[np.int64], strength: float
) -> Edges:
    """Return the edges from ``sources`` to their ``NEAREST`` nearest rows of ``matrix``, of unit length, row by row id.

    ``row_ids`` are ascending. Cosines below 0 count as 0; the edges of a source sum to ``strength``. A source without a
    row has none.
    """
    pieces = []
    for source in np.intersect1d(sources, row_ids):
        index = int(np.searchsorted(row_ids, source))
        cosines = matrix.astype(np.float64) @ matrix[index].astype(np.float64)
        cosines[index] = -np.inf
        order = np.lexsort((row_ids, -cosines))[: min(NEAREST, len(row_ids) - 1)]
        near = np.maximum(cosines[order], 0.0)
        if near.sum() > 0:
            pieces.append((np.full(len(order), source), row_ids[order], strength * near / near.sum()))
    source, target, weight = (
        np.concatenate([p[i] for p in pieces]) if pieces else np.zeros(0, dtype) for i, dtype in enumerate("qqd")
    )
    return Edges(source, np.zeros(len(source), dtype=np.int64), target, weight)


class DenseNeighbours(Graph):
    """The graph leg with edges to the nearest vectors, and with no others."""

    def __init__(self, mem: Any) -> None:
        super().__init__(mem.settings.language)
        self._store = mem.store
        self._rows: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}

    def _edges(
        self, namespace: str, beam: Mass, settings: Any, walked: Any, trace: Any
    ) -> tuple[Edges, Mapping[int, Sequence[tuple[int, float]]]]:
        """Return the edges of the beam's memories to their neighbours; the graph's own only tell the regime.

        Raises LegFailed where no memory has a vector: a walk that goes nowhere is another control, *seeds only*.
        """
        super()._edges(namespace, beam, settings, walked, trace)
        if namespace not in self._rows and (vectors := self._store.vectors) is not None:
            self._rows[namespace] = vectors.vectors_of([namespace], sorted(row_ids_by_id(self._store, namespace)))
        row_ids, matrix = self._rows.get(namespace, _NONE)
        if not len(row_ids):
            raise LegFailed("No memory has a vector, so there are no nearest vectors to walk to.")
        return nearest(matrix, row_ids, beam.row_ids, settings.about + settings.co_mention), {}


@contextmanager
def over_vectors(mem: Any, chosen: bool) -> Iterator[None]:
    """Let the graph leg of ``mem`` walk to the nearest vectors while this lasts, where this is ``chosen``."""
    own = mem._here.legs.get("graph")
    if not chosen or not isinstance(own, Graph):
        yield  # a leg that is not there says so when it is asked
        return
    mem._here.legs["graph"] = DenseNeighbours(mem)
    try:
        yield
    finally:
        mem._here.legs["graph"] = own
