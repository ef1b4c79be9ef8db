"""An embedder that computes the vector of a question once, however many recipes ask it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semmem.config import Settings
from semmem.embedders import load
from semmem.model.errors import EmbedderUnavailable, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semmem.model.protocols import Embedder

__all__ = ["KeptVectors", "keeping"]

_MOST = 20_000


class KeptVectors:
    """Passes everything on to ``embedder`` and keeps the vectors of texts that came alone: questions, not memories."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: dict[str, NDArray[np.float32]] = {}
        self.name, self.dimensions, self.max_tokens = embedder.name, embedder.dimensions, embedder.max_tokens

    @property
    def fingerprint(self) -> str:
        """What tells these weights from others: the embedder's own."""
        return self._embedder.fingerprint

    def count_tokens(self, text: str) -> int:
        """Return how many tokens ``text`` has for this model."""
        return self._embedder.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions)."""
        if len(texts) != 1:
            return self._embedder.embed(texts)
        found = self._kept.get(texts[0])
        if found is None:
            found = self._embedder.embed(texts)
            if len(self._kept) < _MOST:
                self._kept[texts[0]] = found
        return found.copy()


def keeping(name: str | None) -> Embedder | str | None:
    """Return the embedder that semmem would find under ``name``, with its vectors kept; ``name`` where there is none.

    What semmem says of an embedder that is missing is then said by semmem.
    """
    if name == "none":
        return name
    try:
        return KeptVectors(load(name or "minilm", path=Settings.load().model))
    except (EmbedderUnavailable, MissingExtra):
        return name
