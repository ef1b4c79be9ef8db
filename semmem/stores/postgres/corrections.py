"""Remove the corrections of names that no memory of a namespace mentions any more.

A correction holds the names themselves, so it must not outlive the last memory, hard-forgotten or become sensitive,
from whose text they are. A merge that nobody's forgetting concerns stays, whoever mentions its names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.stores.packed_postings import FORWARD
from semmem.stores.postgres.life import unpacked_entries
from semmem.stores.postgres.typed import Connection, Cursor
from semmem.stores.sql_files import statements

__all__ = ["corrected", "drop_unmentioned", "earlier_entries"]

_SQL = statements("postgres")


def earlier_entries(connection: Connection, namespace: str, ids: Collection[str]) -> Cursor:
    """Ask for the entries of the versions that the history has of some memories, if a name was ever corrected there."""
    return connection.execute(_SQL["history_entries"], {"namespace": namespace, "ids": sorted(ids)}, binary=True)


def corrected(
    connection: Connection, namespace: str, present: Iterable[bytes], earlier: Cursor | None = None
) -> NDArray[np.int64]:
    """Return the keys of the corrected names that stand in packed entries, and in those of ``earlier`` versions.

    Under the lock of the namespace's row, which who records a correction takes too.
    """
    rows = connection.execute(_SQL["corrections"], {"namespace": namespace}, binary=True).fetchall()
    keys = np.array([key for one, _, into, _ in rows for key in (one, into) if key is not None], dtype=np.int64)
    found: list[NDArray[Any]] = [np.zeros(0, dtype=np.int64)]
    if len(keys):
        found += [np.frombuffer(raw, dtype=FORWARD)["key"] for raw in present]
        found += [unpacked_entries(raw)["key"] for (raw,) in earlier or ()]
    return np.intersect1d(np.concatenate(found), keys)


def drop_unmentioned(connection: Connection, namespace: str, keys: NDArray[np.int64]) -> None:
    """Remove the corrections with one of ``keys`` that no indexed memory mentions, once the postings are up to date.

    The pending memories are read first: a flush moves what they mention into the postings.
    """
    if not len(keys):
        return
    which = {"namespace": namespace, "keys": keys}
    pending = connection.execute(_SQL["concepts_pending"], which, binary=True).fetchall()
    held = [np.frombuffer(raw, dtype=FORWARD)["key"] for raw, _ in pending]
    held.append(np.array([key for (key,) in connection.execute(_SQL["keys_held"], which)], dtype=np.int64))
    gone = np.setdiff1d(keys, np.concatenate(held))
    if len(gone) and connection.execute(_SQL["correction_drop"], {**which, "keys": gone}).rowcount:
        connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})
