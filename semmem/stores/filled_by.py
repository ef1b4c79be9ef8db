"""The errors of a vector whose embedder is not the one that fills the store. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.model.errors import EmbedderReplaced

__all__ = ["agree", "claimed"]


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
