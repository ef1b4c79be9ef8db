"""The protocols of plug-ins: Leg, Embedder, Extractor, Reranker.

Nothing here imports a back-end, so that code that measures can use a protocol alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from semmem.model.errors import InvalidInput
from semmem.model.exchange import (
    Extraction,
    Question,
    Ranking,
)
from semmem.model.types import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semmem.model.recipe import Recipe
    from semmem.model.store.snapshot import Snapshot


__all__ = [
    "RERANKERS",
    "Embed",
    "Embedder",
    "Extractor",
    "Leg",
    "Reranker",
    "reranker_parts",
]

Embed: TypeAlias = "Callable[[Sequence[Memory]], Sequence[NDArray[np.float32]]]"


@runtime_checkable
class Leg(Protocol):
    """A retriever, as a recall asks it. Scope is applied inside the leg, before fusion.

    A class that derives from it has the usual attributes. ``reads_vector`` says whether it reads the question's vector:
    for a leg that does not, no model is loaded. A leg that ``follows`` starts from the lists of the others, and is
    asked after them with these in ``question.rankings``; meanwhile it may ``prepare`` what needs no other leg. A leg
    that answers ``at_once`` only computes where the snapshot is in memory: there it is asked in the recall's thread.
    ``absence`` says why the store cannot answer it; such a leg is never asked. ``witness`` is a question, and a text
    that only this leg finds, for the probe.
    """

    name: str
    reads_vector: bool = True
    follows: bool = False
    at_once: bool = False
    absence: str | None = None
    witness: tuple[str, str] | None = None

    def prepare(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Any:
        """Return what ``search`` of a leg that follows receives as ``question.prepared``."""
        return None

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        """Return at most the recipe's depth of memories in scope, best first."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors. Loading happens at the first call of ``embed``."""

    max_tokens: int | None

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        ...

    @property
    def name(self) -> str:
        """The name of the model; a store records it."""
        ...

    @property
    def fingerprint(self) -> str:
        """An identity of the weights, such as their sha256."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens ``text`` has for this model."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions)."""
        ...


class Extractor(Protocol):
    """Finds the terms and concepts of a text. Pure: the same text gives the same extraction."""

    name: str

    def extract(self, text: str, title: str | None) -> Extraction:
        """Return the extraction of one memory."""
        ...


class Reranker(Protocol):
    """A second stage over the fused head of the list."""

    name: str

    def rerank(
        self, query: str, memories: Sequence[Memory], scores: Sequence[float], *, passages: Sequence[str], now: datetime
    ) -> list[dict[str, float]]:
        """Return the terms of each memory by name, which sum to its new score in [0, 1]; ``scores`` are the fused ones.

        ``memories`` are whole, ``passages`` are the parts of their texts that the legs found.
        """
        ...


RERANKERS = ("composite", "cross_encoder:MODEL", "endpoint")


def reranker_parts(name: str) -> tuple[str, str]:
    """Return the kind and the model of a reranker's name. Raises InvalidInput for an unknown one; loads nothing."""
    kind, colon, model = name.partition(":") if isinstance(name, str) else ("", "", "")
    if (kind in ("composite", "endpoint") and not colon) or (kind == "cross_encoder" and model):
        return kind, model
    raise InvalidInput(f"There is no reranker named {name!r}; choose one of {', '.join(RERANKERS)}.")
