"""The protocol of a store that keeps a graph: names, the memories that mention them, corrections."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model.exchange import Corrections, Forwards, RowIds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PLACE", "GraphStore"]

PLACE = "reextract"
"""The name under which a store records how far a re-extraction has come."""


class GraphStore(Protocol):
    """The graph of a store: concepts, mentions, relationships, sessions, and the corrections of names.

    What it keeps of a memory depends on that memory alone. Corrections apply when names are read (legs/graph_names).
    """

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return the spelling of each key's name."""
        ...

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return (row id, key, weight in hundredths, spelling) for the names that memories are about."""
        ...

    def concept_counts(self, namespace: str, like: str | None, limit: int) -> Sequence[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""
        ...

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, key of a related concept), each once."""
        ...

    def forwards(self, namespaces: Sequence[str], row_ids: RowIds) -> Forwards:
        """Return the forward entries (concepts and terms) and the candidates of each memory."""
        ...

    def forwards_and_neighbours(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return the forward entries, the neighbours if asked for, and the keys of pending memories.

        Where ``shared``, a store may leave out entries of keys that no other memory has, and that none is about.
        """
        ...

    def neighbours(self, namespaces: Sequence[str], row_ids: RowIds) -> Sequence[tuple[int, int, bool]]:
        """Return (row id, its previous or next memory in the session, whether both have the same author)."""
        ...

    def by_author(self, namespaces: Sequence[str], row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``, ascending."""
        ...

    def corrections(self, namespaces: Collection[str]) -> Mapping[str, Corrections]:
        """Return the corrections of each namespace."""
        ...

    def record_correction(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Record that the name ``one`` (key, spelling) means ``into``, or with None that it means only itself.

        Returns False where both are one name already.
        """
        ...

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of the concepts of the indexed memories, independent of the order of writing."""
        ...

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        ...

    def titles(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        ...

    def reextraction(self) -> Mapping[str, Any] | None:
        """Return how far an unfinished re-extraction is, and by which extractor; None where none is unfinished."""
        ...

    def note_reextraction(self, place: Mapping[str, Any] | None) -> None:
        """Record how far a re-extraction is; None records that it is done."""
        ...
