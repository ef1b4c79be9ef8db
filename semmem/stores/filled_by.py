"""Which embedder fills a store, and which rebuild of it is unfinished; the error of a vector of another one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from semmem.model.errors import EmbedderReplaced
from semmem.model.store.graph import PLACE

__all__ = ["agree", "claimed", "unfinished"]


def agree(recorded: Mapping[str, Any] | None, embedder: Mapping[str, Any] | None) -> None:
    """Raise EmbedderReplaced unless ``embedder`` is the one that fills the store; None is an unknown embedder."""
    if embedder is None or (recorded is not None and dict(recorded) == dict(embedder)):
        return
    now = f"{recorded['name']} ({recorded['dimensions']} dimensions)" if recorded else "nobody"
    raise EmbedderReplaced(
        f"This store is filled by {now} now and this vector is of {embedder['name']} ({embedder['dimensions']} "
        "dimensions): a rebuild has replaced that embedder since you connected; call semmem.connect() again."
    )


def claimed(recorded: Mapping[str, Any] | None, embedder: Mapping[str, Any]) -> None:
    """Raise EmbedderReplaced where the first vector of ``embedder`` comes after that of another embedder."""
    if recorded is not None and dict(recorded) != dict(embedder):
        raise EmbedderReplaced(
            f"Another process has just begun to fill this store, with {recorded['name']} ({recorded['dimensions']} "
            f"dimensions), and this vector is of {embedder['name']} ({embedder['dimensions']} dimensions); use the "
            "first, or another store."
        )


def unfinished(
    fact: Callable[[str], Mapping[str, Any] | None], next_embedder: str, count: Callable[[], int]
) -> dict[str, tuple[str, int]]:
    """Return which rebuilds of ``vectors`` and ``concepts`` are unfinished or running: for what, and how far.

    ``fact`` returns what the store records under a name; ``count`` returns the size of the staging vectors.
    """
    rebuilds = {}
    if (embedder := fact(next_embedder)) is not None:
        rebuilds["vectors"] = (str(embedder["name"]), int(count()))
    if (place := fact(PLACE)) is not None:
        rebuilds["concepts"] = (str(place["by"]["name"]), int(place.get("read", 0)))
    return rebuilds
