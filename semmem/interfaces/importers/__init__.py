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

__all__ = ["FORMATS", "MARK", "MARKED", "BadRow", "Item", "owned", "reader", "told_apart"]

_SOME = 50

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


MARK = "imported_from"
"""The key of metadata by which the memories of one file are known as its own."""
MARKED = ("chat", "csv", "jsonl")
"""The formats whose memories bear it; JSON lines only where they may replace, for they say all of a memory."""


def reader(format: str) -> Callable[..., Iterator[Item]]:
    """Return ``read(path, *, reject=None, …)`` of a format; csv and jsonl take more. Raises InvalidInput."""
    from importlib import import_module

    if format not in FORMATS:
        raise InvalidInput(f"There is no importer for {format!r}; take one of: {', '.join(FORMATS)}.")
    read: Callable[..., Iterator[Item]] = import_module(f"semmem.interfaces.importers.{FORMATS[format]}").read
    return read


def told_apart(format: str, path: Path, mem: Any, namespace: str) -> dict[str, Any]:
    """Return the options of a reader that tell the memories of ``path`` from those of another source of its name.

    ``mem`` is the open store. A folder of notes whose name another vault has, and a transcript whose file name another
    has, get names and ids of their own; everything else keeps those it always has.
    """
    if format == "markdown":
        from semmem.interfaces.importers import markdown, vault

        return {
            "origin": vault.origin(
                path,
                lambda name: mem.list(namespace=namespace, filters={"metadata": {"vault": name}}, limit=_SOME),
                lambda: {str(item["id"]): item["text"] for item in markdown.read(path, reject=lambda row: None)},
            )
        }
    if format == "chat":
        from semmem.interfaces.importers import chat_jsonl

        return {"name": chat_jsonl.name_of(path, lambda ids: mem.store.get(namespace, ids))}
    return {}


def owned(format: str, path: Path, **options: Any) -> dict[str, Any] | None:
    """Return the filters of the memories that an earlier import of ``path`` has stored and this one may replace.

    ``options`` are those of ``told_apart``. Of a vault by its name, of a table, a transcript or JSON lines by the mark
    that ``semmem import`` leaves in their metadata. None for a format whose memories are never replaced.
    """
    if format in MARKED:
        return {"metadata": {MARK: options.get("name") or path.name}}
    if format != "markdown":
        return None
    from semmem.interfaces.importers.vault import origin

    return {"metadata": {"vault": (options.get("origin") or origin(path)).name}}
