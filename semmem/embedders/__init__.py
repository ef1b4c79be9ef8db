"""Embedders by name, loaded when first used. A missing package is reported with the pip line that adds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from semmem.model.errors import EmbedderUnavailable, InvalidInput
from semmem.model.protocols import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semmem.embedders.endpoint import EndpointOptions
    from semmem.model.protocols import Embedder

__all__ = ["NAMES", "Known", "check", "choices", "known_as", "load", "vector_key"]

NAMES = ("minilm", "hashing", "endpoint")
"""The names of embedders that are no models; the others are those that ``semmem model get`` has installed."""

_MODELS = {"minilm": "all-MiniLM-L6-v2"}
"""The names that embedders give themselves, where they differ from the names here."""


def known_as(recorded: str) -> str:
    """Return the name by which an embedder is asked for, given the name that it records in a store."""
    if recorded.startswith("endpoint:"):
        return "endpoint"
    return next((name for name, model in _MODELS.items() if model == recorded), recorded)


def choices() -> list[str]:
    """Return the names of the embedders that can be asked for: the built-in, the published and the installed ones."""
    from semmem.embedders.installed import names
    from semmem.embedders.weights import PUBLISHED

    published = [name for name in PUBLISHED if known_as(name) == name]
    return list(dict.fromkeys([*NAMES, *published, *names()]))


def check(embedder: object) -> None:
    """Raise InvalidInput unless ``embedder`` is a known name, or has what an embedder needs; loads nothing."""
    if isinstance(embedder, str):
        if embedder not in (*NAMES, *_MODELS.values(), "none") and embedder not in (known := choices()):
            raise InvalidInput(
                f"There is no embedder named {embedder!r}; choose one of {', '.join(known)}, none, or pass an object; "
                "another model gets a name by: semmem model get FOLDER --name NAME"
            )
        return
    needed = ("name", "dimensions", "fingerprint", "count_tokens", "embed")
    if lacks := [part for part in needed if not hasattr(type(embedder), part) and not hasattr(embedder, part)]:
        raise InvalidInput(
            f"An embedder is a name ({', '.join(choices())}, none) or an object with {', '.join(needed)}; this "
            f"{type(embedder).__name__} has no {lacks[0]}."
        )


def load(name: str, *, path: str | None = None, endpoint: EndpointOptions | None = None) -> Embedder:
    """Return the embedder ``name`` without loading its model.

    ``path`` is a model folder for ``minilm``, ``endpoint`` describes the one that ``endpoint`` asks.

    Raises EmbedderUnavailable when its model is nowhere to be found and InvalidInput for an unknown name.
    """
    check(name)
    if known_as(name) == "minilm":
        from semmem.embedders.minilm import MiniLM

        return MiniLM(path)
    if name == "hashing":
        from semmem.embedders.hashing import Hashing

        return Hashing()
    if name == "endpoint":
        from semmem.embedders.endpoint import EndpointEmbedder

        return EndpointEmbedder(endpoint)
    if name == "none":
        raise InvalidInput(f"'none' loads no embedder; choose one of {', '.join(choices())}, or pass an object.")
    from semmem.embedders.installed import Installed

    return Installed(name)


def vector_key(text: str) -> str:
    """Return the key of a vector: 32 hexadecimal digits of a hash of the embedded text."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Known:
    """An embedder that makes no vector again that is in ``vectors``.

    ``vectors`` maps (fingerprint of the embedder, ``vector_key`` of the text) to little-endian float32 bytes, and may
    change between calls. An entry that is no unit vector of the embedder's length is ignored.
    """

    def __init__(self, embedder: Embedder, vectors: Mapping[tuple[str, str], bytes]) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.max_tokens = embedder.max_tokens

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the weights."""
        return self._embedder.fingerprint

    def count_tokens(self, text: str) -> int:
        """Return how many tokens ``text`` has for this model."""
        return self._embedder.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions), from ``vectors`` or newly made."""
        import numpy as np

        whose = self.fingerprint if self._vectors else ""
        buffers = [self._vectors.get((whose, vector_key(text))) for text in texts] if self._vectors else []
        buffers = [raw if raw is not None and self._usable(raw) else None for raw in buffers]
        if not any(buffers):
            return self._embedder.embed(texts)
        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        missing = [i for i, raw in enumerate(buffers) if raw is None]
        if missing:
            made = np.asarray(self._embedder.embed([texts[i] for i in missing]), dtype=np.float32)
            if made.shape != (len(missing), self.dimensions):  # numpy would repeat a single vector for all of them
                raise EmbedderUnavailable(
                    f"The embedder {self.name} returned an array of shape {made.shape} for {len(missing)} texts; it "
                    f"must return {len(missing)} × {self.dimensions} numbers."
                )
            out[missing] = made
        for i, raw in enumerate(buffers):
            if raw is not None:
                out[i] = np.frombuffer(raw, dtype="<f4")
        return out

    def _usable(self, raw: bytes) -> bool:
        import numpy as np

        if len(raw) != 4 * self.dimensions:
            return False
        with np.errstate(invalid="ignore"):
            squares = np.square(np.frombuffer(raw, dtype="<f4").astype(np.float64)).sum()
        return bool(abs(squares - 1) < 0.02)  # False for NaN and infinity
