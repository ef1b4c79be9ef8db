"""Writing to SQLite: a batch, what is forgotten, what is read anew. Each runs inside a transaction with the write lock.

What the lexical leg matches is written as tokens into an FTS5 table: the number of the namespace and the key of a term,
in letters that FTS5 leaves as they are. So semmem's own tokeniser, its stems, stop words and pairs of Chinese
characters, decides what matches, and two namespaces have no token in common.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from semmem.model.errors import Conflict
from semmem.model.exchange import Extraction, Row, Written
from semmem.model.types import Filters
from semmem.stores.sql_files import statements
from semmem.text.tokens import author_key

__all__ = ["at_microsecond", "empty", "filter_parameters", "forget", "microsecond", "reindex", "token", "write"]

_SQL = statements("sqlite")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_REPEATS = 65_535
_AS_THEY_ARE = ("namespace", "text", "title", "author", "session", "position", "source", "importance")


def microsecond(at: datetime) -> int:
    """Return a time as whole microseconds since 1970 in UTC, so that numbers sort as times do."""
    return (at - _EPOCH) // _MICROSECOND


def at_microsecond(number: int) -> datetime:
    """Return the time of ``microsecond`` in UTC."""
    return _EPOCH + number * _MICROSECOND


def token(number: int, key: int) -> str:
    """Return what stands in the index for a term's key in the namespace of that number."""
    return f"{number}n{key & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def filter_parameters(filters: Filters) -> dict[str, Any]:
    """Return the parameters of the filter clauses; None means no restriction."""
    return {
        "sessions": json.dumps(filters.sessions) if filters.sessions else None,
        "authors": json.dumps(filters.authors) if filters.authors else None,
        "tags": json.dumps(filters.tags) if filters.tags else None,
        "metadata": json.dumps(dict(filters.metadata)) if filters.metadata else None,
        "after": None if filters.created_after is None else microsecond(filters.created_after),
        "before": None if filters.created_before is None else microsecond(filters.created_before),
    }


def write(connection: sqlite3.Connection, rows: Sequence[Row], on_conflict: str) -> Written:
    """Store a batch; see Store.write."""
    wholes = {r.name: r for r in rows if r.part == 0}
    ords: dict[tuple[str, str, int], int] = {}
    unchanged: set[tuple[str, str]] = set()
    conflicts: set[tuple[str, str]] = set()
    replaced: set[tuple[str, str]] = set()
    for name, row in wholes.items():
        if row.replaces is not None:
            if not _take_out(connection, name, row.replaces):
                conflicts.add(name)
                continue
            replaced.add(name)
        ord = _insert(connection, row)
        if ord is not None:
            ords[(*name, 0)] = ord
            continue
        stored = connection.execute(_SQL["memory_payload"], {"namespace": name[0], "id": name[1]}).fetchone()[0]
        (unchanged if stored == row.payload else conflicts).add(name)
    if conflicts and on_conflict == "abort":
        first = min(conflicts)
        raise Conflict(
            f"The id {first[1]!r} is already stored in namespace {first[0]!r} with other content; call update to "
            "change it.",
            names=frozenset(conflicts),
        )
    new = {(namespace, id) for namespace, id, _ in ords}
    for row in rows:
        if row.part > 0 and row.name in new:
            ord = _insert(connection, row)
            assert ord is not None
            ords[(*row.name, row.part)] = ord
    indexed = [(ords[(*r.name, r.part)], r) for r in rows if r.extraction is not None and r.name in new]
    for namespace in sorted({r.memory.namespace for _, r in indexed}):
        connection.execute(_SQL["tally_claim"], {"namespace": namespace})
        number = _number(connection, namespace)
        held = [(o, r.extraction) for o, r in indexed if r.memory.namespace == namespace and r.extraction is not None]
        connection.executemany(
            _SQL["lexical_insert"], [{"ord": ord, "tokens": _tokens(number, found)} for ord, found in held]
        )
        _count(connection, namespace, len(held), sum(found.length for _, found in held))
    return Written(
        frozenset(new - replaced), frozenset(unchanged), frozenset(conflicts), ords, replaced=frozenset(replaced)
    )


def _take_out(connection: sqlite3.Connection, name: tuple[str, str], version: int) -> bool:
    """Remove a memory that another takes the place of; False, and nothing is done, unless it is of that version."""
    rows = connection.execute(_SQL["replace_select"], {"namespace": name[0], "id": name[1]}).fetchall()
    if not rows or rows[0][:2] != (version, 0):
        return False
    _remove(connection, name[0], [row[2:] for row in rows])
    return True


