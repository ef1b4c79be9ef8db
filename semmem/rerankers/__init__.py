"""Rerankers by name, loaded when first used: they reorder the head of the fused list, and are off by default.

``composite`` weighs relevance, recency and importance. ``cross_encoder:MODEL`` reads question and memory together;
MODEL is a folder with an ONNX file, or a sentence-transformers CrossEncoder by its folder or its name on this machine.
``endpoint`` sends both to the ``/rerank`` endpoint of the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from semmem.list_fusion import RERANK_WEIGHTS, composite_terms
from semmem.model.protocols import reranker_parts
from semmem.model.types import Memory

if TYPE_CHECKING:
    from semmem.model.protocols import Reranker
    from semmem.rerankers.endpoint import RerankerOptions

__all__ = ["Composite", "load"]


def load(name: str, *, endpoint: RerankerOptions | None = None) -> Reranker:
    """Return the reranker ``name``; a model is loaded at its first use. ``endpoint`` is that of the settings.

    Raises InvalidInput for an unknown name or a missing setting, MissingExtra when a package it needs is not installed.
    """
    kind, model = reranker_parts(name)
    if kind == "composite":
        return Composite()
    if kind == "endpoint":
        from semmem.rerankers.endpoint import EndpointReranker

        return EndpointReranker(endpoint)
    from semmem.rerankers.onnx_cross_encoder import OnnxCrossEncoder, graph_in

    if (graph := graph_in(model)) is not None:
        return OnnxCrossEncoder(graph)
    from semmem.rerankers.cross_encoder import CrossEncoder

    return CrossEncoder(model)


class Composite:
    """score = .80 relevance + .05 recency + .15 importance; see semmem.list_fusion.rerank for the arithmetic.

    Recency counts from a memory's last change: of one that was never changed, from its ``created_at``, on whatever day
    it was stored. A time after ``now`` counts as now. This reranker knows no time of access.
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
