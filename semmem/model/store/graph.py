"""The protocol of a store that keeps a graph: names, the memories that mention them, corrections."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model.exchange import Corrections, Forwards, Ords

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PLACE", "GraphStore"]

PLACE = "reextract"
"""The name under which a store records how far a re-extraction has come."""


class GraphStore(Protocol):
    """The graph of a store: concepts, mentions, relationships, sessions, and the names that wait for propagation.

    A name waits when it came, went or was corrected after memories that mention it were extracted. It is *propagated*
    once these memories have been extracted again.
    """

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return the spelling of each key's name."""
        ...

    def subject_names(self, namespace: str, ords: Ords) -> Sequence[tuple[int, int, int, str]]:
        """Return (ord, key, weight in hundredths, spelling) for the names that memories are about."""
        ...

    def concept_counts(self, namespace: str, like: str | None, limit: int) -> Sequence[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""
        ...

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, key of a related concept), each once."""
        ...

    def forwards(self, namespaces: Sequence[str], ords: Ords) -> Forwards:
        """Return the forward entries (concepts and terms) of each memory."""
        ...

    def forwards_and_neighbours(
        self, namespace: str, ords: Ords, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return the forward entries, the neighbours if asked for, and the keys of pending memories.

        Where ``shared``, a store may leave out entries of keys that no other memory has.
        """
        ...

    def neighbours(self, namespaces: Sequence[str], ords: Ords) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        ...

    def by_author(self, namespaces: Sequence[str], ords: Ords, author: str) -> NDArray[np.int64]:
        """Return those of ``ords`` whose author is ``author``, ascending."""
        ...

    def ords_with_relationships(self, namespace: str, keys: Collection[int]) -> NDArray[np.int64]:
        """Return the memories from which a relationship of one of ``keys`` was extracted."""
        ...

    def ords_with_words(self, namespace: str, words: Collection[str]) -> NDArray[np.int64]:
        """Return the memories whose text may hold one of ``words``; a superset of those that do."""
        ...

    def snapshot(self, namespaces: Collection[str]) -> tuple[Mapping[str, int], Mapping[str, Corrections]]:
        """Return each namespace's last change number, for ``changed_subjects``, and its corrections."""
        ...

    def snapshot_with_subjects(
        self, keys: Mapping[str, Collection[int]]
    ) -> tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, set[int]]]:
        """Return the result of ``snapshot``, and which of each namespace's keys, after corrections, are subjects."""
        ...

    def payloads_and_subjects(
        self, names: Collection[tuple[str, str]], keys: Mapping[str, Collection[int]]
    ) -> tuple[
        Mapping[tuple[str, str], bytes] | None,
        tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, set[int]]],
    ]:
        """Return ``Store.payload_hashes`` (None: call it by itself) and ``snapshot_with_subjects``."""
        ...

    def changed_subjects(self, namespace: str, since: int) -> set[int]:
        """Return the keys of subjects that came, went or were corrected after a change number."""
        ...

    def changed_and_known_subjects(
        self, namespace: str, since: int, keys: Collection[int]
    ) -> tuple[set[int], set[int]]:
        """Return the result of ``changed_subjects``, and those of ``keys`` that are a subject of some memory."""
        ...

    def note_changed_subjects(self, namespace: str, keys: Collection[int]) -> None:
        """Record that older memories that mention ``keys`` are to be extracted again."""
        ...

    def unpropagated(self, namespace: str, *, all: bool) -> Sequence[tuple[int, Sequence[int]]]:
        """Return (change number, keys) of the waiting names; without ``all`` only those not yet tried."""
        ...

    def mark_propagated(self, namespace: str, numbers: Sequence[int], keys: Collection[int]) -> None:
        """Mark waiting names as propagated, except for ``keys``, which wait for maintain."""
        ...

    def unpropagated_namespaces(self) -> Sequence[str]:
        """Return the namespaces where names wait."""
        ...

    def record_correction(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Record that the name ``one`` (key, spelling) means ``into``, or with None that it means only itself.

        The memories concerned are recorded for re-extraction. Returns False where both are one name already.
        """
        ...

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of the concepts of the indexed memories, independent of the order of writing."""
        ...

    def rebuilding(self) -> AbstractContextManager[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        ...

    def database_id(self) -> str:
        """Return an id that tells this database from its copies, where a change number may mean another change."""
        ...

    def titles(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        ...

    def reextraction(self) -> Mapping[str, Any] | None:
        """Return how far an unfinished re-extraction is, and by which extractor; None where none is unfinished."""
        ...

    def note_reextraction(self, place: Mapping[str, Any] | None) -> None:
        """Record how far a re-extraction is; None records that it is done."""
        ...
