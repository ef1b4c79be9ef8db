"""Rows of PostgreSQL as the nouns of semmem."""

from __future__ import annotations

from typing import Any

from semmem.types import Memory

__all__ = ["memory_of"]


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
