"""Remove the corrections of names that no memory of a namespace mentions any more.

A correction holds the names themselves, so it must not outlive the last memory, hard-forgotten or become sensitive,
from whose text they are. A merge that nobody's forgetting concerns stays, whoever mentions its names.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator

import numpy as np

from semmem.stores.packed_postings import FORWARD
from semmem.stores.sql_files import statements

__all__ = ["corrected", "drop_unmentioned"]

_SQL = statements("sqlite")


def corrected(connection: sqlite3.Connection, namespace: str, ids: Collection[str]) -> set[int]:
    """Return the keys of the corrected names that stand in some memories, or in versions of them in the history."""
    rows = connection.execute(_SQL["corrections"], {"namespace": namespace}).fetchall()
    keys = {key for one, _, into, _ in rows for key in (one, into) if key is not None}
    found: set[int] = set()
    for raw in _entries(connection, namespace, ids) if keys else ():
        found.update(keys.intersection(_keys(raw)))
    return found


def _entries(connection: sqlite3.Connection, namespace: str, ids: Collection[str]) -> Iterator[bytes]:
    """Yield the packed entries of the passages of some memories, and of their versions, as history_keep has them."""
    which = {"namespace": namespace, "ids": json.dumps(sorted(ids))}
    for (raw,) in connection.execute(_SQL["forward_of_ids"], which):
        yield raw
    for (packed,) in connection.execute(_SQL["history_entries"], which):
        yield from (bytes.fromhex(raw[0]) for _, _, _, *raw in json.loads(packed) if any(raw))


def _keys(raw: bytes) -> set[int]:
    return set(np.frombuffer(raw, dtype=FORWARD)["key"].tolist())


def drop_unmentioned(connection: sqlite3.Connection, namespace: str, keys: Collection[int]) -> None:
    """Remove the corrections with one of ``keys`` that no indexed memory mentions."""
    gone = [key for key in sorted(keys) if not _mentioned(connection, namespace, key)]
    which = {"namespace": namespace, "keys": json.dumps(gone)}
    if gone and connection.execute(_SQL["correction_drop"], which).rowcount:
        connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})


def _mentioned(connection: sqlite3.Connection, namespace: str, key: int) -> bool:
    which = {"namespace": namespace, "key": key.to_bytes(8, "little", signed=True)}
    return any(key in _keys(raw) for (raw,) in connection.execute(_SQL["forward_with_key"], which))
