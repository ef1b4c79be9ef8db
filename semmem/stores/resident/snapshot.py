"""Snapshots from memory: namespaces that a process holds answer from there, and the snapshot behind for the others.

Texts, links between memories, relationships and accesses are not held. Nor is what the bounds of a memory in time mean
now, which the scope says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import CandidateMetadata, Forwards, Postings, Ranking, RowIds, Scope, Turn, apart, placed
from semmem.model.store import Snapshot
from semmem.model.store.encoded import vector_embedder
from semmem.model.types import Memory, Passage
from semmem.stores.resident.model import Model
from semmem.stores.snapshot import Overlay
from semmem.text.passages import passages

__all__ = ["Checked", "MemorySnapshot"]

Checked: TypeAlias = Callable[
    [Sequence[int], Collection[tuple[str, str]]],
    tuple[Mapping[int, Memory], Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]],
]
"""Reads indexed memories by row id and whole ones by name, and raises Moved where a snapshot is outdated."""

_NONE = np.zeros(0, dtype=np.int64)


class MemorySnapshot(Overlay):
    """The namespaces of ``models`` as memory holds them, the others as the snapshot ``behind`` has them.

    With ``check`` it is not known yet whether the models are up to date. The memories of the hits are then read by it.
    """

    def __init__(self, behind: Snapshot, models: Mapping[str, Model], check: Checked | None = None) -> None:
        super().__init__(behind)
        self._scope = behind.scope
        self._spaces = self._scope.namespaces
        self._models = models
        self._check = check
        self._checks_scope = check is not None
        self._alone = all(namespace in models for namespace in self._spaces)
        self.in_memory = self._alone and not self._scope.linked  # links between memories are not held

    @property
    def scope(self) -> Scope:
        """The memories that the recall may return."""
        return self._scope

    @property
    def stored(self) -> Snapshot:
        """The snapshot behind, so that a recall that is kept keeps no model."""
        return self._behind.stored

    def postings(self, namespace: str, *lookups: tuple[RowIds, int | None]) -> Sequence[Postings]:
        """Return the postings of each lookup."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.postings(namespace, *lookups)
        return [model.postings(keys, max_df) for keys, max_df in lookups]

    def shared_postings(
        self, namespace: str, keys: RowIds, max_df: int | None = None, pending: Collection[int] = ()
    ) -> Postings:
        """Return the postings of those of ``keys`` that several memories have."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.shared_postings(namespace, keys, max_df, pending)
        return model.postings(keys, max_df, shared=True)

    def forwards(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return forward entries, neighbours if asked for, and no keys: no memory is pending in memory."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.forwards(namespace, row_ids, neighbours=neighbours, shared=shared)
        return model.forwards(row_ids, shared=shared), model.neighbours(row_ids) if neighbours else [], _NONE

    def shared_concepts(
        self, namespace: str, row_ids: RowIds, max_df: int, *, neighbours: bool
    ) -> tuple[Forwards, Postings, Sequence[tuple[int, int, bool]]] | None:
        """Return the concepts of memories that others have, with their postings, where the model has them by place."""
        model = self._models.get(namespace)
        if model is None or (found := model.shared_concepts(row_ids, max_df)) is None:
            return None
        return *found, model.neighbours(row_ids) if neighbours else []

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return the names that memories are about; these are read once, see Model.subject_names."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.subject_names(namespace, row_ids)
        return model.subject_names(row_ids, lambda missing: self._behind.subject_names(namespace, missing))

    def titles(self, namespace: str, row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        model = self._models.get(namespace)
        return self._behind.titles(namespace, row_ids) if model is None else model.titles(row_ids)

    def by_author(self, namespace: str, row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``, ascending."""
        model = self._models.get(namespace)
        return self._behind.by_author(namespace, row_ids, author) if model is None else model.by_author(row_ids, author)

    def turns(self, namespace: str, row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids``, each in its order."""
        model = self._models.get(namespace)
        return self._behind.turns(namespace, row_ids) if model is None else model.session_turns(row_ids)

    def _comparable(self, namespace: str, vector: NDArray[np.float32]) -> Model | None:
        """Return the model whose vectors can be compared with ``vector``; None where the snapshot behind has to say."""
        model = self._models.get(namespace)
        if model is None or model.dimensions != len(vector) or not model.is_of(vector_embedder(vector)):
            return None
        return model

    def nearest(self, part: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories nearest to a unit vector within ``part``; exact."""
        model = self._comparable(part.namespaces[0], vector)
        return self._behind.nearest(part, vector, depth) if model is None else model.nearest(part, vector, depth)

    def nearest_with_turns(
        self, part: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest``, the session turns around it, and the row ids and vectors of whole sessions."""
        if (model := self._comparable(part.namespaces[0], vector)) is None:
            return self._behind.nearest_with_turns(part, vector, depth)
        ranking = model.nearest(part, vector, depth)
        turns = model.session_turns(ranking.row_ids)
        return ranking, turns, *model.vectors_of([turn.row_id for turn in turns])

    def vectors(
        self, namespace: str, row_ids: RowIds, like: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the row ids with a vector, ascending, and their vectors."""
        model = self._comparable(namespace, like)
        return self._behind.vectors(namespace, row_ids, like) if model is None else model.vectors_of(row_ids)

    def metadata(self, row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate; forgotten memories are left out."""
        if len(self._spaces) == 1 and (model := self._models.get(self._spaces[0])) is not None:
            return model.metadata(row_ids)
        metadata: dict[int, CandidateMetadata] = {}
        elsewhere: list[int] = []
        for place, namespace, own in apart(self._spaces, row_ids):
            if (model := self._models.get(namespace)) is None:
                elsewhere += placed(own, place).tolist()
            else:
                metadata |= _placed(model.metadata(own.tolist()), place)
        return {**metadata, **self._behind.metadata(elsewhere)} if elsewhere else metadata

    def metadata_of(self, ids: Collection[str]) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of all that is indexed under these ids."""
        metadata: dict[int, CandidateMetadata] = {}
        for place, namespace in enumerate(self._spaces):
            if (model := self._models.get(namespace)) is not None:
                metadata |= _placed(model.metadata(model.row_ids_of(ids).tolist()), place)
        if not self._alone:
            others = self._behind.metadata_of(ids).items()
            metadata |= {row_id: candidate for row_id, candidate in others if candidate.namespace not in self._models}
        return metadata

    def memories(self, metadata: Collection[CandidateMetadata]) -> Mapping[int, tuple[Memory, Passage]]:
        """Return memory and passage of each candidate. Raises Moved where the models are not up to date."""
        if (check := self._check) is None:
            return self._behind.memories(metadata)
        rows, wholes = check(
            [candidate.row_id for candidate in metadata],
            {(candidate.namespace, candidate.id) for candidate in metadata if candidate.part},
        )
        self._check = None
        return passages(metadata, rows, wholes)

    def confirm(self) -> None:
        """Raise Moved where the models are not up to date; nothing is read where that is known."""
        if self._check is not None:
            self.memories(())

    def scope_holds(self) -> bool:
        """Return whether the scope holds; nothing is read where it was checked, or all models are of its state."""
        if self._checks_scope:
            return True
        made_at = self._scope.states_before or {}
        if self.in_memory and all(model.state == made_at.get(name) for name, model in self._models.items()):
            return True
        return super().scope_holds()


def _placed(metadata: Mapping[int, CandidateMetadata], place: int) -> dict[int, CandidateMetadata]:
    """Return metadata of one namespace with row ids placed for the namespace at ``place``."""
    return {
        placed(row_id, place): replace(candidate, row_id=placed(row_id, place))
        for row_id, candidate in metadata.items()
    }
