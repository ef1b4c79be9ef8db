"""Files of other programs as items for remember_many: one module a format, each with ``read(path)``.

An importer sets author, session, position and created_at, gives every memory an id that is the same next time, and says
of every row that cannot be stored where it stands and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from semmem.errors import InvalidInput
from semmem.interfaces.importers.rows import BadRow, Item

__all__ = ["FORMATS", "BadRow", "Item", "owned", "reader"]

FORMATS = {
    "chat": "chat_jsonl",
    "csv": "table",
    "jsonl": "memories",
    "locomo": "locomo",
    "longmemeval": "longmemeval",
    "markdown": "markdown",
    "mcp": "knowledge",
    "mem0": "mem0",
}
"""What ``semmem import`` reads, and the module that reads it."""


def reader(format: str) -> Callable[..., Iterator[Item]]:
    """Return ``read(path, *, reject=None, …)`` of a format; csv and jsonl take more. Raises InvalidInput."""
    from importlib import import_module

    if format not in FORMATS:
        raise InvalidInput(f"There is no importer for {format!r}; take one of: {', '.join(FORMATS)}.")
    read: Callable[..., Iterator[Item]] = import_module(f"semmem.interfaces.importers.{FORMATS[format]}").read
    return read


def owned(format: str, path: Path) -> dict[str, Any] | None:
    """Return the filters of the memories that an earlier import of ``path`` has stored and this one may replace.

    None for a format whose memories are never replaced: all but ``markdown``.
    """
    if format != "markdown":
        return None
    from semmem.interfaces.importers.vault import vault_name

    return {"metadata": {"vault": vault_name(path)}}
