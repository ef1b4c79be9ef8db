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

from semmem.model.exchange import Forwards, Head, Ords, Postings, Ranking, Scope, Turn, apart, placed
from semmem.model.store import Snapshot
from semmem.model.store.encoded import maker
from semmem.model.types import Memory, Passage
from semmem.stores.resident.model import Model
from semmem.stores.snapshot import Overlay
from semmem.text.passages import passages

__all__ = ["Checked", "MemorySnapshot"]

Checked: TypeAlias = Callable[
    [Sequence[int], Collection[tuple[str, str]]],
    tuple[Mapping[int, Memory], Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]],
]
"""Reads indexed memories by ord and whole ones by name, and raises Moved where a snapshot is outdated."""

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
        self._alone = all(namespace in models for namespace in self._spaces)

    @property
    def scope(self) -> Scope:
        """The memories that the recall may return."""
        return self._scope

    @property
    def stored(self) -> Snapshot:
        """The snapshot behind, so that a recall that is kept keeps no model."""
        return self._behind.stored

    def postings(self, namespace: str, *lookups: tuple[Ords, int | None]) -> Sequence[Postings]:
        """Return the postings of each lookup."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.postings(namespace, *lookups)
        return [model.postings(keys, max_df) for keys, max_df in lookups]

    def shared_postings(
        self, namespace: str, keys: Ords, max_df: int | None = None, pending: Collection[int] = ()
    ) -> Postings:
        """Return the postings of those of ``keys`` that several memories have."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.shared_postings(namespace, keys, max_df, pending)
        return model.postings(keys, max_df, shared=True)

    def forwards(
        self, namespace: str, ords: Ords, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return forward entries, neighbours if asked for, and no keys: no memory is pending in memory."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.forwards(namespace, ords, neighbours=neighbours, shared=shared)
        return model.forwards(ords, shared=shared), model.neighbours(ords) if neighbours else [], _NONE

    def subject_names(self, namespace: str, ords: Ords) -> Sequence[tuple[int, int, int, str]]:
        """Return the names that memories are about; the spellings are read once, and kept with the model."""
        if (model := self._models.get(namespace)) is None:
            return self._behind.subject_names(namespace, ords)
        if missing := [int(ord) for ord in ords if ord not in model.about]:
            rows = self._behind.subject_names(namespace, missing)
            for ord in missing:
                model.about[ord] = [row for row in rows if row[0] == ord]
        return [row for ord in sorted(map(int, ords)) for row in model.about[ord]]

    def titles(self, namespace: str, ords: Ords) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        model = self._models.get(namespace)
        return self._behind.titles(namespace, ords) if model is None else model.titles(ords)

    def by_author(self, namespace: str, ords: Ords, author: str) -> NDArray[np.int64]:
        """Return those of ``ords`` whose author is ``author``, ascending."""
        model = self._models.get(namespace)
        return self._behind.by_author(namespace, ords, author) if model is None else model.by_author(ords, author)

    def turns(self, namespace: str, ords: Ords) -> Sequence[Turn]:
        """Return the sessions that hold ``ords``, each in its order."""
        model = self._models.get(namespace)
        return self._behind.turns(namespace, ords) if model is None else model.session_turns(ords)

    def _comparable(self, namespace: str, vector: NDArray[np.float32]) -> Model | None:
        """Return the model whose vectors can be compared with ``vector``; None where the snapshot behind has to say."""
        model = self._models.get(namespace)
        if model is None or model.dimensions != len(vector) or not model.is_of(maker(vector)):
            return None
        return model

    def nearest(self, part: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories nearest to a unit vector within ``part``; exact."""
        model = self._comparable(part.namespaces[0], vector)
        return self._behind.nearest(part, vector, depth) if model is None else model.nearest(part, vector, depth)

    def nearest_with_turns(
        self, part: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest``, the session turns around it, and the ords and vectors of whole sessions."""
        if (model := self._comparable(part.namespaces[0], vector)) is None:
            return self._behind.nearest_with_turns(part, vector, depth)
        ranking = model.nearest(part, vector, depth)
        turns = model.session_turns(ranking.ords)
        return ranking, turns, *model.vectors_of([turn.ord for turn in turns])

    def vectors(
        self, namespace: str, ords: Ords, like: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ords that have a vector, ascending, and their vectors."""
        model = self._comparable(namespace, like)
        return self._behind.vectors(namespace, ords, like) if model is None else model.vectors_of(ords)

    def heads(self, ords: Ords) -> Mapping[int, Head]:
        """Return the head of each candidate; forgotten memories are left out."""
        if len(self._spaces) == 1 and (model := self._models.get(self._spaces[0])) is not None:
            return model.heads(ords)
        heads: dict[int, Head] = {}
        elsewhere: list[int] = []
        for at, namespace, own in apart(self._spaces, ords):
            if (model := self._models.get(namespace)) is None:
                elsewhere += placed(own, at).tolist()
            else:
                heads |= _placed(model.heads(own.tolist()), at)
        return {**heads, **self._behind.heads(elsewhere)} if elsewhere else heads

    def heads_of(self, ids: Collection[str]) -> Mapping[int, Head]:
        """Return the heads of all that is indexed under these ids."""
        heads: dict[int, Head] = {}
        for at, namespace in enumerate(self._spaces):
            if (model := self._models.get(namespace)) is not None:
                heads |= _placed(model.heads(model.ords_of(ids).tolist()), at)
        if not self._alone:
            others = self._behind.heads_of(ids).items()
            heads |= {ord: head for ord, head in others if head.namespace not in self._models}
        return heads

    def memories(self, heads: Collection[Head]) -> Mapping[int, tuple[Memory, Passage]]:
        """Return memory and passage of each head. Raises Moved where the models are not up to date."""
        if (check := self._check) is None:
            return self._behind.memories(heads)
        rows, wholes = check([head.ord for head in heads], {(head.namespace, head.id) for head in heads if head.part})
        self._check = None
        return passages(heads, rows, wholes)

    def confirm(self) -> None:
        """Raise Moved where the models are not up to date; nothing is read where that is known."""
        if self._check is not None:
            self.memories(())


def _placed(heads: Mapping[int, Head], at: int) -> dict[int, Head]:
    """Return heads of one namespace with ords placed for the namespace at ``at``."""
    return {placed(ord, at): replace(head, ord=placed(ord, at)) for ord, head in heads.items()}
