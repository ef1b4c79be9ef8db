"""The life of a memory as frozen dataclasses: its versions, its links, its changes."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, overload

from semmem.model.errors import InvalidInput
from semmem.model.exchange import CandidateMetadata
from semmem.model.field_kinds import Time
from semmem.model.filters import person, string
from semmem.model.process.forks import cached_property
from semmem.model.types import LINK_TYPES, LinkType, Memory

__all__ = [
    "DEEPEST",
    "MADE_BY",
    "MOST_EARLIER",
    "MOST_LINKS",
    "MOST_SIMILAR",
    "WAITING_S",
    "Access",
    "Change",
    "Changes",
    "Comparison",
    "Earlier",
    "Forgotten",
    "Kept",
    "Link",
    "Made",
    "Newer",
    "PendingComparison",
    "Similar",
    "Version",
    "around",
    "checked_link",
    "versions_of",
]

_COUNTED = ("seen_count", "last_seen", "contradicts", "access_count", "last_accessed", "older")
_PLACE = frozenset(("id", "namespace", "updated_at", "version", "parent_id", *_COUNTED))

Kept = tuple[Memory, str | None, datetime | None, datetime | None]
"""A version as a store keeps it: (memory, who ended it, when, when it was forgotten softly)."""

MADE_BY = "semmem"
"""The maker of links that semmem makes by itself; the walk of the graph leg ignores them."""
WAITING_S = 60.0
"""For how long a process may take to link what it has just written; after that, other processes link it."""
MOST_SIMILAR = 20
"""For one key the newest memories, up to this number, are compared; for one memory as many, those sharing most keys."""


@dataclass(frozen=True, slots=True)
class Version:
    """A memory as it was from one change to the next.

    ``changed`` names the fields that differ from the version before, and is empty for the first. ``changed_by`` is who
    made the change, where a name was given. ``forgotten_at`` and ``forgotten_by`` say when and by whom it was softly
    forgotten.
    """

    memory: Memory
    changed: tuple[str, ...] = ()
    changed_by: str | None = None
    forgotten_at: datetime | None = None
    forgotten_by: str | None = None

    @property
    def version(self) -> int:
        """The number of the version, from 1."""
        return self.memory.version

    @property
    def changed_at(self) -> datetime | None:
        """When the version was written."""
        return self.memory.updated_at

    def diff(self, before: Version) -> str:
        """Return the difference to another version: changed fields, then a unified diff of the texts."""
        lines = [
            f"{name}: {_shown(getattr(before.memory, name))} -> {_shown(getattr(self.memory, name))}"
            for name in _differ(before.memory, self.memory)
            if name != "text"
        ]
        names = f"version {before.version}", f"version {self.version}"
        texts = before.memory.text.splitlines(), self.memory.text.splitlines()
        return "\n".join([*lines, *difflib.unified_diff(*texts, *names, lineterm="")])

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        return {
            "version": self.version,
            "changed": list(self.changed),
            "changed_by": self.changed_by,
            "changed_at": _iso(self.changed_at),
            "forgotten_at": _iso(self.forgotten_at),
            "forgotten_by": self.forgotten_by,
            "memory": self.memory.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A softly forgotten memory: its content hash, its vectors by part, and the embedder that made them."""

    memory: Memory
    payload: bytes | None
    embedder: Mapping[str, Any] | None = None
    vectors: Mapping[int, Any] = field(default_factory=dict)
    text_at: datetime | None = None  # when its text began, None where it is its created_at


MOST_EARLIER = 20_000
"""The most earlier versions of a namespace that one recall looks at."""


@dataclass(frozen=True)
class Earlier:
    """An earlier version as one recall reads it: the index entries of all its passages together.

    ``read`` returns the memory: of thousands of versions, a recall looks at few memories.
    ``length`` is the number of its terms, ``entries`` one structured array (key, count, mention, subject, kind).
    ``vectors`` are those of its passages, by part, and ``embedder`` is the identity of the embedder that made them.
    """

    id: str
    read: Callable[[], Memory]
    length: int
    entries: Any
    embedder: Mapping[str, Any] | None = None
    vectors: Mapping[int, Any] = field(default_factory=dict)

    @cached_property
    def memory(self) -> Memory:
        """The memory as it was in this version."""
        return self.read()


def around(limit: int | None, offset: int) -> tuple[int | None, int]:
    """Return the limit and offset that read a page of versions and also the version before and after it."""
    return None if limit is None else limit + min(offset, 1) + 1, max(offset - 1, 0)


def versions_of(rows: Iterable[Kept], limit: int | None = None, offset: int = 0) -> list[Version]:
    """Return the versions of one memory from the rows of a store, in the order given: the oldest first.

    For a page, ``rows`` is read by ``around``: the version before the page says what its first version changed.
    """
    lives = list(rows)
    versions: list[Version] = []
    for before, one, behind in zip([None, *lives], lives, [*lives[1:], None], strict=False):
        memory, ended_by, _, forgotten = one
        first = before is None or (before[3] is not None and before[3] != forgotten)  # or remembered anew
        changed = () if before is None or first else _differ(before[0], memory)
        by = None if before is None or first else before[1]
        last = behind is None or behind[3] != forgotten  # who ended an earlier one has changed it, not forgotten it
        versions.append(Version(memory, changed, by, forgotten, ended_by if forgotten is not None and last else None))
    return versions[min(offset, 1) :][:limit]


