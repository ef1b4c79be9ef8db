"""An embedder that some vectors are known of already, such as those that travel with the memories of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from semmem.protocols import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Known", "vector_key"]


def vector_key(text: str) -> str:
    """Return what a vector is known by: 32 hexadecimal digits of a hash of the text that was embedded."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Known:
    """As ``embedder``, but vectors in ``vectors`` are not made again.

    ``vectors`` maps (fingerprint of the embedder, ``vector_key`` of the text) to little-endian float32 bytes, and may
    change between calls. One of another length than the embedder's is passed over.
    """

    def __init__(self, embedder: Embedder, vectors: Mapping[tuple[str, str], bytes]) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.max_tokens = embedder.max_tokens

    @property
    def fingerprint(self) -> str:
        """What tells these weights from others."""
        return self._embedder.fingerprint

    def count_tokens(self, text: str) -> int:
        """Return how many tokens ``text`` has for this model."""
        return self._embedder.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions): the known ones, and the others made."""
        import numpy as np

        whose = self.fingerprint if self._vectors else ""
        known = [self._vectors.get((whose, vector_key(text))) for text in texts] if self._vectors else []
        known = [raw if raw is not None and len(raw) == 4 * self.dimensions else None for raw in known]
        if not any(known):
            return self._embedder.embed(texts)
        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        missing = [i for i, raw in enumerate(known) if raw is None]
        if missing:
            out[missing] = self._embedder.embed([texts[i] for i in missing])
        for i, raw in enumerate(known):
            if raw is not None:
                out[i] = np.frombuffer(raw, dtype="<f4")
        return out
