"""Rerankers by name, loaded when first used: a second stage over the head of the fused list, off by default.

``composite`` weighs relevance, recency and importance; ``cross_encoder:MODEL`` reads question and memory together with
any sentence-transformers CrossEncoder, MODEL being a folder or the name of a model that is on this machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semmem.model.errors import InvalidInput

if TYPE_CHECKING:
    from semmem.model.protocols import Reranker

__all__ = ["NAMES", "known", "load"]

NAMES = ("composite", "cross_encoder:MODEL")


def known(name: str) -> None:
    """Raise InvalidInput unless ``name`` names a reranker; nothing is loaded, no model looked for."""
    _split(name)


def load(name: str) -> Reranker:
    """Return the reranker ``name``; a model is loaded at its first use.

    Raises InvalidInput for an unknown name and MissingExtra when a package it needs is not installed.
    """
    kind, model = _split(name)
    if kind == "composite":
        from semmem.rerankers.composite import Composite

        return Composite()
    from semmem.rerankers.cross_encoder import CrossEncoder

    return CrossEncoder(model)


def _split(name: str) -> tuple[str, str]:
    kind, colon, model = name.partition(":") if isinstance(name, str) else ("", "", "")
    if (kind == "composite" and not colon) or (kind == "cross_encoder" and model):
        return kind, model
    raise InvalidInput(f"There is no reranker named {name!r}; choose one of {', '.join(NAMES)}.")
