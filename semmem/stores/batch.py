"""What both stores make of a batch: its namespaces, the conflicts that end it, what becomes of each memory. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from semmem.model.errors import Conflict
from semmem.model.exchange import Row

__all__ = ["check_conflicts", "fates_of_rows", "rows_by_namespace", "uses_id_anew"]


def rows_by_namespace(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each namespace in the order given; the namespaces are sorted."""
    each: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        each[row.memory.namespace].append(row)
    return dict(sorted(each.items()))


def check_conflicts(conflicts: Collection[tuple[str, str]], on_conflict: str) -> None:
    """Raise Conflict if (namespace, id) are stored with other content and the batch is to end there."""
    if conflicts and on_conflict == "abort":
        namespace, id = min(conflicts)
        raise Conflict(
            f"The id {id!r} is already stored in namespace {namespace!r} with other content; call update to change it.",
            names=frozenset(conflicts),
        )


def fates_of_rows(rows: Iterable[Row], replaced: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return what the log of changes says of new memories of one namespace, by id; nothing of those made anew."""
    return {
        row.name[1]: "restored" if row.restores else "updated" if row.name in replaced else "written"
        for row in rows
        if not row.made_anew
    }


def uses_id_anew(row: Row, version: int) -> bool:
    """Return whether a row that was stored with ``version`` has the id of a softly forgotten memory.

    The links of that memory are still there, for the case that somebody restores it.
    """
    return row.replaces is None and not row.restores and version > row.memory.version
