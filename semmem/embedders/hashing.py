"""A deterministic embedder without a model: feature hashing of words and character trigrams (Weinberger et al. 2009).

For tests and for machines without a model. Texts that share words are near; it knows no synonyms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from semmem.text.tokens import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Hashing"]


class Hashing:
    """Signed feature hashing into 256 dimensions."""

    name = "hashing"
    dimensions = 256
    fingerprint = "hashing-1"
    max_tokens: int | None = None

    def count_tokens(self, text: str) -> int:
        """Return the number of words."""
        return len(words(text))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), 256); a text without a word gets the first axis."""
        import numpy as np

        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(out, texts, strict=True):
            for word, _, _ in words(text):
                for slot, sign in _slots(word):
                    row[slot] += sign
            if not row.any():
                row[0] = 1.0
        out /= np.linalg.norm(out, axis=1, keepdims=True)
        return out


@lru_cache(maxsize=50_000)
def _slots(word: str) -> tuple[tuple[int, float], ...]:
    padded = f" {word} "
    features = [word, *(padded[i : i + 3] for i in range(len(padded) - 2))]
    slots = []
    for position, feature in enumerate(features):
        digest = int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")
        slots.append((digest % 256, (1.0 if digest >> 31 else -1.0) * (1.0 if position == 0 else 0.3)))
    return tuple(slots)
