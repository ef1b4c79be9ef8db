"""What a store of memories offers that keeps their graph: names, who mentions them, what people corrected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model.exchange import Corrections, Forwards, Ords

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GraphStore"]


class GraphStore(Protocol):
    """The graph of a store: concepts, mentions, relationships, sessions; and which names wait to reach older memories.

    A name waits when it came, went or was corrected after memories that mention it were read; it is *propagated* when
    these have been read again.
    """

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return what people read for each key."""
        ...

    def subject_names(self, namespace: str, ords: Ords) -> Sequence[tuple[int, int, int, str]]:
        """Return (ord, key, weight in hundredths, what people read for it) of the names that memories are about."""
        ...

    def concept_counts(self, namespace: str, like: str | None, limit: int) -> Sequence[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""
        ...

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, what a relationship ties it to), each once."""
        ...

    def forwards(self, namespaces: Sequence[str], ords: Ords) -> Forwards:
        """Return what each memory holds."""
        ...

    def forwards_and_neighbours(
        self, namespace: str, ords: Ords, *, neighbours: bool
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return what ``forwards`` does, what ``neighbours`` does if asked for, and the keys of pending memories."""
        ...

    def neighbours(self, namespaces: Sequence[str], ords: Ords) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        ...

    def by_author(self, namespaces: Sequence[str], ords: Ords, author: str) -> NDArray[np.int64]:
        """Return which of ``ords`` are by ``author``, ascending."""
        ...

    def ords_with_relationships(self, namespace: str, keys: Collection[int]) -> NDArray[np.int64]:
        """Return the memories in which a relationship of one of ``keys`` was found."""
        ...

    def ords_with_words(self, namespace: str, words: Collection[str]) -> NDArray[np.int64]:
        """Return the memories whose text may hold one of ``words``: too many, never too few."""
        ...

    def snapshot(self, namespaces: Collection[str]) -> tuple[Mapping[str, int], Mapping[str, Corrections]]:
        """Return the number of each namespace's last change, for ``changed_subjects``, and what people corrected."""
        ...

    def snapshot_with_subjects(
        self, keys: Mapping[str, Collection[int]]
    ) -> tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, set[int]]]:
        """Return what ``snapshot`` does, and which of each namespace's keys, as people corrected them, are subjects."""
        ...

    def payloads_and_subjects(
        self, names: Collection[tuple[str, str]], keys: Mapping[str, Collection[int]]
    ) -> tuple[
        Mapping[tuple[str, str], bytes] | None,
        tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, set[int]]],
    ]:
        """Return what Store.payload_hashes does (None: ask for it by itself), and ``snapshot_with_subjects``."""
        ...

    def changed_subjects(self, namespace: str, since: int) -> set[int]:
        """Return the keys of the subjects that came or went, or were corrected, since a change."""
        ...

    def changed_and_known_subjects(
        self, namespace: str, since: int, keys: Collection[int]
    ) -> tuple[set[int], set[int]]:
        """Return what ``changed_subjects`` does, and which of ``keys`` some memory has as its subject."""
        ...

    def note_changed_subjects(self, namespace: str, keys: Collection[int]) -> None:
        """Note that older memories that mention ``keys`` are to be read again."""
        ...

    def unpropagated(self, namespace: str, *, all: bool) -> Sequence[tuple[int, Sequence[int]]]:
        """Return (number, keys) of the names that wait; without ``all`` only what nobody looked at yet."""
        ...

    def mark_propagated(self, namespace: str, numbers: Sequence[int], left: Collection[int]) -> None:
        """Mark what was noted as propagated, but for the keys ``left``, which wait for maintain."""
        ...

    def unpropagated_namespaces(self) -> Sequence[str]:
        """Return the namespaces where something waits."""
        ...

    def record_correction(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Record that the name ``one`` (key, as written) is ``into``, or (None) stands apart; note what it changes.

        Returns False, and changes nothing, where the two are one already.
        """
        ...

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of what the indexed memories hold, whatever the order in which they came."""
        ...

    def rebuilding(self) -> AbstractContextManager[None]:
        """Be the only rebuild of this store for a while, in all processes. Raises Conflict when another one runs."""
        ...

    def database_id(self) -> str:
        """Return what tells this database from its copies, in which other changes may have the same numbers."""
        ...

    def titles(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        ...

    def reextraction(self) -> Mapping[str, Any] | None:
        """Return how far reading every memory again has come, and for whom; None where nothing is half done."""
        ...

    def note_reextraction(self, place: Mapping[str, Any] | None) -> None:
        """Note how far reading every memory again has come; None: it is done."""
        ...
