"""Keeping: what a person does with a store on the second day. The other half of Semmem; it wires and holds no logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from semmem.concepts import Concepts
from semmem.config import Settings
from semmem.encoder import Encoder
from semmem.errors import EmbedderUnavailable
from semmem.graph_view import graph_view
from semmem.ingest import Ingest
from semmem.narrowing import string
from semmem.protocols import Embedder
from semmem.types import Concept
from semmem.upkeep import Upkeep

if TYPE_CHECKING:
    import networkx

__all__ = ["Keeping"]


class Keeping:
    """The graph and its names, rebuilding, upkeep."""

    store: Any
    settings: Settings
    _encoder: Encoder
    _upkeep: Upkeep
    _ingest: Ingest
    _concepts: Concepts

    def graph(
        self, *, namespace: str = "default", around: str | None = None, hops: int = 2, limit: int = 500
    ) -> networkx.Graph:
        """Return memories and the concepts that tie them as a networkx graph; see semmem.graph_view for what it holds.

        ``around`` is a concept as people write it, or the id of a memory; None is the whole namespace, if it has at
        most ``limit`` memories. Raises InvalidInput or NotFound.
        """
        where = string("namespace", namespace)
        return graph_view(
            self.store, namespace=where, around=around, hops=hops, limit=limit, language=self.settings.language
        )

    def concepts(self, *, namespace: str = "default", like: str | None = None, limit: int = 50) -> Sequence[Concept]:
        """Return the names that memories mention, the most mentioned first; ``like`` is a piece of a name."""
        piece = None if like is None else string("like", like)
        return self._concepts.list(string("namespace", namespace), piece, limit)

    def merge_concepts(self, a: str, b: str, *, namespace: str = "default") -> None:
        """Take the name ``a`` for ``b`` from now on, in memories that are stored too. Raises NotFound, InvalidInput."""
        self._concepts.merge(string("a", a), string("b", b), string("namespace", namespace))

    def split_concept(self, name: str, *, namespace: str = "default") -> None:
        """Let ``name`` stand by itself: merges of it and into it are undone. Raises NotFound for an unknown name."""
        self._concepts.split(string("name", name), string("namespace", namespace))

    def graph_hash(self, *, namespace: str = "default") -> str:
        """Return a hash of the graph, the same whatever the order in which the memories came, after ``maintain``."""
        found: str = self.store.graph_hash(string("namespace", namespace))
        return found

    def rebuild(
        self,
        *,
        embedder: str | Embedder | None = None,
        extract: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Fill in the vectors that are missing, as of memories stored without an embedder; return how many.

        ``embedder``, if it is not the one that filled the store, replaces it: every vector is made anew (interrupted,
        the next call goes on). With ``extract`` the concepts of every memory are found anew instead, and what changed
        is counted.
        """
        if extract:
            return self._upkeep.reextract(progress)
        if embedder is not None:
            self._encoder.replace(embedder)
        embedder = self._encoder.filler()
        if isinstance(embedder, str):
            raise EmbedderUnavailable(embedder)
        return self._ingest.embed_missing(embedder, progress)

    def maintain(self) -> Mapping[str, int]:
        """Let late names reach older memories, fold, join segments, index vectors; return how much of each."""
        return {"renewed": self._upkeep.maintain(), **self.store.maintain()}
