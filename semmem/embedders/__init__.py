"""Embedders by name, loaded when first used. A missing package is reported with the pip line that adds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from semmem.errors import EmbedderUnavailable, InvalidInput, MissingExtra

if TYPE_CHECKING:
    from semmem.protocols import Embedder

__all__ = ["NAMES", "identity", "known_as", "load", "load_recorded"]

NAMES = ("minilm", "hashing")
_MODELS = {"minilm": "all-MiniLM-L6-v2"}
"""What an embedder calls itself, where that is not its name here."""


def identity(embedder: Embedder) -> dict[str, Any]:
    """Return what tells an embedder from every other: name, dimensions and fingerprint."""
    return {"name": embedder.name, "dimensions": embedder.dimensions, "fingerprint": embedder.fingerprint}


def known_as(recorded: str) -> str:
    """Return the name by which an embedder is asked for, of the one that calls itself ``recorded``."""
    return next((name for name, model in _MODELS.items() if model == recorded), recorded)


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


def load_recorded(recorded: Mapping[str, Any], *, path: str | None = None) -> Embedder:
    """Return the embedder of the identity ``recorded`` without loading its model.

    Raises EmbedderUnavailable, or MissingExtra, when it is none that has a name here or its model is not there.
    """
    for name in NAMES:
        try:
            found = load(name, path=path)
        except (EmbedderUnavailable, MissingExtra):
            if known_as(recorded["name"]) == name:
                raise
            continue
        if found.name == recorded["name"] and identity(found) == dict(recorded):  # without reading weights in vain
            return found
    raise EmbedderUnavailable(f"Neither {' nor '.join(NAMES)} is that one, with these weights.")
