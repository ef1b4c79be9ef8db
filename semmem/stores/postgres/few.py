"""A few new memories, indexed by statements that are sent together: a round trip counts there, and a COPY is two.

The connection is in a pipeline and in a transaction; see semmem.stores.postgres.write for batches of any size.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from semmem.model.exchange import Row
from semmem.model.types import Memory
from semmem.stores.packed_postings import forward_entries
from semmem.stores.postgres.encoding import Vector, memory_of
from semmem.stores.postgres.vectors import claim_or_agree
from semmem.stores.sql_files import statements

__all__ = ["are_few", "index_few"]

_FEW = 16
"""Rows that are written one statement each, all of them sent together; more go faster by COPY."""
_SQL = statements("postgres")


def are_few(rows: Sequence[Row]) -> bool:
    """Return whether ``rows`` may be written in a pipeline, in which there is no COPY."""
    return len(rows) <= _FEW and not any(r.extraction is not None and r.extraction.relationships for r in rows)


def index_few(
    connection: Any, namespace: str, stored: Sequence[tuple[int, Row]], arrivals: Collection[int]
) -> tuple[int | None, tuple[int, int], Sequence[Memory]]:
    """Write what is derived from new memories, which stay pending.

    Returns the number of the note on ``arrivals``, how many memories are pending and segments fresh, and the memory as
    it is stored, if it is one. Raises EmbedderReplaced.
    """
    where = {"namespace": namespace}
    length = 0
    for ord, row in stored:
        if row.extraction is None:
            continue
        length += row.extraction.length
        entries = forward_entries([row.extraction]).tobytes()
        held = {**where, "ord": ord, "length": row.extraction.length, "entries": entries}
        connection.execute(_SQL["forward_add"], held)
        if row.vector is not None:
            connection.execute(_SQL["embedding_put"], {**where, "ord": ord, "vector": Vector(row.vector)})
    # behind the vectors: who fills the store is looked up once our own lock on their table is held
    tally = connection.execute(_SQL["tally_add"], {**where, "memories": len(stored), "length": length})
    for ord, row in stored:
        if row.extraction is not None:
            connection.execute(_SQL["pending_add"], {**where, "ord": ord, "names": list(row.extraction.names)})
    note = None
    if arrivals:
        keys = np.fromiter(sorted(arrivals), np.int64, len(arrivals))
        note = connection.execute(_SQL["alias_note"], {**where, "keys": keys})
    backlog = connection.execute(_SQL["backlog"], where)
    names = {row.name for _, row in stored}
    read = None
    if len(names) == 1:
        read = connection.execute(_SQL["memory_get"], {**where, "ids": [next(iter(names))[1]]}, binary=True)
    claim_or_agree(connection, tally.fetchone()[0], next((r.embedder for _, r in stored if r.vector is not None), None))
    whole = [memory_of(found) for found in read] if read is not None else []
    return None if note is None else int(note.fetchone()[0]), backlog.fetchone(), whole
