"""Counts of a store, and reports of long tasks, as frozen dataclasses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from semmem.model.errors import NotFound

__all__ = [
    "Backlog",
    "BackupReport",
    "CopyReport",
    "Distribution",
    "DrillReport",
    "Finding",
    "LeftOut",
    "Limits",
    "MigrationReport",
    "Namespace",
    "NamespaceHash",
    "Node",
    "PoolUse",
    "Rebuilt",
    "RelevanceJudgment",
    "Stats",
    "counted",
    "no_memories",
]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 memory", "1,200 memories"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def no_memories(namespace: str) -> NotFound:
    """Return the error for a namespace that has no memories."""
    return NotFound(
        f"There are no memories in namespace {namespace!r}; `semmem namespaces` lists those that have some."
    )


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The report of ``rebuild``: ``embedded`` vectors were made now, ``kept`` ones by an interrupted earlier call.

    ``dropped`` names another embedder or extractor whose unfinished rebuild was discarded. ``read`` memories were
    extracted now, ``skipped`` ones by an interrupted earlier call, and the concepts of ``changed`` ones are now
    different.
    """

    embedded: int = 0
    kept: int = 0
    dropped: str | None = None
    read: int = 0
    skipped: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class RelevanceJudgment:
    """A relevance judgment: whether a memory was ``useful`` for a recall, by whom, and when."""

    namespace: str
    recall_id: str
    question: str
    id: str
    useful: bool
    made_by: str | None = None
    at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values, which ``python -m eval`` reads as a label: a grade of 1 or 0."""
        return {
            "question": self.question,
            "namespace": self.namespace,
            "memory_id": self.id,
            "grade": int(self.useful),
            "recall_id": self.recall_id,
            "made_by": self.made_by,
            "at": None if self.at is None else self.at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A hit for which a token budget had no room: which memory, its rank (0: pinned), and its estimated tokens."""

    id: str
    namespace: str
    rank: int
    tokens: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"id": self.id, "namespace": self.namespace, "rank": self.rank, "tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a store, or of one namespace of it.

    ``pending`` counts memories whose postings ``maintain`` will merge; every recall finds them meanwhile. ``bytes`` is
    the space on disk of the whole store; None for a key that is not valid for all of it, and for one namespace of a
    store on several nodes, where every node would be asked.

    ``stale`` counts memories whose derived rows an older splitter, likeness or extractor made; ``maintain`` derives
    them again.

    ``estimated`` are the names of the counts that are estimates, within a few per cent: ``concepts`` and ``mentions``,
    where more than 5,000 memories are counted on PostgreSQL and ``exact`` was not given.

    ``nodes`` are the servers that hold the namespaces, or this one, where Citus distributes the store over several.
    """

    memories: int
    parts: int
    namespaces: int
    concepts: int
    mentions: int
    vectors: int
    pending: int
    bytes: int | None
    embedder: str | None
    stale: int = 0
    nodes: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A server of a store on several: its address, its share of the namespaces in ``shards``, and their bytes."""

    name: str
    shards: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of ``doctor``.

    ``state`` is good, optional (absent, not needed) or bad; ``mend`` is the command that mends it, where one does.
    """

    what: str
    state: Literal["good", "optional", "bad"]
    detail: str
    mend: str | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a store has left to do: memories ``waiting`` for ``maintain``, to be merged or compared, or for a vector.

    ``oldest_s`` is the age of the one that waits longest for ``maintain``, ``backup_s`` that of the last backup by
    ``semmem backup``; each is None where there is none.
    """

    waiting: int
    oldest_s: float | None
    without_vector: int
    backup_s: float | None


@dataclass(frozen=True, slots=True)
class PoolUse:
    """The connections of this process to a store: those in use of ``most``, and the callers that wait for one."""

    in_use: int
    waiting: int
    most: int


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace of a store: its name, how many memories it holds, and when one of them was last changed.

    ``updated_at`` is the latest time of its memories: of the last change, or else of creation. ``state`` is None, or
    *moving* (a rename is at work), *filling* (a rename or a copy fills it) or *emptying* (its memories already have
    another name). A namespace that is filling or emptying answers as if it were empty.
    """

    name: str
    memories: int
    updated_at: datetime
    state: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the namespace as JSON values; the state only where it has one."""
        own = {"name": self.name, "memories": self.memories, "updated_at": self.updated_at}
        return own if self.state is None else {**own, "state": self.state}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a namespace; None is no limit.

    ``keep_days`` is how long after its last change a memory stays until ``maintain`` forgets it; pinned memories stay.
    ``most_bytes`` counts the bytes of texts and titles.
    """

    keep_days: float | None = None
    most_memories: int | None = None
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NamespaceHash:
    """The content of a namespace in counts and hashes, which do not depend on the order of writing.

    ``content`` is the hash of the given fields of its memories, with times and version; ``vector`` of its vectors, bit
    by bit; ``graph`` of its concepts.
    """

    memories: int
    parts: int
    vectors: int
    content: str
    vector: str
    graph: str


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The report of ``copy``; every count and hash was the same on both sides.

    ``tables`` has the rows of each table, ``found`` the number that an earlier run had copied. ``came`` and ``went``
    count the memories that were remembered and forgotten in the source meanwhile; the copy shows the source at the
    start.
    """

    memories: int
    tables: Mapping[str, int]
    namespaces: Mapping[str, NamespaceHash]
    found: int
    came: int
    went: int
    indexed: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The report of a migration: the schema ``before`` and ``after`` it, and the names of its ``migrations``.

    Those that another process ran meanwhile are not among them. After a dry run, which changes nothing, these are the
    migrations that would run. ``newest`` is the schema that this semmem needs.
    """

    before: int
    after: int
    newest: int
    migrations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The report of a distribution over nodes: the place of each of the ``tables`` that were moved, and their bytes.

    A place is "by namespace" or "everywhere". ``nodes`` are those that hold namespaces, empty after a dry run.
    """

    tables: Mapping[str, str]
    bytes: int
    nodes: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class RowSecurity:
    """Row-level security of a store: it is on for ``tables``, and not for ``open``, of those that have a namespace.

    ``binds`` says whether it binds ``user``, the database user of this program; the owner of the tables is free.
    """

    tables: tuple[str, ...]
    open: tuple[str, ...]
    user: str
    binds: bool


@dataclass(frozen=True, slots=True)
class BackupReport:
    """The content of a backup: rows by table, and for backups of this schema counts and hashes of each namespace.

    ``schema`` is the schema version of the backup, ``bytes`` the size of the file.
    """

    file: str
    bytes: int
    schema: int
    memories: int
    tables: Mapping[str, int]
    namespaces: Mapping[str, NamespaceHash]
    seconds: float


@dataclass(frozen=True, slots=True)
class DrillReport:
    """What a backup held when it was restored on trial: ``file`` is its name, ``bytes`` the size of it."""

    file: str
    bytes: int
    memories: int
    namespaces: int
    seconds: float
