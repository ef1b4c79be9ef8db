"""Numbers of an open store that show whether it keeps up, for those who watch a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.client.memory import Semmem
from semmem.stores.resident.store import resident_asked

__all__ = ["of_process", "of_store"]


def of_process(mem: Semmem) -> Mapping[str, float]:
    """Return what this process knows without asking the store; what does not apply to it is left out."""
    pool, asked = mem.store.pool_use, resident_asked(mem._here.reader)
    found: dict[str, float] = {"in_use": pool.in_use, "waiting": pool.waiting, "most": pool.most}
    if asked is not None:
        found |= {"asked": asked.all, "missed": asked.missed}
    counts: Any = getattr(mem._here.reader, "counts", {})
    return {**found, **counts}


def of_store(mem: Semmem) -> Mapping[str, float]:
    """Return what the store has left to do; what is not known is left out. Takes a while in a large store."""
    backlog = mem.store.backlog()
    found = {
        "behind": backlog.waiting,
        "oldest": backlog.oldest_s or 0.0,
        "without_vector": backlog.without_vector,
        "backup": backlog.backup_s,
    }
    return {name: number for name, number in found.items() if number is not None}
