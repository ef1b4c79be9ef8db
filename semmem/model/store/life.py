"""What a store of memories offers that keeps what becomes of them: versions, links, changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from semmem.model.life import Version

__all__ = ["LifeStore"]


class LifeStore(Protocol):
    """The life of the memories of a store. Every method is safe to call from any thread."""

    def history(self, namespace: str, id: str) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; those forgotten softly too."""
        ...
