"""A stream of items in batches: as many as were asked for, fewer where the texts are long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from reprlib import repr as shown
from typing import Any

from semmem.model.errors import InvalidInput

__all__ = ["batches", "check_batches"]

_MOST_BATCH_CHARS = 20_000_000
"""A batch of long texts ends before its number of items is reached."""


def check_batches(batch_size: Any, on_error: Any) -> None:
    """Raise InvalidInput unless a stream can be written in batches of this size, with this answer to bad items."""
    if on_error not in ("abort", "skip"):
        raise InvalidInput(f'on_error must be "abort" or "skip", not {on_error!r}.')
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 100_000:
        raise InvalidInput(f"batch_size must be a whole number from 1 to 100000, not {shown(batch_size)}.")


def batches(items: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    """Yield (position, item) in batches of ``size``, of fewer where the texts are long."""
    batch: list[tuple[int, Any]] = []
    chars = 0
    for at, item in items:
        batch.append((at, item))
        text = item.get("text") if isinstance(item, Mapping) else None
        chars += len(text) if isinstance(text, str) else 0
        if len(batch) == size or chars >= _MOST_BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
