"""Life: the verbs about what becomes of a memory after it was remembered. It wires the parts and holds no logic."""

from __future__ import annotations

from semmem.client.connection import Connection
from semmem.model.store import LifeStore, life_of

__all__ = ["Life"]


class Life(Connection):
    """The versions and the links of memories."""

    def _life(self) -> LifeStore:
        """Return where the versions, links and changes are. Raises InvalidInput for a store that keeps none."""
        return life_of(self.store)
