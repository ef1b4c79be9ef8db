"""The protocols of a store that keeps the life of memories: versions, links, recalls, namespaces."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from semmem.model.audit import AuditEntry, AuditFilters
from semmem.model.exchange import RowIds
from semmem.model.history import (
    Access,
    Change,
    Comparison,
    Earlier,
    Forgotten,
    Link,
    Made,
    Newer,
    PendingComparison,
    Similar,
    Version,
)
from semmem.model.recall_log import LogFilters, LoggedRecall
from semmem.model.reports import Limits, RelevanceJudgment
from semmem.model.store.derivations import Mark, Span
from semmem.model.types import LinkType, Memory, Undecided

__all__ = ["ChangeLog", "LifeStore", "LinkStore", "Moving", "NamespaceStore", "RecallStore", "VersionStore"]


class ChangeLog(NamedTuple):
    """Changes of one namespace after a sequence number, each with its number, and facts about the whole log.

    ``origin`` tells a namespace from an earlier one of the same name; None where there is no namespace. ``number`` is
    the last sequence number, ``swept`` the last one whose change was removed. ``restored`` describes the backup that
    the store was restored from: the id of that restore (``life``), the restore from which the backed-up store itself
    came (``before``), and the last sequence number in the backup (``number``).
    """

    changes: Sequence[tuple[int, Change]]
    origin: int | None = None
    number: int = 0
    swept: int = 0
    restored: Mapping[str, int | None] | None = None


class Moving(NamedTuple):
    """A namespace that a rename or a copy works on, or has left, and its other name; see ``Namespace.state``."""

    namespace: str
    state: str
    other: str
    at: datetime


class VersionStore(Protocol):
    """The versions of memories, their changes in order, and what made what is derived of them."""

    def history(self, namespace: str, id: str, limit: int | None = None, offset: int = 0) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; softly forgotten ones included.

        Returns all of them, or up to ``limit`` after the first ``offset``.
        """
        ...

    def version_at(self, namespace: str, id: str, at: datetime) -> Memory | None:
        """Return the version of a memory that was valid at a time; None where none was."""
        ...

    def earlier_at(self, namespace: str, at: datetime, limit: int) -> Sequence[Earlier]:
        """Return up to ``limit`` versions that were valid at a time and were replaced later, by id.

        Only memories that exist now are considered; sensitive and unindexed ones are left out.
        """
        ...

    def forgotten(self, namespace: str, id: str) -> Forgotten | None:
        """Return the memory last forgotten softly under ``id``, with its vectors; None where there is none."""
        ...

    def all_forgotten(self, namespace: str, limit: int) -> Sequence[Version]:
        """Return up to ``limit`` softly forgotten memories, each as it was last, the latest forgotten first."""
        ...

    def texts_began(self, namespace: str, ids: Collection[str]) -> Mapping[str, datetime]:
        """Return when the texts of memories began, by id, of those whose text is not as old as the memory."""
        ...

    def changes(self, after: Mapping[str, tuple[int, str | None]], limit: int) -> Mapping[str, ChangeLog]:
        """Return up to ``limit`` changes of each namespace after a sequence number, or after an id within it."""
        ...

    def derivations(self, namespace: str | None = None) -> Mapping[str, tuple[int, Sequence[Mark]]]:
        """Return last row id and marks (semmem.model.store.derivations) of one namespace, or of each with memories."""
        ...

    def mark_made(self, namespace: str, span: Span) -> None:
        """Record what has made the memories of a span."""
        ...

    def made_between(self, namespace: str, after: int, upto: int, limit: int) -> Sequence[Made]:
        """Return up to ``limit`` indexed memories with row ids above ``after`` up to ``upto``, ascending."""
        ...

    def count_made(self, namespace: str, after: int, upto: int) -> int:
        """Return how many indexed memories have row ids above ``after`` up to ``upto``."""
        ...


