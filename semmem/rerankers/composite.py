"""The composite reranker of memini: relevance first, a little recency and importance. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from semmem.list_fusion import RERANK_WEIGHTS, composite_terms
from semmem.model.types import Memory

__all__ = ["Composite"]


class Composite:
    """score = .80 relevance + .05 recency + .15 importance; see semmem.list_fusion.rerank, whose arithmetic this is.

    A memory keeps no time of access, so recency is by its last change, or its creation.
    """

    name = "composite"

    def __init__(self, weights: tuple[float, float, float] = RERANK_WEIGHTS) -> None:
        self.weights = weights

    def rerank(
        self, query: str, memories: Sequence[Memory], scores: Sequence[float], *, passages: Sequence[str], now: datetime
    ) -> list[dict[str, float]]:
        """Return each memory's terms relevance, recency and importance."""
        times = [memory.updated_at or memory.created_at for memory in memories]
        return composite_terms(scores, times, [memory.importance for memory in memories], now, self.weights)
