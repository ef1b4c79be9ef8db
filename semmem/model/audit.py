"""The audit as frozen dataclasses: who read and wrote what, by ids and counts, without any text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, overload

__all__ = ["DONE", "MOST_IDS", "Audit", "AuditEntry", "AuditFilters", "entry_of"]

DONE = "done"
"""The outcome of a call that returned; that of any other is the name of its error."""


MOST_IDS = 100
"""Ids of memories that one entry names at most; it counts the others."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One call of a verb, in one of its namespaces; a call for the whole store has the namespace "".

    ``who`` is the name of the key that the call came with, or "token of" and a subject; None where it needed none.
    ``interface`` and ``agent`` are as in the log of recalls. ``ids`` are the memories that were returned or written, up
    to 100, where the verb says which, and ``count`` is how many there are, None where the verb does not count.
    """

    id: str
    at: datetime | None
    namespace: str
    who: str | None
    interface: str
    agent: str | None
    verb: str
    outcome: str
    count: int | None = None
    ids: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        return {**asdict(self), "at": None if self.at is None else self.at.isoformat(), "ids": list(self.ids)}


def entry_of(
    id: str,
    at: datetime | None,
    namespace: str,
    who: str | None,
    interface: str,
    agent: str | None,
    verb: str,
    outcome: str,
    count: int | None,
    ids: Iterable[str],
) -> AuditEntry:
    """Return the entry in a row of the table."""
    return AuditEntry(id, at, namespace, who, interface, agent, verb, outcome, count, tuple(ids))


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """Which entries to list: those that meet all of these, None being no condition."""

    namespaces: tuple[str, ...] | None = None
    who: str | None = None
    noted_after: datetime | None = None
    noted_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Audit(Sequence[AuditEntry]):
    """A page of the audit, oldest first, and the ``cursor`` of the next page, None for the last one."""

    items: tuple[AuditEntry, ...]
    cursor: str | None = None

    @overload
    def __getitem__(self, index: int) -> AuditEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AuditEntry]: ...
    def __getitem__(self, index: int | slice) -> AuditEntry | Sequence[AuditEntry]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"entries": [one.as_dict() for one in self.items], "cursor": self.cursor}