class LinkStore(Protocol):
    """The links between memories, and the keys by which those that are alike are found."""

    def link(self, namespace: str, rows: Sequence[Link], *, skip: bool = False) -> Sequence[Link]:
        """Link memories of one namespace, all of ``rows`` or none; return the stored links in that order.

        An existing link stays as it is. A ``since`` of None means now. Raises NotFound for an unknown memory,
        and InvalidInput for a link that closes a circle of superseding or makes a chain of more than DEEPEST links;
        with ``skip`` such links are left out. Where a chain would be too long, links that semmem made are
        moved up, so that the newest memory still supersedes all others.
        """
        ...

    def unlink(self, namespace: str, from_id: str, type: str, to_id: str) -> bool:
        """Remove one link; return whether it existed."""
        ...

    def links(self, namespace: str, ids: Collection[str]) -> Sequence[Link]:
        """Return the links from and to some memories, in order; links to a missing memory are left out."""
        ...

    def undecided(self, namespace: str, type: Undecided, limit: int) -> Sequence[Link]:
        """Return up to ``limit`` links of that type, newest first, between memories that exist and of which neither
        supersedes the other.

        Of ``see-also`` these are the near-duplicates: only the links that semmem made by itself (MADE_BY).
        """
        ...

    def linked(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, LinkType]]:
        """Return (row id, linked row id, type of link) in both directions; a bounded number for each memory.

        Links that semmem made by itself (MADE_BY) are left out.
        """
        ...

    def newer(
        self, namespaces: Sequence[str], names: Mapping[str, Collection[str]], at: datetime | None = None
    ) -> Sequence[Newer]:
        """Return the memories that supersede others, along each chain to its end.

        ``names`` are the superseded ids by namespace. A memory that is not valid yet supersedes nothing, and an expired
        one does not exist. With ``at``, the links are those of that time, when later memories did not exist. The row
        ids of the heads are placed for ``namespaces``.
        """
        ...

    def similar(self, namespace: str, keys: Mapping[int, Sequence[int]]) -> Mapping[int, Sequence[Similar]]:
        """Store the keys of memories that have none, by row id; return what has some of them too, before or after.

        Of each key the newest MOST_SIMILAR; of these for each memory as many, those with most keys in common first.
        What has been forgotten meanwhile is left out. A write by itself finds only what was there before. What has
        found something has a pending comparison until ``compared`` says otherwise.
        """
        ...

    def corroborate(
        self,
        namespace: str,
        times: Mapping[str, int],
        besides: Collection[str] | None = None,
        contents: Mapping[str, bytes] = MappingProxyType({}),
    ) -> frozenset[str]:
        """Add, for each id, how often it was remembered again just now; return the ids that were.

        Not those that are not stored, or that have another content by now than ``contents`` says. With ``besides``,
        decided under the lock of the namespace's row: neither those that another memory contradicts or supersedes, nor
        those that one may which is ``unsettled``; memories with ids in ``besides`` do not count for that.
        """
        ...

    def unsettled(self, namespace: str, ids: Collection[str]) -> Sequence[PendingComparison]:
        """Return the memories whose links nobody has made yet and that share keys with some."""
        ...

    def uncompared_namespaces(self) -> Sequence[str]:
        """Return the namespaces that have ``pending_comparisons``, sorted."""
        ...

    def pending_comparisons(self, namespace: str, after: int, limit: int) -> Sequence[PendingComparison]:
        """Return memories that have no keys, or no links yet, ascending from above the row id ``after``.

        No sensitive ones or turns.
        """
        ...

    def waiting(self, namespace: str, limit: int) -> Sequence[PendingComparison]:
        """Return some memories whose links nobody has made for WAITING_S, or that are to be compared again."""
        ...

    def compared(self, each: Mapping[str, Comparison]) -> Collection[str]:
        """Store the links of memories that were compared, but for those that may not be, and that they were.

        ``each`` is what was compared in each namespace; all of it is one transaction. No link is made of a memory that
        says something else by now. Return the namespaces where others are ``waiting``.
        """
        ...


class RecallStore(Protocol):
    """The log of recalls, what was said of them, which memories recalls returned, and which every context shows."""

    def note_recall(self, entry: LoggedRecall) -> None:
        """Log a recall: for each of its namespaces, the hits of that one. ``at`` is when it is logged.

        Raises NotFound where a hit was forgotten for good or became sensitive meanwhile: the question may quote it.
        """
        ...

    def recalls(
        self, namespaces: Sequence[str], filters: LogFilters, limit: int, cursor: str | None
    ) -> Sequence[LoggedRecall]:
        """Return the rows of up to ``limit`` logged recalls with ids below ``cursor``, newest first, by namespace."""
        ...

    def recalled(self, namespaces: Sequence[str], recall_id: str) -> Sequence[LoggedRecall]:
        """Return the rows of a logged recall, one for each of ``namespaces`` that it asked, by namespace."""
        ...

    def note_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Note a call: one entry for each of its namespaces, all or none. ``at`` is when it is noted."""
        ...

    def audited(self, filters: AuditFilters, limit: int, after: tuple[str, str]) -> Sequence[AuditEntry]:
        """Return up to ``limit`` entries behind (id, namespace), oldest first."""
        ...

    def judge(
        self, recall_id: str, judgments: Mapping[tuple[str, str], bool], made_by: str | None
    ) -> Collection[tuple[str, str]]:
        """Record with a logged recall which (namespace, id) were useful.

        Returns those that do not exist, and then records nothing.
        """
        ...

    def judgments(self, namespace: str) -> Sequence[RelevanceJudgment]:
        """Return the judgments of a namespace's present memories, oldest first."""
        ...

    def count_accesses(self, namespace: str, counts: Mapping[str, Access]) -> int:
        """Add to the counts of memories, by id, those that are there; return how many of them are.

        Once, and nothing is waited for long: raises StoreUnavailable where the store does not take it now.
        """
        ...

    def accesses(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return how often recalls returned each memory, by id; memories never returned are left out."""
        ...

    def pinned(self, namespaces: Sequence[str], limit: int) -> Sequence[tuple[str, str]]:
        """Return (namespace, id) of pinned memories, which every context shows; by importance, then the newer first."""
        ...


class NamespaceStore(Protocol):
    """The moves and the limits of namespaces."""

    def move_namespace(self, old: str, new: str, *, stay: bool) -> int:
        """Rename a namespace, or copy it where ``stay`` is true: all or nothing; return how many memories it has.

        Nobody sees a part of it under the new name. What was interrupted, the same call or ``finish_moves`` ends.
        Raises NotFound where it has none, Conflict where ``new`` holds anything or somebody rebuilds the store.
        """
        ...

    def moves(self) -> Sequence[Moving]:
        """Return the namespaces that are being renamed or filled, or where that was interrupted, by name."""
        ...

    def finish_moves(self) -> int:
        """End the renames and copies that were interrupted; return of how many namespaces."""
        ...

    def limits(self, namespace: str) -> Limits:
        """Return the limits of a namespace: how long it keeps memories, and how many it may hold."""
        ...

    def set_limits(self, namespace: str, changes: Mapping[str, Any]) -> Limits:
        """Change limits of a namespace by name, None removing one; return all of them. No memory is removed."""
        ...


class LifeStore(VersionStore, LinkStore, RecallStore, NamespaceStore, Protocol):
    """The life of the memories of a store, by subject. Every method is safe to call from any thread."""
