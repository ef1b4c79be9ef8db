"""What is counted of a store, and what a long task did to it, as frozen dataclasses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

__all__ = ["BackupReport", "CopyReport", "Namespace", "NamespaceHash", "Rebuilt", "Stats"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What ``rebuild`` did. ``embedded``: vectors made now; ``kept``: made by an interrupted call of the same kind.

    ``dropped`` is another embedder or extractor whose half-done rebuild was thrown away. ``read`` memories were read
    again to find their concepts, ``skipped`` were read by an interrupted call, and ``changed`` hold something else now.
    """

    embedded: int = 0
    kept: int = 0
    dropped: str | None = None
    read: int = 0
    skipped: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a store, or of one namespace of it. ``bytes`` is the space on disk of the whole store."""

    memories: int
    parts: int
    namespaces: int
    concepts: int
    mentions: int
    vectors: int
    pending: int
    bytes: int
    embedder: str | None


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace of a store: its name, how many memories it holds, and when one of them was last changed.

    ``updated_at`` is the latest of theirs; that of a memory which was never changed is the time it is dated.
    """

    name: str
    memories: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class NamespaceHash:
    """What a namespace holds, in counts and hashes that do not depend on the order in which it came.

    ``content`` is of the memories as they were given, with times and version; ``vector`` of their vectors, bit by bit;
    ``graph`` of what was found in them.
    """

    memories: int
    parts: int
    vectors: int
    content: str
    vector: str
    graph: str


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What ``copy`` did; every count and hash was the same on both sides.

    ``tables`` are rows by table, ``found`` how many of them were there from an earlier run. ``came`` and ``went`` are
    memories that were remembered and forgotten in the source meanwhile: the copy is as the source was when it began.
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
class BackupReport:
    """What is in a backup: rows by table, and each namespace in counts and hashes where its schema is this one.

    ``schema`` is the number of the schema in it, ``bytes`` the size of the file.
    """

    file: str
    bytes: int
    schema: int
    memories: int
    tables: Mapping[str, int]
    namespaces: Mapping[str, NamespaceHash]
    seconds: float
