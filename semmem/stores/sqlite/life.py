"""The life of memories in SQLite: their versions, links and changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from semmem.model.life import Forgotten, Version, versions_of
from semmem.stores.sqlite.links import SqliteLinks
from semmem.stores.sqlite.write import at_microsecond, memory_of

if TYPE_CHECKING:
    pass

__all__ = ["SqliteLife"]


class SqliteLife(SqliteLinks):
    """The life of the memories of one file; it asks with the store's connections."""

    def history(self, namespace: str, id: str) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; those forgotten softly too."""
        rows = self._file._rows("history_list", {"namespace": namespace, "id": id})
        return versions_of((memory_of(row[:-3]), row[-3], _time(row[-2]), _time(row[-1])) for row in rows)

    def forgotten(self, namespace: str, id: str) -> Forgotten | None:
        """Return what was forgotten softly last under ``id``; None where nothing was."""
        rows = self._file._rows("history_forgotten", {"namespace": namespace, "id": id})
        return Forgotten(memory_of(rows[0][:-1]), rows[0][-1]) if rows else None


def _time(number: int | None) -> datetime | None:
    return None if number is None else at_microsecond(number)
