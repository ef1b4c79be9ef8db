"""The dense leg: cosine between the question's vector and each memory's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from semmem.legs import conversation
from semmem.legs.namespaces import TOO_LONG, joined
from semmem.model.errors import LegFailed
from semmem.model.exchange import MOST_TURNS, Question, Ranking, RowIds, Scope, Trace
from semmem.model.leg_scores import BY_RANK
from semmem.model.protocols import Leg
from semmem.model.question import ConversationalQuery
from semmem.model.recipe import ConversationSettings, Recipe
from semmem.model.store import Snapshot

__all__ = ["Dense", "products"]

_HEADROOM = 50
"""Memories returned beyond the depth, so that ids break ties at the cut, such as copies of one text."""


def products(snapshot: Snapshot, namespace: str, row_ids: RowIds, vector: Any) -> dict[int, float]:
    """Return the inner product of each stored vector with another, in double precision.

    pgvector adds up in single precision. What is off by 1e-7 there would be seen in a score that is made of scores, and
    depend on where the vectors are read from.
    """
    import numpy as np

    stored, rows = snapshot.vectors(namespace, np.sort(np.asarray(row_ids, dtype=np.int64)), vector)
    if not len(stored):
        return {}
    values = (rows * np.asarray(vector, dtype=np.float64)).sum(axis=1)
    return dict(zip(stored.tolist(), values.tolist(), strict=True))


class Dense(Leg):
    """Nearest vectors: exact in a small scope, approximate with exact rescoring in a large one (the store decides)."""

    name = "dense"
    at_once = True

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        """Return the nearest memories of each namespace, ranked as if it were the only one.

        Raises LegFailed when the question has no vector, or the error that explains why it has none.
        """
        scope = snapshot.scope
        each, occupied = zip(scope.namespaces, scope.each(), strict=True), scope.occupied()
        rankings = [
            self._within(question.within(namespace), snapshot, one, recipe) if namespace in occupied else Ranking()
            for namespace, one in each
        ]
        near = rankings[0] if len(rankings) == 1 else joined(rankings)
        return replace(near, trace=Trace(most=1.0)) if near.row_ids else near

    def _within(self, question: Question, snapshot: Snapshot, scope: Scope, recipe: Recipe) -> Ranking:
        if (vector := question.vector) is None:
            raise question.no_vector or LegFailed("The question has no vector.")
        depth = recipe.depths.get(self.name, 100) + _HEADROOM
        if question.conversational is None or recipe.conversation is None:
            near = snapshot.nearest(scope, vector, depth)
            return near if recipe.fusion in BY_RANK else self._in_double(near, snapshot, scope, vector)
        return self._conversational(question.conversational, vector, snapshot, scope, recipe.conversation, depth)

    def _in_double(self, near: Ranking, snapshot: Snapshot, scope: Scope, vector: Any) -> Ranking:
        """Return ``near`` by its products in double precision; an earlier version, which has none, keeps its score."""
        exact = dict(zip(near.row_ids, near.scores, strict=True))
        exact |= products(snapshot, scope.namespaces[0], near.row_ids, vector)
        order = sorted(near.row_ids, key=lambda row_id: (-exact[row_id], row_id))
        return replace(near, row_ids=tuple(order), scores=tuple(exact[row_id] for row_id in order))

    def _conversational(
        self,
        conversational: ConversationalQuery,
        vector: Any,
        snapshot: Snapshot,
        scope: Scope,
        settings: ConversationSettings,
        depth: int,
    ) -> Ranking:
        """Rerank by the turns around each turn, its author and its month; turns around the nearest ones may join."""
        import numpy as np

        near, rows, owners, stored = snapshot.nearest_with_turns(
            scope, vector, max(depth, conversation.CONVERSATIONAL_DEPTH)
        )
        if len(rows) > MOST_TURNS:
            return replace(near, degraded=TOO_LONG)
        turns = conversation.Turns.of(rows)
        if not len(turns.row_ids):
            return near
        vectors = np.zeros((len(turns.row_ids), len(vector)), dtype=np.float32)
        place = np.minimum(np.searchsorted(owners, turns.row_ids), max(len(owners) - 1, 0))
        has = owners[place] == turns.row_ids if len(owners) else np.zeros(len(turns.row_ids), dtype=bool)
        vectors[has] = stored[place[has]]
        scores = conversation.dense(turns, vectors, np.asarray(vector), conversational, settings)
        matching = has & scope.matches(turns.row_ids)
        row_ids, scores = turns.row_ids[matching], scores[matching]
        order = np.lexsort((row_ids, -scores))[:depth]
        best = tuple(row_ids[order].tolist()), tuple(scores[order].tolist())
        return Ranking(*best, len(order), turns={row.row_id: row for row in rows})
