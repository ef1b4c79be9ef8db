"""Snapshots for tests that read what a recall reads, without a recall."""

from __future__ import annotations

from semmem import Filters, Semmem
from semmem.legs.graph_names import Names
from semmem.model.store import Snapshot

__all__ = ["names_of", "snapshot"]


def snapshot(mem: Semmem, *namespaces: str) -> Snapshot:
    """Return a snapshot of namespaces from the database."""
    return mem.store.snapshot(namespaces, Filters(), (), ())


def names_of(mem: Semmem, namespace: str = "default") -> Names:
    """Return the names of a namespace as its corrections have them."""
    stored = snapshot(mem, namespace)
    return Names(stored, namespace, (stored.scope.corrections or {})[namespace])
