"""What is like what in SQLite: what was said before, and what has keys in common. Each runs inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from semmem.model.exchange import Row
from semmem.model.life import MOST_SIMILAR, Similar
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.times import at_microsecond, microsecond

__all__ = ["corroborate", "first_of", "similar"]

_SQL = statements("sqlite")


def first_of(connection: sqlite3.Connection, row: Row) -> str | None:
    """Return the id of the memory that has said the same before, None where there is none."""
    said = {"content": row.content, "payload": row.payload, "now": microsecond(datetime.now(UTC))}
    namespace, id = row.name
    found = connection.execute(_SQL["memory_first"], {**said, "namespace": namespace, "id": id}).fetchone()
    return None if found is None else str(found[0])


def corroborate(connection: sqlite3.Connection, namespace: str, times: Mapping[str, int]) -> frozenset[str]:
    """Count for each id how often it was remembered again; see LifeStore."""
    now = microsecond(datetime.now(UTC))
    each = [{"namespace": namespace, "id": id, "times": count, "now": now} for id, count in times.items()]
    return frozenset(row[0] for one in each for row in connection.execute(_SQL["memory_corroborate"], one).fetchall())


def similar(
    connection: sqlite3.Connection, namespace: str, keys: Mapping[int, Sequence[int]]
) -> dict[int, list[Similar]]:
    """Store the keys of memories, by ord, and return what has keys in common with each; see LifeStore."""
    each = [(ord, key) for ord, some in keys.items() for key in some]
    connection.executemany(
        _SQL["likeness_add"], [{"namespace": namespace, "key": key, "ord": ord} for ord, key in each]
    )
    shared: dict[int, dict[int, list[int]]] = {}
    where = {"namespace": namespace, "newest": MOST_SIMILAR}
    for ord, key in each:
        for (other,) in connection.execute(_SQL["likeness_find"], {**where, "key": key, "ord": ord}):
            shared.setdefault(ord, {}).setdefault(other, []).append(key)
    best = {
        ord: sorted(found.items(), key=lambda pair: (-len(pair[1]), -pair[0]))[:MOST_SIMILAR]
        for ord, found in shared.items()
    }
    ords = sorted({other for found in best.values() for other, _ in found})
    asked = {"namespace": namespace, "ords": json.dumps(ords), "now": microsecond(datetime.now(UTC))}
    rows = {row[0]: row for row in connection.execute(_SQL["likeness_memories"], asked)} if ords else {}
    return {
        ord: [
            Similar(tuple(some), row[1], other, row[2], row[3], row[4], at_microsecond(row[5]))
            for other, some in found
            if (row := rows.get(other)) is not None
        ]
        for ord, found in best.items()
    }
