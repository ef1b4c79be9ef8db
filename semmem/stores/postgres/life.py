"""The life of memories in PostgreSQL: their versions, links and changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from semmem.model.life import Version, versions_of
from semmem.stores.postgres.encoding import memory_of
from semmem.stores.postgres.links import PostgresLinks
from semmem.stores.sql_files import statements

__all__ = ["PostgresLife", "keep"]

_SQL = statements("postgres")


class PostgresLife(PostgresLinks):
    """The life of the memories of one PostgreSQL store; it asks with the store's connections."""

    def history(self, namespace: str, id: str) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; those forgotten softly too."""
        rows = self._pool.rows("history_list", {"namespace": namespace, "id": id})
        return versions_of((memory_of(row[:-3]), *row[-3:]) for row in rows)


def keep(
    connection: Any, namespace: str, ords: Sequence[int], *, by: Mapping[str, str], forgotten: bool = False
) -> None:
    """Put memories into the history as they are, before they are changed or forgotten softly.

    In the transaction that does so, with their rows locked. ``by`` says who does it, by id.
    """
    which = {"namespace": namespace, "ords": list(ords), "by": Jsonb(dict(by)), "forgotten": forgotten}
    connection.execute(_SQL["history_keep"], which)
