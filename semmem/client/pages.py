"""Pages of a list: all of them one after the other, and pages that are bounded by bytes as well as by a number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from semmem.model.types import Memory, Page

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["bounded_page", "every_memory"]

_FIRST = 20
"""Memories that are asked for first; how large they are says how many more are asked for at once."""


def every_memory(memory: Semmem, *, limit: int = 1_000, **arguments: Any) -> Iterator[Memory]:
    """Yield the memories that ``Semmem.list`` returns with these arguments, of every page, ``limit`` to a page."""
    cursor = None
    while True:
        page = memory.list(limit=limit, cursor=cursor, **arguments)
        yield from page
        if (cursor := page.cursor) is None:
            return


def bounded_page(
    memory: Semmem, *, most_bytes: int, limit: int = 100, cursor: str | None = None, **arguments: Any
) -> Page:
    """Return what ``Semmem.list`` does, without the memories that would make it larger than ``most_bytes`` of text.

    There is one at least. The cursor of the page goes on behind the last one. Raises what ``list`` raises.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 10_000:
        return memory.list(limit=limit, cursor=cursor, **arguments)  # which refuses it
    memories: list[Memory] = []
    size = 0
    while True:
        remaining = limit - len(memories)
        fitting = _FIRST if not size else (most_bytes - size) * len(memories) // size + 1
        page = memory.list(limit=min(remaining, fitting), cursor=cursor, **arguments)
        fits = 0
        for one in page:
            size += _bytes(one)
            if size > most_bytes and (memories or fits):
                break
            fits += 1
        is_full = fits < len(page)
        if is_full and fits:
            page = memory.list(limit=fits, cursor=cursor, **arguments)  # for its cursor
        if fits or not is_full:
            memories += page
            cursor = page.cursor
        if is_full or cursor is None or len(memories) == limit:
            return Page(tuple(memories), cursor)


def _bytes(memory: Memory) -> int:
    """Return about how many bytes of JSON a memory is."""
    return len(memory.text.encode("utf-8", "replace")) + len(json.dumps(memory.metadata, default=str)) + 300
