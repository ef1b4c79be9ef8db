"""Pages of a list that are bounded by bytes as well as by their number of memories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from semmem.model.types import Memory, Page
from semmem.stores.sql_files import cursor_after

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["bounded_page"]

_FIRST = 20
"""Memories that are asked for first; how large they are says how many more are asked for at once."""


def bounded_page(memory: Semmem, *, most_bytes: int, limit: int = 100, cursor: str | None = None, **asked: Any) -> Page:
    """Return what ``Semmem.list`` does, without the memories that would make it larger than ``most_bytes`` of text.

    There is one at least. The cursor of the page goes on behind the last one. Raises what ``list`` raises.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 10_000:
        return memory.list(limit=limit, cursor=cursor, **asked)  # which refuses it
    found: list[Memory] = []
    size = 0
    while True:
        left = limit - len(found)
        fitting = _FIRST if not size else (most_bytes - size) * len(found) // size + 1
        page = memory.list(limit=min(left, fitting), cursor=cursor, **asked)
        for one in page:
            size += _bytes(one)
            if found and size > most_bytes:
                return Page(tuple(found), cursor_after(found[-1]))
            found.append(one)
        cursor = page.cursor
        if cursor is None or len(found) == limit:
            return Page(tuple(found), cursor)


def _bytes(memory: Memory) -> int:
    """Return about how many bytes of JSON a memory is."""
    return len(memory.text.encode("utf-8", "replace")) + len(json.dumps(memory.metadata, default=str)) + 300
