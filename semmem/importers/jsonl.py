"""Read the JSON lines of ``semmem export``, or others with remember's argument names as keys: one memory per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Item, Reject, item, lines, refuse

__all__ = ["EXPORTED", "VectorItem", "exported_item", "read"]

_NOT_GIVEN = ("updated_at", "version", "parent_id", "access_count", "last_accessed")
"""Fields that the store sets itself; an export has them for people to read."""
EXPORTED = frozenset((*_NOT_GIVEN, "vectors", "embedder", "links", "text_at"))
"""Fields of an export that are no argument of ``remember``."""
_NAMES = ("id", "session")
"""Fields for which other programs use numbers; an integer is read as text."""


class VectorItem(Item):
    """An item with vectors of its text or parts: ``vectors`` maps a hash of what was embedded to base64.

    They are used where the same embedder, by its fingerprint, fills the store.
    """

    embedder: str = ""
    vectors: Mapping[str, str]


def read(path: Path, *, reject: Reject | None = None, into: str | None = None, vectors: bool = True) -> Iterator[Item]:
    """Yield one item per line; ``into`` replaces each memory's namespace, ``vectors=False`` leaves vectors out.

    An integer id or session becomes text. A line that is no object goes to ``reject``; without ``reject`` it raises
    BadItem.
    """
    report = reject or refuse
    for where, row in lines(path, report):
        if not isinstance(row, Mapping):
            report(BadRow(where, f"it is {type(row).__name__}, not a memory."))
            continue
        fields = dict(row)
        fields |= {name: str(fields[name]) for name in _NAMES if type(fields.get(name)) is int}
        if into is not None:
            fields["namespace"] = into
        if not vectors:
            fields.pop("vector", None)
        yield exported_item(where, fields, vectors=vectors)


def exported_item(where: str, row: Mapping[str, Any], *, vectors: bool = True) -> Item:
    """Return one row of an export as an item: without the store's own fields, with the vectors of its parts."""
    fields = {name: value for name, value in row.items() if name not in _NOT_GIVEN}
    stored_vectors, embedder = fields.pop("vectors", None), fields.pop("embedder", None)
    links, text_at = fields.pop("links", None), fields.pop("text_at", None)
    result = item(where, **fields)
    if vectors and isinstance(stored_vectors, Mapping) and isinstance(embedder, str):
        result = VectorItem(result)
        result.where, result.embedder, result.vectors = where, embedder, stored_vectors
    result.text_at = text_at
    if not EXPORTED.isdisjoint(row):  # where an export names none, nobody has said it
        result["source_type"] = fields.get("source_type")
    if links is not None:
        result.links = links if isinstance(links, list) else [links]
    return result
