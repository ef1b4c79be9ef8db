"""Read the JSON lines of ``semmem export``, or others with remember's argument names as keys: one memory per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from semmem.importers import BadRow, Reject, lines, refuse
from semmem.model.imported_items import Item, exported_item

__all__ = ["read"]

_NAMES = ("id", "session")
"""Fields for which other programs use numbers; an integer is read as text."""


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
