"""Embedders by name, loaded when first used. A missing package is reported with the pip line that adds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from semmem.errors import InvalidInput

if TYPE_CHECKING:
    from semmem.protocols import Embedder

__all__ = ["NAMES", "identity", "load"]

NAMES = ("minilm", "hashing")


def identity(embedder: Embedder) -> dict[str, Any]:
    """Return what tells an embedder from every other: name, dimensions and fingerprint."""
    return {"name": embedder.name, "dimensions": embedder.dimensions, "fingerprint": embedder.fingerprint}


def load(name: str, *, path: str | None = None) -> Embedder:
    """Return the embedder ``name`` without loading its model; ``path`` is a model folder for ``minilm``.

    Raises EmbedderUnavailable when its model is nowhere to be found and InvalidInput for an unknown name.
    """
    if name == "minilm":
        from semmem.embedders.minilm import MiniLM

        return MiniLM(path)
    if name == "hashing":
        from semmem.embedders.hashing import Hashing

        return Hashing()
    raise InvalidInput(f"There is no embedder named {name!r}; choose one of {', '.join(NAMES)}, or pass an object.")
