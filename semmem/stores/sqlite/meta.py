"""Facts about a whole file, such as which embedder fills it. Every function runs inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from semmem.stores.filled_by import claimed
from semmem.stores.sql_files import statements

__all__ = ["claim", "fact"]

_SQL = statements("sqlite")


def fact(connection: sqlite3.Connection, key: str = "embedder") -> Mapping[str, Any] | None:
    """Return a fact, by default the identity of the embedder that fills the store; None where it is not recorded."""
    row = connection.execute(_SQL["meta_get"], {"key": key}).fetchone()
    return None if row is None else dict(json.loads(row[0]))


def claim(connection: sqlite3.Connection, embedder: Mapping[str, Any]) -> None:
    """Record ``embedder`` as the one that fills the store. Raises EmbedderReplaced where another one does by now."""
    connection.execute(_SQL["meta_claim"], {"key": "embedder", "value": json.dumps(dict(embedder))})
    claimed(fact(connection), embedder)
