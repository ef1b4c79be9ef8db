"""The life of memories in PostgreSQL: their versions, links and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semmem.model.life import Version
from semmem.stores.postgres.encoding import memory_of

if TYPE_CHECKING:
    from semmem.stores.postgres.connection import Pooled

__all__ = ["PostgresLife"]


class PostgresLife:
    """The life of the memories of one PostgreSQL store; it asks with the store's connections."""

    def __init__(self, pool: Pooled) -> None:
        self._pool = pool

    def history(self, namespace: str, id: str) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; those forgotten softly too."""
        rows = self._pool.rows("history_list", {"namespace": namespace, "id": id})
        return [Version(memory_of(row[:-3]), *row[-3:]) for row in rows]
