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
    bad = reject or refuse
    for where, row in lines(path, bad):
        if not isinstance(row, Mapping):
            bad(BadRow(where, f"it is {type(row).__name__}, not a memory."))
            continue
        given = dict(row)
        given |= {name: str(given[name]) for name in _NAMES if type(given.get(name)) is int}
        if into is not None:
            given["namespace"] = into
        if not vectors:
            given.pop("vector", None)
        yield exported_item(where, given, vectors=vectors)


def exported_item(where: str, row: Mapping[str, Any], *, vectors: bool = True) -> Item:
    """Return one row of an export as an item: without the store's own fields, with the vectors of its parts."""
    given = {name: value for name, value in row.items() if name not in _NOT_GIVEN}
    known, embedder = given.pop("vectors", None), given.pop("embedder", None)
    links, text_at = given.pop("links", None), given.pop("text_at", None)
    made = item(where, **given)
    if vectors and isinstance(known, Mapping) and isinstance(embedder, str):
        made = VectorItem(made)
        made.where, made.embedder, made.vectors = where, embedder, known
    made.text_at = text_at
    if links is not None:
        made.links = links if isinstance(links, list) else [links]
    return made
