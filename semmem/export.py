"""Memories on their way out: one plain mapping each, all that people gave, in an order that depends on nothing else."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from semmem.embedders.known import vector_key
from semmem.protocols import Store
from semmem.searched import embedded_text
from semmem.types import Filters, Memory

__all__ = ["exported"]

_PAGE = 100
_MOST_PAGE = 1_000
_PAGE_CHARS = 4_000_000
"""About what one page of texts should hold, so that few long memories are no more than many short ones."""


def exported(
    store: Store, namespaces: Sequence[str] | None, filters: Filters, *, vectors: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield every whole memory of ``namespaces`` (None: of all) that ``filters`` match, as plain JSON values.

    Namespace after namespace in the order given (all: by name), newest first within each, as ``list`` has them. Fields
    that a memory does not have are left out. With ``vectors`` also those: of a store with given vectors ``vector``, a
    list; otherwise ``embedder``, its fingerprint, and ``vectors``, which map ``vector_key`` of what was embedded (the
    memory, or each of its parts) to float32 bytes in base64. Pages are read one after the other: what is written
    meanwhile may be missing.
    """
    identity = store.embedder() if vectors else None
    for namespace in store.namespaces() if namespaces is None else namespaces:
        cursor: str | None = None
        limit = _PAGE
        while True:
            page = store.list(namespace, filters, limit, cursor)
            for memory in page:
                row = _row(memory)
                if identity is not None:
                    row |= _vectors(store, memory, str(identity["name"]), str(identity["fingerprint"]))
                yield row
            cursor = page.cursor
            if cursor is None:
                break
            longest = sum(len(memory.text) for memory in page) // len(page) + 1
            limit = max(1, min(_MOST_PAGE, 2 * limit, _PAGE_CHARS // longest))


def _row(memory: Memory) -> dict[str, Any]:
    given = {
        "id": memory.id,
        "namespace": memory.namespace,
        "text": memory.text,
        "title": memory.title,
        "author": memory.author,
        "session": memory.session,
        "position": memory.position,
        "source": memory.source,
        "tags": list(memory.tags) or None,
        "metadata": _sorted(memory.metadata) or None,
        "importance": memory.importance,
        "created_at": _told(memory.created_at),
        "updated_at": _told(memory.updated_at),
        "version": memory.version,
    }
    return {name: value for name, value in given.items() if value is not None}


def _sorted(value: Any) -> Any:
    """Return JSON with the keys of every object in one order, whatever the store did to it."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def _told(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat()


def _vectors(store: Store, memory: Memory, name: str, fingerprint: str) -> dict[str, Any]:
    ords = store.locate(memory.namespace, memory.id)
    found, values = store.vectors([memory.namespace], ords)
    if not len(found):
        return {}
    if name.startswith("external:"):
        return {"vector": [float(x) for x in values[0]]}
    pieces = {ords[0]: memory} if len(ords) == 1 else store.memories([memory.namespace], ords)
    packed = {
        vector_key(embedded_text(pieces[ord])): base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
        for ord, vector in zip(found.tolist(), values, strict=True)
        if ord in pieces
    }
    return {"embedder": fingerprint, "vectors": packed}
