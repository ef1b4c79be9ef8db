"""Rows of PostgreSQL as the nouns of semmem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from semmem.legs.conversation import author_key
from semmem.model.exchange import Row
from semmem.model.types import Memory

__all__ = ["columns_of", "memory_of"]

_AS_THEY_ARE = (
    "namespace", "text", "title", "author", "session", "position", "source", "importance", "created_at", "updated_at",
    "version",
)  # fmt: skip


def memory_of(row: Any) -> Memory:
    """Return the memory of a row of ``memory``, its ord last; a part has the id ``{id}#{part}``."""
    (namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, *rest) = row
    created_at, updated_at, version, _ = rest
    return Memory(
        id=f"{id}#{part}" if part else id,
        namespace=namespace,
        text=text,
        title=title,
        author=author,
        session=session,
        position=position,
        source=source,
        tags=tuple(tags),
        metadata=metadata,
        importance=importance,
        created_at=created_at,
        updated_at=updated_at,
        version=version,
        parent_id=id if part else None,
    )


def columns_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return rows to be written as a list for each column of ``memory``."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        memory = row.memory
        for field in _AS_THEY_ARE:
            columns[field].append(getattr(memory, field))
        columns["id"].append(row.name[1])
        columns["author_key"].append((author_key(memory.author) or None) if memory.author else None)
        columns["part"].append(row.part)
        columns["parts"].append(row.parts)
        columns["tags"].append(Jsonb(list(memory.tags)))
        columns["metadata"].append(Jsonb(dict(memory.metadata)))
        columns["content"].append(row.content)
        columns["payload"].append(row.payload)
    return columns
