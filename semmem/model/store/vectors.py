"""The protocol of a store that keeps vectors, of one embedder at a time."""

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
    """The vectors of a store, and their shadow: the vectors of another embedder that a rebuild is making."""

    def embedder(self) -> Mapping[str, Any] | None:
        """Return the embedder that filled the store (name, dimensions, fingerprint); None before the first vector."""
        ...

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        ...

    def release_embedder(self) -> None:
        """Forget which embedder fills the store, if it holds no vector because its memories were forgotten."""
        ...

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories with the highest inner product with a unit vector, within scope."""
        ...

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the result of ``nearest``, the session turns around it, and the vectors of whole sessions."""
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

        With ``shadow``, those without a vector in the shadow; see ``open_shadow``.
        """
        ...

    def count_missing(self) -> int:
        """Return how many indexed memories, or parts of one, have no vector; 0 where no vectors are kept."""
        ...

    def unfinished_rebuilds(self) -> Mapping[str, tuple[str, int]]:
        """Return the unfinished or running rebuilds of ``vectors`` and ``concepts``: for which maker, and how far."""
        ...

    def add_vectors(
        self,
        rows: Sequence[tuple[str, int, NDArray[np.float32]]],
        by: Mapping[str, Any] | None = None,
        *,
        shadow: bool = False,
    ) -> None:
        """Store (namespace, ord, vector) of memories that have none; those forgotten meanwhile are left out.

        Raises EmbedderReplaced, and stores none, when ``by`` is not the embedder that fills the store or its shadow.
        """
        ...

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        ...

    def open_shadow(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Let ``identity`` fill the shadow of the vectors, which nobody reads.

        Returns its present number of vectors, and the name of the embedder whose shadow was deleted for it, if any.
        """
        ...

    def drop_shadow(self) -> str | None:
        """Delete the shadow; return the name of its embedder, None where there was no shadow."""
        ...

    def index_shadow(self, dimensions: int) -> int:
        """Index the shadow, if it is large enough, before it is swapped in; return the number of indexed vectors."""
        ...

    def swap_shadow(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Replace the vectors by the shadow at once; return how many ``embed`` made while writers waited.

        Returns None, and changes nothing, if more than ``most`` are missing or the vectors stay in use for long.
        """
        ...
