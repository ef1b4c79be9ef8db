"""The rules for links between memories, the same in every store. Pure: no store, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from semmem.model.errors import InvalidInput, NotFound
from semmem.model.life import DEEPEST, Link

__all__ = ["allowed"]


def allowed(
    namespace: str,
    rows: Sequence[Link],
    there: Collection[str],
    superseded: Iterable[tuple[str, str]],
    *,
    skip: bool = False,
) -> Sequence[Link]:
    """Return which of ``rows`` may be linked: all or an error, or with ``skip`` those that may.

    ``there`` are the ids that exist, ``superseded`` the present links (newer, older) around the new ones. Raises
    NotFound for a memory that does not exist, and InvalidInput for a link that would close a circle of superseding or
    make a chain of more than DEEPEST links.
    """
    older: dict[str, set[str]] = {}
    newer: dict[str, set[str]] = {}
    for new, old in superseded:
        older.setdefault(new, set()).add(old)
        newer.setdefault(old, set()).add(new)
    taken = []
    for row in rows:
        error = _missing(namespace, row, there) or _out_of_order(row, older, newer)
        if error is None:
            taken.append(row)
            if row.type == "supersedes":
                older.setdefault(row.from_id, set()).add(row.to_id)
                newer.setdefault(row.to_id, set()).add(row.from_id)
        elif not skip:
            raise error
    return taken


def _missing(namespace: str, row: Link, there: Collection[str]) -> NotFound | None:
    for id in (row.from_id, row.to_id):
        if id not in there:
            return NotFound(
                f"There is no memory {id!r} in namespace {namespace!r}, so nothing was linked; `semmem list` shows "
                "what is stored."
            )
    return None


def _out_of_order(
    row: Link, older: Mapping[str, Collection[str]], newer: Mapping[str, Collection[str]]
) -> InvalidInput | None:
    """Return why ``row`` may not be linked, None where it may; a link that exists already may."""
    if row.type != "supersedes" or row.to_id in older.get(row.from_id, ()):
        return None
    below, above = _levels(row.to_id, older), _levels(row.from_id, newer)
    if row.from_id in {id for level in below for id in level}:
        return InvalidInput(
            f"{row.from_id!r} cannot supersede {row.to_id!r}, which supersedes it itself, directly or over others; "
            f"nothing was linked, `semmem links` shows what there is."
        )
    deep = len(above) + len(below) - 1
    if deep > DEEPEST:
        return InvalidInput(
            f"With {row.from_id!r} superseding {row.to_id!r}, {deep} links would stand in one chain, and at most "
            f"{DEEPEST} may; nothing was linked, let the newest supersede the oldest directly."
        )
    return None


def _levels(id: str, ties: Mapping[str, Collection[str]]) -> list[set[str]]:
    """Return the memories reached from ``id`` by each number of links, ``id`` first; one may be there several times."""
    levels = [{id}]
    while further := {other for one in levels[-1] for other in ties.get(one, ())}:
        levels.append(further)
        if len(levels) > 2 * DEEPEST:  # no store has a chain this long
            break
    return levels
