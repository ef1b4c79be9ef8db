"""The protocols of a store: memories always; vectors, the graph and the life of memories where it keeps them.

A leg or a pipeline takes the protocol that it needs. The errors for a missing protocol are made here.
"""

from __future__ import annotations

from semmem.model.errors import InvalidInput
from semmem.model.store.graph import GraphStore
from semmem.model.store.life import LifeStore, LinkStore, RecallStore, VersionStore
from semmem.model.store.memories import Store
from semmem.model.store.serving import ServingStore
from semmem.model.store.snapshot import Moved, Snapshot, SnapshotSource
from semmem.model.store.upkeep import KEEP, Keep
from semmem.model.store.vectors import VectorStore

__all__ = [
    "KEEP",
    "GraphStore",
    "Keep",
    "LifeStore",
    "LinkStore",
    "Moved",
    "RecallStore",
    "ServingStore",
    "Snapshot",
    "SnapshotSource",
    "Store",
    "VectorStore",
    "VersionStore",
    "absence",
    "graph_of",
    "lacking",
    "life_of",
    "vectors_of",
]


_KEPT = {"lexical": "postings", "dense": "vectors", "graph": "graph"}


def lacking(store: Store, capability: str) -> str | None:
    """Return why ``store`` lacks ``capability``, as a sentence; None where it has it or the name is unknown."""
    if capability in store.capabilities or capability not in _KEPT:
        return None
    return f"A {store.kind} store keeps no {_KEPT[capability]}; a PostgreSQL store does (embedded: or postgresql://…)."


def absence(store: Store, capability: str) -> str:
    """Return in a few words why a leg cannot answer from ``store``, for ``Recall.degraded``."""
    return f"{store.kind} keeps no {_KEPT[capability]}"


def vectors_of(store: Store) -> VectorStore:
    """Return the vectors of ``store``. Raises InvalidInput, with the sentence of ``lacking``, where it keeps none."""
    if store.vectors is None:
        raise InvalidInput(lacking(store, "dense") or "")
    return store.vectors


def graph_of(store: Store) -> GraphStore:
    """Return the graph of ``store``. Raises InvalidInput, with the sentence of ``lacking``, where it keeps none."""
    if store.graph is None:
        raise InvalidInput(lacking(store, "graph") or "")
    return store.graph


def life_of(store: Store) -> LifeStore:
    """Return the life of the memories of ``store``. Raises InvalidInput where it keeps none."""
    if store.life is None:
        raise InvalidInput(
            f"A {store.kind} store has no versions, links or changes of memories; use PostgreSQL or SQLite."
        )
    return store.life
