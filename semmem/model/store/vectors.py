"""The protocol of a store that keeps vectors, of one embedder at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model.exchange import Ranking, RowIds, Scope, Turn
from semmem.model.protocols import Embed
from semmem.model.types import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["VectorStore"]


class VectorStore(Protocol):
    """The vectors of a store, and its staging vectors: those of another embedder that a rebuild is making."""

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

    def nearest_memories(
        self, namespace: str, vector: NDArray[np.float32], depth: int, *, least: float, excluded: NDArray[np.int64]
    ) -> Sequence[Memory]:
        """Return those of the ``depth`` nearest memories and parts whose cosine is ``least`` or more, nearest first."""
        ...

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the result of ``nearest``, the session turns around it, and the vectors of whole sessions."""
        ...

    def turns_with_vectors(
        self, namespaces: Sequence[str], row_ids: RowIds, like: NDArray[np.float32]
    ) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the session turns around ``row_ids``, and vectors of whole sessions to be compared with ``like``."""
        ...

    def similarities(
        self, namespaces: Sequence[str], row_ids: RowIds, vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        ...

    def vectors_of(
        self, namespaces: Sequence[str], row_ids: RowIds, like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the row ids with a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        ...

    def stored_vectors(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str, int], NDArray[np.float32]]:
        """Return the vectors of each (namespace, id), by (namespace, id, part)."""
        ...

    def missing_vectors(
        self, after: tuple[str, int], limit: int, *, staging: bool = False
    ) -> Sequence[tuple[int, Memory]]:
        """Return (row id, memory) of indexed memories without a vector, by (namespace, row id), from ``after`` on.

        With ``staging``, those without a staging vector; see ``open_staging``.
        """
        ...

    def count_missing(self) -> int:
        """Return how many indexed memories, or parts of one, have no vector; 0 where no vectors are kept."""
        ...

    def unfinished_rebuilds(self) -> Mapping[str, tuple[str, int]]:
        """Return which rebuilds of ``vectors`` and ``concepts`` are unfinished or running: for what, and how far."""
        ...

    def add_vectors(
        self,
        rows: Sequence[tuple[str, int, NDArray[np.float32]]],
        by: Mapping[str, Any] | None = None,
        *,
        staging: bool = False,
    ) -> None:
        """Store (namespace, row id, vector) of memories that have none; those forgotten meanwhile are left out.

        Raises EmbedderReplaced, and stores none, when ``by`` is not the embedder that fills the store or its staging
        vectors.
        """
        ...

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        ...

    def open_staging(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Let ``identity`` fill the staging vectors, which nobody reads.

        Returns how many there are, and the name of the embedder whose staging vectors were deleted for it, if any.
        """
        ...

    def drop_staging(self) -> str | None:
        """Delete the staging vectors; return the name of their embedder, None where there were none."""
        ...

    def index_staging(self, dimensions: int) -> int:
        """Index the staging vectors, if they are many, before they are swapped in; return how many were indexed."""
        ...

    def swap_staging(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Replace the vectors by the staging vectors at once; return how many ``embed`` made while writers waited.

        Returns None, and changes nothing, if more than ``most`` are missing or the vectors stay in use for long.
        """
        ...
