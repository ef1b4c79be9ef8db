"""Find repeated and similar memories in SQLite. Every function runs inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain

import numpy as np

from semmem.model.exchange import Row
from semmem.model.history import MOST_SIMILAR, WAITING_S, Similar
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.times import at_microsecond, microsecond

__all__ = [
    "corroborate",
    "first_of",
    "long_ago",
    "mark_compared",
    "note_around",
    "part",
    "similar",
    "similar_around",
    "similar_to",
]

_SQL = statements("sqlite")


def first_of(connection: sqlite3.Connection, row: Row) -> str | None:
    """Return the id of the first stored memory with the same content, None where there is none."""
    namespace, id = row.name
    parameters = {"namespace": namespace, "id": id, "content": row.content, "payload": row.payload}
    first = connection.execute(_SQL["memory_first"], parameters).fetchone()
    return None if first is None else str(first[0])


def corroborate(
    connection: sqlite3.Connection,
    namespace: str,
    times: Mapping[str, int],
    besides: Collection[str] | None,
    contents: Mapping[str, bytes],
) -> frozenset[str]:
    """Count for each id how often it was remembered again; see LifeStore."""
    common = {
        "now": microsecond(datetime.now(UTC)),
        "besides": None if besides is None else json.dumps(sorted(besides)),
    }
    counts = ({"id": id, "times": count, "content": contents.get(id)} for id, count in times.items())
    each = [{"namespace": namespace, **one, **common} for one in counts]
    return frozenset(row[0] for one in each for row in connection.execute(_SQL["memory_corroborate"], one).fetchall())


def similar_around(
    connection: sqlite3.Connection, namespace: str, keys: Mapping[int, Sequence[int]]
) -> dict[int, list[Similar]]:
    """Store the keys of memories that still exist; return the memories that share keys with each; see LifeStore."""
    memories = _memories(connection, namespace, sorted(keys))
    which = {"namespace": namespace, "ords": json.dumps(sorted(memories))}
    connection.execute(_SQL["likeness_again"], which)
    return similar(connection, namespace, {row_id: keys[row_id] for row_id in sorted(memories)}, around=True)


def similar(
    connection: sqlite3.Connection, namespace: str, keys: Mapping[int, Sequence[int]], *, around: bool = False
) -> dict[int, list[Similar]]:
    """Store the keys of memories, by row id; return the earlier memories that share keys with each.

    With ``around``, later memories are returned as well. One statement asks for all of them before their own keys are
    stored; keys that the memories share among themselves need no query.
    """
    sizes = [len(some) for some in keys.values()]
    key_column = np.fromiter(chain.from_iterable(keys.values()), np.int64, sum(sizes))
    row_ids = np.repeat(np.fromiter(keys, np.int64, len(sizes)), sizes)
    order = np.lexsort((row_ids, key_column))  # in the order of the table
    key_column, row_ids = key_column[order], row_ids[order]
    each, starts, counts = np.unique(key_column, return_index=True, return_counts=True)
    where = {"namespace": namespace, "newest": MOST_SIMILAR, "keys": json.dumps(each.tolist())}
    stored = {key: json.loads(some) for key, some in connection.execute(_SQL["likeness_find"], where)}
    pairs = json.dumps(np.stack((key_column, row_ids), axis=1).tolist())
    connection.execute(_SQL["likeness_add"], {"namespace": namespace, "pairs": pairs})
    shared: dict[int, Counter[int]] = {}
    common = (counts > 1) | np.isin(each, np.fromiter(stored, np.int64, len(stored)))
    for key, start, count in zip(each[common].tolist(), starts[common].tolist(), counts[common].tolist(), strict=True):
        own = row_ids[start : start + count].tolist()
        ascending = sorted({*stored.get(key, ()), *own})
        for row_id in own:
            place = len(ascending) if around else bisect_left(ascending, row_id)
            others_of_key = [other for other in ascending[max(0, place - MOST_SIMILAR - 1) : place] if other != row_id]
            shared.setdefault(row_id, Counter()).update(others_of_key[-MOST_SIMILAR:])
    best = {
        row_id: sorted(counter.items(), key=lambda pair: (-pair[1], -pair[0]))[:MOST_SIMILAR]
        for row_id, counter in shared.items()
    }
    note = {"namespace": namespace, "ords": json.dumps(sorted(best)), "now": microsecond(datetime.now(UTC))}
    connection.execute(_SQL["comparison_note"], note)
    others = sorted({other for neighbours in best.values() for other, _ in neighbours})
    rows = _memories(connection, namespace, others) if others else {}
    return {row_id: [rows[other] for other, _ in neighbours if other in rows] for row_id, neighbours in best.items()}


def similar_to(
    connection: sqlite3.Connection, rows: Mapping[tuple[str, str], Row], row_ids: Mapping[tuple[str, str, int], int]
) -> dict[tuple[str, str], list[Similar]]:
    """Store the keys of the memories that were written, and return what is ``similar`` to each, by (namespace, id)."""
    keys: dict[str, dict[int, Sequence[int]]] = {}
    named = {}
    for (namespace, id), row in rows.items():
        if row.likeness and (namespace, id, 0) in row_ids:
            row_id = row_ids[namespace, id, 0]
            keys.setdefault(namespace, {})[row_id] = row.likeness
            named[namespace, row_id] = namespace, id
    return {named[n, row_id]: some for n, each in keys.items() for row_id, some in similar(connection, n, each).items()}


def mark_compared(connection: sqlite3.Connection, namespace: str, row_ids: Collection[int]) -> bool:
    """Store that memories were compared; return whether others wait."""
    connection.execute(_SQL["comparison_done"], {"namespace": namespace, "ords": json.dumps(sorted(row_ids))})
    parameters = {"namespace": namespace, "before": long_ago()}
    return bool(connection.execute(_SQL["comparison_left"], parameters).fetchone()[0])


def long_ago() -> int:
    """Return the time before which nobody is about to link any more what was noted then."""
    return microsecond(datetime.now(UTC)) - int(WAITING_S * 1e6)


def note_again(connection: sqlite3.Connection, namespace: str, ids: Collection[str]) -> None:
    """Note that memories are to be compared again."""
    connection.execute(_SQL["comparison_again"], {"namespace": namespace, "ids": json.dumps(sorted(ids))})


def note_around(connection: sqlite3.Connection, namespace: str, ids: Collection[str]) -> None:
    """Note that what semmem has linked with some memories, which go or say something else, is to be compared again."""
    connection.execute(_SQL["comparison_around"], {"namespace": namespace, "ids": json.dumps(sorted(ids))})


def part(connection: sqlite3.Connection, namespace: str, ids: Collection[str]) -> list[tuple[str, str, str]]:
    """Take away the links that semmem made of memories that say something else now, and return them."""
    note_around(connection, namespace, ids)
    which = {"namespace": namespace, "ids": json.dumps(sorted(ids))}
    return [(one, type, other) for one, type, other in connection.execute(_SQL["link_forget_made"], which).fetchall()]


def _memories(connection: sqlite3.Connection, namespace: str, row_ids: Sequence[int]) -> dict[int, Similar]:
    """Return those of some memories that exist and may be compared, by row id."""
    parameters = {"namespace": namespace, "ords": json.dumps(row_ids), "now": microsecond(datetime.now(UTC))}
    return {
        row[0]: Similar(row[1], row[0], row[2], row[3], row[4], at_microsecond(row[5]))
        for row in connection.execute(_SQL["likeness_memories"], parameters)
    }
