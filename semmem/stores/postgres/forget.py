"""Forgetting a whole namespace in PostgreSQL: the server deletes, and no entry of a posting travels to the client."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.stores.packed_postings import FORWARD
from semmem.stores.postgres import write
from semmem.stores.sql_files import statements

__all__ = ["empty"]

_SQL = statements("postgres")
_AT_ONCE = 20_000
"""Ords that one statement names."""
_BY_ORD = ("forget_embedding", "forget_shadow", "relationship_forget", "forget_memory")


def empty(connection: Any, namespace: str) -> int:
    """Forget every memory of a namespace, what was derived from them, and its settings; return how many memories.

    Runs inside a transaction. Nobody else writes segments of this namespace meanwhile, so those that can be seen hold
    memories of ours alone; what others remember in the meantime stays, whole.
    """
    where = {"namespace": namespace}
    connection.execute(_SQL["postings_own"], where)
    connection.execute(_SQL["segments_own"], where)
    memories, raw = connection.execute(_SQL["empty_select"], where, binary=True).fetchone()
    ords = np.frombuffer(raw, dtype=">i8").astype(np.int64)
    indexed = length = 0
    about: list[NDArray[np.int64]] = []
    for start in range(0, len(ords), _AT_ONCE):
        which = {"namespace": namespace, "ords": ords[start : start + _AT_ONCE]}
        pending = [ord for (ord,) in connection.execute(_SQL["forget_pending"], which)]
        if pending:
            forwards = {"namespace": namespace, "ords": pending}
            for _, _, raw in connection.execute(_SQL["fold_forwards"], forwards, binary=True):
                entries = np.frombuffer(raw, dtype=FORWARD)
                about.append(entries["key"][entries["subject"] > 0])
        for statement in _BY_ORD:
            connection.execute(_SQL[statement], which)
        some, long = connection.execute(_SQL["empty_forward"], which).fetchone()
        indexed, length = indexed + some, length + long
    if connection.execute(_SQL["empty_left"], where).fetchone()[0]:  # of others, who took our names for known
        connection.execute(_SQL["empty_note"], where)
        if about:
            write.note_aliases(connection, namespace, np.unique(np.concatenate(about)).tolist())
    connection.execute(_SQL["empty_posting"], where)
    connection.execute(_SQL["fresh_empty"], where)
    connection.execute(_SQL["alias_empty"], where)
    connection.execute(_SQL["empty_setting"], where)
    if indexed:
        connection.execute(_SQL["tally_add"], {**where, "memories": -indexed, "length": -length})
        connection.execute(_SQL["tally_fold"], where)
    return int(memories)
