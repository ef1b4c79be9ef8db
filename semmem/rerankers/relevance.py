"""What all models of relevance share: the text that is judged, and the logistic of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from semmem.model.types import Memory

__all__ = ["squashed", "texts_of"]


def texts_of(memories: Sequence[Memory], passages: Sequence[str]) -> list[str]:
    """Return the passage of each memory, below the title where the memory has one."""
    return [
        f"{memory.title}\n{passage}" if memory.title else passage
        for memory, passage in zip(memories, passages, strict=True)
    ]


def squashed(logit: float) -> float:
    """Return the logistic of ``logit``, without overflow."""
    return 1 / (1 + exp(-logit)) if logit >= 0 else exp(logit) / (1 + exp(logit))
