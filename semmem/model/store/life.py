"""What a store of memories offers that keeps what becomes of them: versions, links, changes, what recalls returned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from semmem.model.exchange import Ords
from semmem.model.life import Access, Change, Earlier, Forgotten, Link, Newer, Similar, Version
from semmem.model.reports import Judgement, Limits
from semmem.model.types import LinkType, Memory

__all__ = ["ChangeLog", "LifeStore"]


class ChangeLog(NamedTuple):
    """Changes of one namespace behind a number, each with its own, and what is known of all of them.

    ``origin`` tells a namespace from another of the same name before it; None: there is none. ``number`` is that of its
    last change, ``swept`` that of the last one which is not kept any longer. ``restored``, where the store is what a
    backup held, says which restore that was (``life``), which one the store had behind it that the backup was taken of
    (``before``), and the last change that was in it (``number``).
    """

    changes: Sequence[tuple[int, Change]]
    origin: int | None = None
    number: int = 0
    swept: int = 0
    restored: Mapping[str, int | None] | None = None


class LifeStore(Protocol):
    """The life of the memories of a store. Every method is safe to call from any thread."""

    def history(self, namespace: str, id: str, limit: int | None = None, offset: int = 0) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; those forgotten softly too.

        All of them, or up to ``limit`` behind the first ``offset``.
        """
        ...

    def link(self, namespace: str, rows: Sequence[Link], *, skip: bool = False) -> Sequence[Link]:
        """Link memories of one namespace, all of ``rows`` or none; return the links as they are stored, in that order.

        What is linked already stays as it is. ``since`` is now where it is None. Raises NotFound for a memory that is
        not there, InvalidInput for what would supersede itself over others, or in a chain of more than DEEPEST links;
        with ``skip`` such are left out.
        """
        ...

    def unlink(self, namespace: str, from_id: str, type: str, to_id: str) -> bool:
        """Take one link away; return whether there was one."""
        ...

    def links(self, namespace: str, ids: Collection[str]) -> Sequence[Link]:
        """Return the links from and to some memories, in order; those of which an end is not there are left out."""
        ...

    def linked(self, namespace: str, ords: Ords) -> Sequence[tuple[int, int, LinkType]]:
        """Return (ord, a memory that it is linked with, the type), either way; a bounded number of each.

        Links that semmem made by itself (MADE_BY) are left out.
        """
        ...

    def newer(
        self, namespaces: Sequence[str], names: Mapping[str, Collection[str]], at: datetime | None = None
    ) -> Sequence[Newer]:
        """Return what supersedes memories, by namespace and id, and what supersedes that, to the newest.

        What is not valid yet supersedes nothing, and what expired is not there; ``at`` is another time than now, when
        what was created later was not there either. The ords of the heads are placed as in ``namespaces``.
        """
        ...

    def version_at(self, namespace: str, id: str, at: datetime) -> Memory | None:
        """Return the version of a memory that was valid at a time, None where none was."""
        ...

    def earlier_at(self, namespace: str, at: datetime, limit: int) -> Sequence[Earlier]:
        """Return up to ``limit`` versions that were valid at a time and have been replaced since, by id.

        Those of memories that are there now; none that is sensitive, or of which nothing was indexed.
        """
        ...

    def forgotten(self, namespace: str, id: str) -> Forgotten | None:
        """Return what was forgotten softly last under ``id``, with the vectors that it had; None where nothing was."""
        ...

    def changes(self, after: Mapping[str, tuple[int, str | None]], limit: int) -> Mapping[str, ChangeLog]:
        """Return up to ``limit`` changes of each namespace behind a number, or behind an id of that number."""
        ...

    def move_namespace(self, old: str, new: str, *, stay: bool) -> int:
        """Give a namespace another name, or, ``stay``, copy it there: all or nothing; return how many memories.

        Raises NotFound where it has none, Conflict where ``new`` holds anything.
        """
        ...

    def limits(self, namespace: str) -> Limits:
        """Return what a namespace keeps and may hold."""
        ...

    def set_limits(self, namespace: str, changes: Mapping[str, Any]) -> Limits:
        """Change limits of a namespace, by name, None taking one away; return all of them. What it holds stays."""
        ...

    def pinned(self, namespaces: Sequence[str], limit: int) -> Sequence[tuple[str, str]]:
        """Return (namespace, id) of the memories that always stand in a context, the important and newer ones first."""
        ...

    # ------------------------------------------------------------------ what recalls returned

    def note_recall(self, recall_id: str, query: str, recipe: str, hits: Mapping[str, Sequence[str]]) -> None:
        """Note a recall: the ids of its hits in rank order, by each namespace that was asked."""
        ...

    def recalled(self, namespaces: Sequence[str], recall_id: str) -> Mapping[str, Sequence[str]]:
        """Return the ids of the hits of a recall that was noted, by those of ``namespaces`` that it asked."""
        ...

    def judge(
        self, recall_id: str, said: Mapping[tuple[str, str], bool], made_by: str | None
    ) -> Collection[tuple[str, str]]:
        """Note which memories, by (namespace, id), were useful; return those that are not there, and then note none."""
        ...

    def judgements(self, namespace: str) -> Sequence[Judgement]:
        """Return what was said of memories of a namespace that are there, oldest first."""
        ...

    # ------------------------------------------------------------------ how often a memory was returned

    def count_accesses(self, namespace: str, counts: Mapping[str, Access]) -> int:
        """Add to the counts of memories, by id, those that are there; return how many of them are.

        Once, and nothing is waited for long: raises StoreUnavailable where the store does not take it now.
        """
        ...

    def accesses(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return how often memories were returned, by id; those that never were are left out."""
        ...

    # ------------------------------------------------------------------ what is like what

    def corroborate(self, namespace: str, times: Mapping[str, int]) -> frozenset[str]:
        """Count for each id how often it was remembered again, now; return those of the ids that are stored."""
        ...

    def uncompared(self, namespace: str, after: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return memories without keys, with their ords, ascending from above ``after``; no sensitive ones or turns."""
        ...

    def compare_again(self, namespace: str, ords: Collection[int]) -> None:
        """Take the keys of memories away, so that they are compared again."""
        ...

    def similar(self, namespace: str, keys: Mapping[int, Sequence[int]]) -> Mapping[int, Sequence[Similar]]:
        """Store the keys of memories that have none, by ord; return what has some of them too, before or after.

        Of each key the newest MOST_SIMILAR; of these for each memory as many, those with most keys in common first.
        What has been forgotten meanwhile is left out. A write by itself finds only what was there before.
        """
        ...
