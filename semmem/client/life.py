"""Life: the verbs about what becomes of a memory after it was remembered. It wires the parts and holds no logic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from semmem.client.connection import Connection
from semmem.model.errors import NotFound
from semmem.model.filters import shown_by, string
from semmem.model.life import Version
from semmem.model.store import LifeStore, life_of

__all__ = ["Life"]


class Life(Connection):
    """The versions and the links of memories."""

    def history(self, id: str, *, namespace: str = "default", reveal: bool = False) -> Sequence[Version]:
        """Return the versions of the memory ``id``, oldest first, the current one last. Raises NotFound.

        Each says which fields it changed, when, and by whom where a name was given; ``diff`` of a version shows how it
        differs from another. A memory that was forgotten softly still has its versions, until it is gone for good. The
        texts of sensitive versions are shown where it is to ``reveal`` them: all up to the one that became sensitive.
        """
        where, shown = string("namespace", namespace), shown_by(reveal)
        found = self._life().history(where, string("id", id))
        if not found:
            raise NotFound(f"There is no memory {id!r} in namespace {namespace!r}; `semmem list` shows what is stored.")
        return [replace(one, memory=shown(one.memory)) for one in found]

    def _life(self) -> LifeStore:
        """Return where the versions, links and changes are. Raises InvalidInput for a store that keeps none."""
        return life_of(self.store)