def _differ(one: Memory, other: Memory) -> tuple[str, ...]:
    names = (f.name for f in dataclasses.fields(Memory) if f.name not in _PLACE)
    return tuple(name for name in names if getattr(one, name) != getattr(other, name))


def _shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


DEEPEST = 10
"""The most ``supersedes`` links in one chain."""

_MOST_BYTES = 2_500
"""Limit for namespace and both ids together: an index entry of PostgreSQL holds 2,704 bytes, with the type of link."""

MOST_LINKS = 20
"""The most links of one memory, in each direction, that the walk follows."""


@dataclass(frozen=True, slots=True)
class Link:
    """A typed link from one memory to another of its namespace, by their ids: ``from_id`` supersedes ``to_id``.

    ``since`` is when the link was made, None for one that is not stored yet; ``made_by`` is who made it, where that was
    given.
    """

    namespace: str
    from_id: str
    type: LinkType
    to_id: str
    since: datetime | None = None
    made_by: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """(from_id, type, to_id), which is unique in a namespace."""
        return self.from_id, self.type, self.to_id

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        out = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return out | {"since": None if self.since is None else self.since.isoformat()}


@dataclass(frozen=True, slots=True)
class Newer:
    """A memory that supersedes the memory ``old``: its row among candidates.

    ``hidden`` says that no recall may return it.
    """

    old: str
    candidate: CandidateMetadata
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one memory, for programs that keep a copy.

    ``kind`` is *written*, *updated*, *forgotten*, *linked*, *unlinked* or *restored*; *dropped*, without an id, says
    that everything the namespace held until then is gone. ``get`` returns the memory as it is now. ``types``
    are those of the links that were made or removed.
    """

    namespace: str
    id: str | None
    kind: str
    at: datetime
    types: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601, and types where there are any."""
        out = {"namespace": self.namespace, "id": self.id, "kind": self.kind, "at": _iso(self.at)}
        return out | ({"types": list(self.types)} if self.types else {})


@dataclass(frozen=True, slots=True)
class Changes(Sequence[Change]):
    """Changes in the order in which each namespace had them, and the ``cursor`` that asks for later ones."""

    items: tuple[Change, ...]
    cursor: str

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"changes": [one.as_dict() for one in self.items], "cursor": self.cursor}


@dataclass(frozen=True, slots=True)
class Access:
    """How often a memory was returned by recalls, and when last."""

    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory that has a key in common with another one, which may repeat or contradict it; its text began ``at``."""

    id: str
    row_id: int
    text: str
    title: str | None
    author: str | None
    at: datetime


class Made(NamedTuple):
    """A whole memory as it is stored: its row id, when its text began, and what was derived of it.

    ``row_ids`` are those of its indexed rows, and ``lengths`` the lengths of its parts in characters, () where it is
    not split. ``payload`` is the hash of the item that it was made from.
    """

    row_id: int
    memory: Memory
    payload: bytes
    text_at: datetime | None
    lengths: tuple[int, ...]
    row_ids: tuple[int, ...]


class Comparison(NamedTuple):
    """Memories of a namespace that were compared: their row ids, their links, and when the text of each end began.

    ``began`` is in seconds since 1970, by id.
    """

    row_ids: Collection[int]
    links: Sequence[Link]
    began: Mapping[str, float]


class PendingComparison(NamedTuple):
    """A memory, with its row id, that is still to be compared with what is like it; its text began ``at``."""

    row_id: int
    at: datetime
    memory: Memory


def checked_link(
    namespace: str, id: str, type: str, to: str, made_by: str | None = None, since: str | datetime | None = None
) -> Link:
    """Return a link to be made from the memory ``id``.

    Raises InvalidInput for an unknown type, for a link of a memory to itself, for ids that are too long together, and
    for a ``since`` that is no time or that no store can hold.
    """
    link_type = next((one for one in LINK_TYPES if one == string("type", type)), None)
    if link_type is None:
        raise InvalidInput(f"There is no type of link {type!r}; choose one of {', '.join(LINK_TYPES)}.")
    if string("id", id) == string("to", to):
        raise InvalidInput(f"A memory cannot be linked to itself, and both ids are {id!r}; name two memories.")
    if (size := sum(len(one.encode()) for one in (string("namespace", namespace), id, to))) > _MOST_BYTES:
        raise InvalidInput(
            f"namespace and both ids have {size} bytes together in UTF-8; memories with at most {_MOST_BYTES} can be "
            "linked."
        )
    who = person("made_by", made_by)
    when = None if since is None else Time().checked("since", since)
    return Link(namespace, id, link_type, to, when, who)