def _remove(connection: sqlite3.Connection, namespace: str, rows: Sequence[tuple[int, int, int]]) -> None:
    """Remove rows, each (parts, ord, length), and all that was derived from them."""
    indexed = [(ord, length) for parts, ord, length in rows if parts == 0]
    connection.executemany(_SQL["lexical_forget"], [{"ord": ord} for ord, _ in indexed])
    connection.executemany(_SQL["forget_memory"], [{"ord": ord} for _, ord, _ in rows])
    _count(connection, namespace, -len(indexed), -sum(length for _, length in indexed))


def forget(connection: sqlite3.Connection, namespace: str, id: str | None, filters: Filters, *, dry_run: bool) -> int:
    """Remove memories and all that was derived from them; return how many whole memories."""
    parameters = {"namespace": namespace, "id": id, **filter_parameters(filters)}
    rows = connection.execute(_SQL["forget_select"], parameters).fetchall()
    wholes = {i for i, part, *_ in rows if part == 0}
    if dry_run or not rows:
        return len(wholes)
    _remove(connection, namespace, [row[2:] for row in rows])
    connection.execute(_SQL["tally_empty"], {"namespace": namespace})
    return len(wholes)


def empty(connection: sqlite3.Connection, namespace: str) -> int:
    """Forget every memory of a namespace, and its settings; return how many whole memories."""
    where = {"namespace": namespace}
    memories = int(connection.execute(_SQL["empty_count"], where).fetchone()[0])
    for statement in ("empty_lexical", "empty_memory", "empty_tally", "empty_setting"):
        connection.execute(_SQL[statement], where)
    return memories


def reindex(connection: sqlite3.Connection, namespace: str, found: Sequence[tuple[int, Extraction]]) -> int:
    """Let memories match what was found in them anew; return how many were changed. Forgotten ones are left out."""
    changed = longer = 0
    number: int | None = None
    for ord, extraction in found:
        there = connection.execute(_SQL["memory_length"], {"namespace": namespace, "ord": ord}).fetchone()
        if there is None:
            continue
        number = _number(connection, namespace) if number is None else number
        length, tokens = there
        anew = _tokens(number, extraction)
        if (length, tokens) == (extraction.length, anew):
            continue
        connection.execute(_SQL["lexical_replace"], {"ord": ord, "tokens": anew})
        connection.execute(_SQL["memory_lengthen"], {"ord": ord, "length": extraction.length})
        changed += 1
        longer += extraction.length - length
    if longer:
        _count(connection, namespace, 0, longer)
    return changed


def _insert(connection: sqlite3.Connection, row: Row) -> int | None:
    """Store one row and return its ord; None when its id is there already."""
    memory = row.memory
    assert memory.created_at is not None
    assert memory.updated_at is not None
    values: dict[str, Any] = {name: getattr(memory, name) for name in _AS_THEY_ARE}
    values |= {
        "id": memory.parent_id or memory.id,
        "part": row.part,
        "parts": row.parts,
        "author_key": (author_key(memory.author) or None) if memory.author else None,
        "tags": json.dumps(memory.tags),
        "metadata": json.dumps(dict(memory.metadata)),
        "created_at": microsecond(memory.created_at),
        "updated_at": microsecond(memory.updated_at),
        "version": memory.version,
        "content": row.content,
        "payload": row.payload,
        "length": row.extraction.length if row.extraction is not None else 0,
    }
    done = connection.execute(_SQL["memory_insert"], values)
    return done.lastrowid if done.rowcount == 1 else None


def _tokens(number: int, found: Extraction) -> str:
    counted = zip(found.keys, found.counts, strict=True)
    return " ".join(" ".join([token(number, key)] * min(n, _MOST_REPEATS)) for key, n in counted if n > 0)


def _number(connection: sqlite3.Connection, namespace: str) -> int:
    rows = connection.execute(_SQL["tally_of"], {"namespaces": json.dumps([namespace])}).fetchall()
    return int(rows[0][1])


def _count(connection: sqlite3.Connection, namespace: str, memories: int, length: int) -> None:
    parameters: Mapping[str, Any] = {"namespace": namespace, "memories": memories, "length": length}
    connection.execute(_SQL["tally_add"], parameters)
