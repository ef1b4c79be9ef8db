"""What a store of memories offers that keeps their vectors, of one embedder at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model.exchange import Ords, Ranking, Scope, Turn
from semmem.model.protocols import Embed
from semmem.model.types import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["VectorStore"]


class VectorStore(Protocol):
    """The vectors of a store, and the shadow: those of the embedder that a rebuild puts in the place of the first."""

    def embedder(self) -> Mapping[str, Any] | None:
        """Return who filled the store with vectors (name, dimensions, fingerprint), None before the first one."""
        ...

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        ...

    def release_embedder(self) -> None:
        """Let nobody fill the store, if it holds no vector: what claimed it has been forgotten."""
        ...

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories of highest inner product with a unit vector, within scope."""
        ...

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return what ``nearest`` does, the session turns around these, and the vectors of whole sessions."""
        ...

    def turns_with_vectors(
        self, namespaces: Sequence[str], ords: Ords, like: NDArray[np.float32]
    ) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the session turns around ``ords``, and the vectors of whole sessions, to be compared with ``like``."""
        ...

    def similarities(self, namespaces: Sequence[str], ords: Ords, vector: NDArray[np.float32]) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        ...

    def vectors_of(
        self, namespaces: Sequence[str], ords: Ords, like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ords that have a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        ...

    def stored_vectors(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str, int], NDArray[np.float32]]:
        """Return the vectors of each (namespace, id), by (namespace, id, part)."""
        ...

    def missing_vectors(
        self, after: tuple[str, int], limit: int, *, shadow: bool = False
    ) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of indexed memories without a vector, by (namespace, ord), from ``after`` on.

        ``shadow``: without one of the embedder that comes; see ``open_shadow``.
        """
        ...

    def count_missing(self) -> int:
        """Return how many indexed memories, or parts of one, have no vector; 0 where no vectors are kept."""
        ...

    def unfinished_rebuilds(self) -> Mapping[str, tuple[str, int]]:
        """Return, for ``vectors`` and ``concepts``, by whom a rebuild is half done or under way, and how far it is."""
        ...

    def add_vectors(
        self,
        rows: Sequence[tuple[str, int, NDArray[np.float32]]],
        by: Mapping[str, Any] | None = None,
        *,
        shadow: bool = False,
    ) -> None:
        """Store (namespace, ord, vector) of memories that have none; those forgotten meanwhile are left out.

        Raises EmbedderReplaced, and stores none, when ``by`` is not who fills the store, or its shadow.
        """
        ...

    def rebuilding(self) -> AbstractContextManager[None]:
        """Be the only rebuild of this store for a while, in all processes. Raises Conflict when another one runs."""
        ...

    def open_shadow(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Let ``identity`` fill the shadow of the vectors, which nobody reads.

        Return how many vectors of it are there, and whose vectors were thrown away, if it was another's shadow.
        """
        ...

    def drop_shadow(self) -> str | None:
        """Throw the shadow away; return whose it was, None when there was none."""
        ...

    def index_shadow(self, dimensions: int) -> int:
        """Index the shadow, if it is large enough, so that it need not be done later; return how many were taken in."""
        ...

    def swap_shadow(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Let the shadow take the place of the vectors at once; return how many ``embed`` made while writers waited.

        Returns None, and nothing has changed, if more than ``most`` are missing or the vectors are in use for long.
        """
        ...
