"""What a store declares that it keeps, and the one sentence for a caller who asks it for more.

A store's ``capabilities`` are names: ``lexical`` (postings), ``dense`` (vectors), ``graph`` (concepts, corrections,
relationships). A leg is built where its capability is declared, and degraded with this sentence where it is not.
"""

from __future__ import annotations

from typing import Any

from semmem.errors import InvalidInput

__all__ = ["absence", "lacking", "need"]

_KEPT = {"lexical": "postings", "dense": "vectors", "graph": "graph"}


def lacking(store: Any, capability: str) -> str | None:
    """Return why ``store`` cannot do what takes ``capability``; None where it declares it, or nobody knows the name."""
    if capability in store.capabilities or capability not in _KEPT:
        return None
    return f"A {store.kind} store keeps no {_KEPT[capability]}; a PostgreSQL store does (embedded: or postgresql://…)."


def absence(store: Any, capability: str) -> str:
    """Return in a few words why a leg cannot answer from ``store``, for what every recall says of itself."""
    return f"{store.kind} keeps no {_KEPT[capability]}"


def need(store: Any, capability: str) -> None:
    """Raise InvalidInput, with the same sentence, unless ``store`` declares ``capability``."""
    if (why := lacking(store, capability)) is not None:
        raise InvalidInput(why)
