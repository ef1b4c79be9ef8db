"""Snapshots from the database, and the snapshot that others build on: it passes on what they do not answer.

The database answers each question from its present state. What changes during a recall is left out of its hits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from semmem.model.exchange import CandidateMetadata, Forwards, Postings, Ranking, RowIds, Scope, Turn
from semmem.model.history import Access, Newer
from semmem.model.store import Snapshot, Store, graph_of, vectors_of
from semmem.model.types import Filters, LinkType, Memory, Passage
from semmem.text.passages import passages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Overlay", "StoredSnapshot", "scope_of"]


def scope_of(
    store: Store,
    namespaces: tuple[str, ...],
    filters: Filters,
    exclude: Sequence[str],
    names: Collection[str] | None,
    at: datetime | None = None,
) -> Scope:
    """Return the scope of a recall, with the arguments that it was made from."""
    scope = store.scope(namespaces, filters, exclude, names, at)
    return replace(scope, filters=filters, exclude=tuple(exclude), at=at)


class StoredSnapshot:
    """The memories of ``scope`` as the database has them now; see Snapshot."""

    earlier: frozenset[int] = frozenset()
    in_memory: bool = False

    def __init__(self, store: Store, scope: Scope) -> None:
        self.scope = scope
        self._store = store

    @property
    def today(self) -> Snapshot:
        """The snapshot itself."""
        return self

    @property
    def stored(self) -> Snapshot:
        """The snapshot itself."""
        return self

    def postings(self, namespace: str, *lookups: tuple[RowIds, int | None]) -> Sequence[Postings]:
        """Return the postings of the keys of each (keys, most memories that mention one), in one round trip."""
        return [found[namespace] for found in self._store.postings_of([namespace], *lookups)]

    def shared_postings(
        self, namespace: str, keys: RowIds, max_df: int | None = None, pending: Collection[int] = ()
    ) -> Postings:
        """Return the postings of those of ``keys`` that several memories have."""
        return self._store.postings([namespace], keys, max_df=max_df, shared=True, pending=pending)[namespace]

    def forwards(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return forward entries, neighbours if asked for, and the keys of pending memories."""
        return graph_of(self._store).forwards_and_neighbours(namespace, row_ids, neighbours=neighbours, shared=shared)

    def shared_concepts(self, namespace: str, row_ids: RowIds, max_df: int, *, neighbours: bool) -> None:
        """Return None: the leg puts them together from forward entries and postings."""

    def relationships(self, namespace: str, keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, key of a related concept), each once."""
        return graph_of(self._store).relationships([namespace], keys, limit)

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return (row id, key, weight in hundredths, spelling) for the names that memories are about."""
        return graph_of(self._store).subject_names(namespace, row_ids)

    def titles(self, namespace: str, row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        return graph_of(self._store).titles([namespace], row_ids)

    def texts(self, namespace: str, row_ids: RowIds) -> Mapping[int, str]:
        """Return title and text of each memory."""
        return self._store.texts([namespace], row_ids)

    def by_author(self, namespace: str, row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``, ascending."""
        return graph_of(self._store).by_author([namespace], row_ids, author)

    def turns(self, namespace: str, row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids``, each in its order."""
        return self._store.session_turns([namespace], row_ids)

    def linked(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, LinkType]]:
        """Return (row id, linked row id, type of link)."""
        return () if self._store.life is None else self._store.life.linked(namespace, row_ids)

    def nearest(self, part: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories nearest to a unit vector within ``part``."""
        return vectors_of(self._store).nearest(part, vector, depth)

    def nearest_with_turns(
        self, part: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest``, the session turns around it, and the row ids and vectors of whole sessions."""
        return vectors_of(self._store).nearest_with_turns(part, vector, depth)

    def vectors(
        self, namespace: str, row_ids: RowIds, like: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the row ids that have a vector, and their vectors; none where the store keeps none."""
        if self._store.vectors is None:
            import numpy as np

            return np.zeros(0, dtype=np.int64), np.zeros((0, len(like)), dtype=np.float32)
        return self._store.vectors.vectors_of([namespace], row_ids, like)

    def metadata(self, row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate; forgotten memories are left out."""
        return self._store.candidate_metadata(self.scope.namespaces, row_ids)

    def metadata_of(self, ids: Collection[str]) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of all that is indexed under these ids; a scope that excludes some has the row ids."""
        spaces = self.scope.namespaces
        if len(spaces) == len(ids) == 1:
            return self.metadata(self._store.row_ids_of(spaces[0], *ids))
        excluded = self._store.scope(spaces, Filters(), list(ids)).excluded if ids else None
        metadata = {} if excluded is None or not len(excluded) else self.metadata(excluded.tolist())
        return {row_id: candidate for row_id, candidate in metadata.items() if candidate.id in ids}

    def newer(self, names: Mapping[str, Collection[str]]) -> Sequence[Newer]:
        """Return the memories that supersede others, along each chain to its end."""
        life = self._store.life
        return () if life is None else life.newer(self.scope.namespaces, names, self.scope.at)

    def accesses(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return when recalls returned these memories."""
        return {} if self._store.life is None else self._store.life.accesses(namespace, ids)

    def memories(self, metadata: Collection[CandidateMetadata]) -> Mapping[int, tuple[Memory, Passage]]:
        """Return memory and passage of each candidate; one round trip, and a second one where one is a part."""
        rows = (
            self._store.indexed_memories(self.scope.namespaces, [candidate.row_id for candidate in metadata])
            if metadata
            else {}
        )
        split = {
            (candidate.namespace, candidate.id) for candidate in metadata if candidate.part and candidate.row_id in rows
        }
        return passages(metadata, rows, self._store.whole_memories(split) if split else {})

    def confirm(self) -> None:
        """Confirm nothing: what the database answers is its present state."""

    def scope_holds(self) -> bool:
        """Return whether no row id of the scope was replaced; it is made anew where a namespace has changed."""
        scope = self.scope
        names_row_ids = scope.allowed is not None or scope.excluded is not None
        if not names_row_ids or scope.at is not None or scope.states_before is None:
            return True
        if self._store.states(scope.namespaces) == scope.states_before:
            return True
        return scope.holds_beside(self._store.scope(scope.namespaces, scope.filters or Filters(), scope.exclude))


class Overlay:
    """A snapshot over another one, ``behind``: what a subclass does not answer itself is passed on."""

    earlier: frozenset[int] = frozenset()
    in_memory: bool = False

    def __init__(self, behind: Snapshot) -> None:
        self._behind = behind

    @property
    def scope(self) -> Scope:
        """The memories that the recall may return."""
        return self._behind.scope

    @property
    def today(self) -> Snapshot:
        """The snapshot itself."""
        return self

    @property
    def stored(self) -> Snapshot:
        """The same over what is behind as the database has it."""
        stored = copy(self)
        stored._behind = self._behind.stored
        return stored

    def postings(self, namespace: str, *lookups: tuple[RowIds, int | None]) -> Sequence[Postings]:
        """Return the postings of each lookup."""
        return self._behind.postings(namespace, *lookups)

    def shared_postings(
        self, namespace: str, keys: RowIds, max_df: int | None = None, pending: Collection[int] = ()
    ) -> Postings:
        """Return the postings of those of ``keys`` that several memories have."""
        return self._behind.shared_postings(namespace, keys, max_df, pending)

    def forwards(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return forward entries, neighbours and pending keys."""
        return self._behind.forwards(namespace, row_ids, neighbours=neighbours, shared=shared)

    def shared_concepts(
        self, namespace: str, row_ids: RowIds, max_df: int, *, neighbours: bool
    ) -> tuple[Forwards, Postings, Sequence[tuple[int, int, bool]]] | None:
        """Return forward entries, postings and neighbours, or None."""
        return self._behind.shared_concepts(namespace, row_ids, max_df, neighbours=neighbours)

    def relationships(self, namespace: str, keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the relationships of ``keys``."""
        return self._behind.relationships(namespace, keys, limit)

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return the names that memories are about."""
        return self._behind.subject_names(namespace, row_ids)

    def titles(self, namespace: str, row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        return self._behind.titles(namespace, row_ids)

    def texts(self, namespace: str, row_ids: RowIds) -> Mapping[int, str]:
        """Return title and text of each memory."""
        return self._behind.texts(namespace, row_ids)

    def by_author(self, namespace: str, row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``."""
        return self._behind.by_author(namespace, row_ids, author)

    def turns(self, namespace: str, row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids``."""
        return self._behind.turns(namespace, row_ids)

    def linked(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, LinkType]]:
        """Return the links of memories."""
        return self._behind.linked(namespace, row_ids)

    def nearest(self, part: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the memories nearest to a vector."""
        return self._behind.nearest(part, vector, depth)

    def nearest_with_turns(
        self, part: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest`` with the sessions around it."""
        return self._behind.nearest_with_turns(part, vector, depth)

    def vectors(
        self, namespace: str, row_ids: RowIds, like: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the vectors of memories."""
        return self._behind.vectors(namespace, row_ids, like)

    def metadata(self, row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate."""
        return self._behind.metadata(row_ids)

    def metadata_of(self, ids: Collection[str]) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of all that is indexed under these ids."""
        return self._behind.metadata_of(ids)

    def newer(self, names: Mapping[str, Collection[str]]) -> Sequence[Newer]:
        """Return the memories that supersede others."""
        return self._behind.newer(names)

    def accesses(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return when recalls returned these memories."""
        return self._behind.accesses(namespace, ids)

    def memories(self, metadata: Collection[CandidateMetadata]) -> Mapping[int, tuple[Memory, Passage]]:
        """Return memory and passage of each candidate."""
        return self._behind.memories(metadata)

    def confirm(self) -> None:
        """Confirm what is behind."""
        self._behind.confirm()

    def scope_holds(self) -> bool:
        """Return whether the scope behind holds."""
        return self._behind.scope_holds()
