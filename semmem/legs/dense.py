"""The dense leg: cosine between the question's vector and each memory's."""

from __future__ import annotations

from typing import Any

from semmem.errors import LegFailed
from semmem.protocols import Question, Ranking, Scope
from semmem.types import Recipe

__all__ = ["Dense"]

_HEADROOM = 50
"""Returned beyond the depth, so that ties at the cut, such as copies of one text, are broken by id."""


class Dense:
    """Nearest vectors: exact in a small scope, approximate with exact rescoring in a large one (the store decides)."""

    name = "dense"

    def __init__(self, store: Any) -> None:
        self._store = store

    def search(self, question: Question, scope: Scope, recipe: Recipe) -> Ranking:
        """Return the nearest memories. Raises EmbedderUnavailable, or LegFailed when the question has no vector."""
        if question.vector is None:
            raise LegFailed("The question has no vector.")
        depth = recipe.depths.get(self.name, 100)
        ranking: Ranking = self._store.nearest(scope, question.vector(), depth + _HEADROOM)
        return ranking
