"""What becomes of a memory: its versions, its links, its changes, as frozen dataclasses."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, overload

from semmem.model.errors import InvalidInput
from semmem.model.exchange import Head
from semmem.model.filters import person, string
from semmem.model.types import LINK_TYPES, LinkType, Memory

__all__ = [
    "DEEPEST",
    "MADE_BY",
    "MOST_EARLIER",
    "MOST_LINKS",
    "MOST_SIMILAR",
    "Access",
    "Change",
    "Changes",
    "Earlier",
    "Forgotten",
    "Kept",
    "Link",
    "Newer",
    "Similar",
    "Version",
    "around",
    "checked_link",
    "versions_of",
]

_COUNTED = ("seen_count", "last_seen", "contradicts", "access_count", "last_accessed")
_PLACE = frozenset(("id", "namespace", "updated_at", "version", "parent_id", *_COUNTED))

Kept = tuple[Memory, str | None, datetime | None, datetime | None]
"""A version as a store keeps it: the memory, who ended it, when, and when it was forgotten softly."""

MADE_BY = "semmem"
"""Who made the links that semmem makes by itself: the walk of the graph leg passes them over."""
MOST_SIMILAR = 20
"""So many memories, the newest, are looked at for one key, and for one memory those with most keys in common."""


@dataclass(frozen=True, slots=True)
class Version:
    """A memory as it was from one change to the next.

    ``changed`` names the fields that differ from the version before, none of the first; ``changed_by`` is who made the
    change, where somebody put a name to it. ``forgotten_at`` and ``forgotten_by`` say when it was forgotten softly.
    """

    memory: Memory
    changed: tuple[str, ...] = ()
    changed_by: str | None = None
    forgotten_at: datetime | None = None
    forgotten_by: str | None = None

    @property
    def version(self) -> int:
        """Its number, from 1."""
        return self.memory.version

    @property
    def changed_at(self) -> datetime | None:
        """When it was written."""
        return self.memory.updated_at

    def diff(self, before: Version) -> str:
        """Return how it differs from another version: its fields, then its text as a unified diff; no end of line."""
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
    """A memory that was forgotten softly, as it was: the hash of what was given, its vectors by part, who made them."""

    memory: Memory
    payload: bytes | None
    embedder: Mapping[str, Any] | None = None
    vectors: Mapping[int, Any] = field(default_factory=dict)


MOST_EARLIER = 20_000
"""Earlier versions that one recall looks at in a namespace."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier version as one recall looks at it: what the index held of its passages, together.

    ``length`` is the number of its terms, ``entries`` one structured array (key, count, mention, subject, kind).
    ``vectors`` are those of its passages, by part, and ``embedder`` says who made them.
    """

    memory: Memory
    length: int
    entries: Any
    embedder: Mapping[str, Any] | None = None
    vectors: Mapping[int, Any] = field(default_factory=dict)


def around(limit: int | None, offset: int) -> tuple[int | None, int]:
    """Return the limit and offset to read for a page of versions: also the one before it, and the one behind."""
    return None if limit is None else limit + min(offset, 1) + 1, max(offset - 1, 0)


def versions_of(kept: Iterable[Kept], limit: int | None = None, offset: int = 0) -> list[Version]:
    """Return the versions of one memory from what a store keeps of them, in the order given: the oldest first.

    Of a page, ``kept`` is what is ``around`` it: the version before says what its first one changed.
    """
    lives = list(kept)
    found: list[Version] = []
    for before, one, behind in zip([None, *lives], lives, [*lives[1:], None], strict=False):
        memory, ended_by, _, forgotten = one
        first = before is None or (before[3] is not None and before[3] != forgotten)  # or remembered anew
        changed = () if before is None or first else _differ(before[0], memory)
        by = None if before is None or first else before[1]
        last = behind is None or behind[3] != forgotten  # who ended an earlier one has changed it, not forgotten it
        found.append(Version(memory, changed, by, forgotten, ended_by if forgotten is not None and last else None))
    return found[min(offset, 1) :][:limit]


def _differ(one: Memory, other: Memory) -> tuple[str, ...]:
    names = (f.name for f in dataclasses.fields(Memory) if f.name not in _PLACE)
    return tuple(name for name in names if getattr(one, name) != getattr(other, name))


def _shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


DEEPEST = 10
"""Links of ``supersedes`` that may stand in one chain."""

_MOST_BYTES = 2_500
"""Of namespace and both ids: an index entry of PostgreSQL holds 2,704 bytes, and the type is in it too."""

MOST_LINKS = 20
"""Links of one memory, each way, over which the graph walks."""


@dataclass(frozen=True, slots=True)
class Link:
    """A typed tie from one memory to another of its namespace, by their ids: ``from_id`` supersedes ``to_id``.

    ``since`` is when it was made, None for one that is still to be stored; ``made_by`` who made it, where that was
    said.
    """

    namespace: str
    from_id: str
    type: LinkType
    to_id: str
    since: datetime | None = None
    made_by: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What there is once in a namespace."""
        return self.from_id, self.type, self.to_id

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        out = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return out | {"since": None if self.since is None else self.since.isoformat()}


@dataclass(frozen=True, slots=True)
class Newer:
    """What supersedes the memory ``old``: the row that stands for it among candidates.

    ``hidden`` is one that no recall may return.
    """

    old: str
    head: Head
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one memory, for those who keep a copy.

    ``kind`` is *written*, *updated*, *forgotten*, *linked*, *unlinked* or *restored*; *dropped*, with no id, says that
    all that its namespace held until then is gone. What the memory is now, ``get`` tells.
    """

    namespace: str
    id: str | None
    kind: str
    at: datetime

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        return {"namespace": self.namespace, "id": self.id, "kind": self.kind, "at": _iso(self.at)}


@dataclass(frozen=True, slots=True)
class Changes(Sequence[Change]):
    """Some changes, in the order in which each namespace had them, and the ``cursor`` that asks for what follows."""

    items: tuple[Change, ...]
    cursor: str

    @overload
    def __getitem__(self, at: int) -> Change: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Change]: ...
    def __getitem__(self, at: int | slice) -> Change | Sequence[Change]:
        return self.items[at]

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
    """A memory that has a key in common with a later one, which may repeat or contradict it."""

    id: str
    ord: int
    text: str
    title: str | None
    author: str | None
    created_at: datetime


def checked_link(
    namespace: str, id: str, type: str, to: str, made_by: str | None = None, since: str | datetime | None = None
) -> Link:
    """Return a link to be made, from the memory ``id``.

    Raises InvalidInput for an unknown type, a memory and itself, ids that are too long together, and a time that is
    none.
    """
    known = next((one for one in LINK_TYPES if one == string("type", type)), None)
    if known is None:
        raise InvalidInput(f"There is no type of link {type!r}; there are {', '.join(LINK_TYPES)}.")
    if string("id", id) == string("to", to):
        raise InvalidInput(f"A memory is not linked to itself, and {id!r} is one; name two.")
    if (size := sum(len(one.encode()) for one in (string("namespace", namespace), id, to))) > _MOST_BYTES:
        raise InvalidInput(
            f"namespace and both ids have {size} bytes together in UTF-8; memories with at most {_MOST_BYTES} can be "
            "linked."
        )
    who = person("made_by", made_by)
    try:
        when = datetime.fromisoformat(since) if isinstance(since, str) else since
    except ValueError:
        raise InvalidInput(f"since must be a time in ISO 8601, not {since!r}.") from None
    if when is not None and when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return Link(namespace, id, known, to, when, who)
