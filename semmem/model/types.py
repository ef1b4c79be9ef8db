"""The nouns of CONTEXT.md as frozen dataclasses.

Shapes and units are in the docstrings. Nothing here does I/O or imports anything heavy.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from reprlib import Repr
from typing import Any, Literal, TypeAlias, get_args

__all__ = [
    "LINK_TYPES",
    "LIST_ORDERS",
    "MASK",
    "MASKS",
    "MASK_OF_TOOLS",
    "MOST_REJECTED",
    "NOTE_HASH",
    "REMOVED",
    "SORT_BY",
    "SOURCE_TYPES",
    "Concept",
    "Filters",
    "Hit",
    "IngestReport",
    "LegRank",
    "LinkType",
    "ListOrder",
    "Memory",
    "MinConfidence",
    "Older",
    "Page",
    "Passage",
    "Rejected",
    "SortBy",
    "SourceType",
    "bound_rejected",
    "is_valid",
    "masked",
    "source_type_of",
    "unhashed",
]

SortBy: TypeAlias = Literal["relevance", "importance", "created", "updated", "accessed"]
"""The order of the hits of a recall."""

ListOrder: TypeAlias = Literal["created", "updated", "importance", "accessed"]
"""The order of a list: newest first, most important first, or last returned by a recall first."""

MinConfidence: TypeAlias = float | Literal["auto"]
"""The confidence below which a recall returns no hit; "auto": the floor measured for its legs and embedder."""
SORT_BY: tuple[SortBy, ...] = get_args(SortBy)
LIST_ORDERS: tuple[ListOrder, ...] = get_args(ListOrder)

LinkType: TypeAlias = Literal["supersedes", "resolved-by", "part-of", "see-also", "contradicts"]

Undecided: TypeAlias = Literal["contradicts", "see-also"]
"""The types of links that wait for a person's decision: contradictions and near-duplicates."""

LINK_TYPES: tuple[LinkType, ...] = get_args(LinkType)
"""The types of links between memories."""

SourceType: TypeAlias = Literal["user", "agent", "tool", "imported"]

SOURCE_TYPES: tuple[SourceType, ...] = get_args(SourceType)
"""Who a memory comes from: its user, an agent, the result of a tool, or a file or page that was imported."""

_short = Repr()

_short.maxstring = 60

shown = _short.repr
"""Shortens a text of any length to at most 60 characters."""


MASK = "(sensitive; reveal=True shows it)"
"""The placeholder for the text of a sensitive memory."""

MASK_OF_TOOLS = "(sensitive; hidden from tools, unless the server was started as `semmem mcp --reveal`)"
"""What stands there in an answer of a tool, of which none takes ``reveal``."""

MASKS = (MASK, MASK_OF_TOOLS)

REMOVED = "[removed]"
"""What stands in a text in the place of a credential that was taken out of it."""


_TAGGED = ("text", "title", "author", "session", "position", "source", "tags", "metadata", "importance", "source_type")


_LONGEST_OLDER = 120
"""Characters shown of an older memory."""


@dataclass(frozen=True, slots=True)
class Older:
    """An older memory near one that was just stored, with the beginning of its text, at most 120 characters."""

    id: str
    text: str
    created_at: datetime | None

    @classmethod
    def of(cls, id: str, text: str, created_at: datetime | None) -> Older:
        """Return an older memory with its text shortened to one line."""
        line = " ".join(text[: 4 * _LONGEST_OLDER].split())
        return cls(id, line if len(line) <= _LONGEST_OLDER else f"{line[: _LONGEST_OLDER - 1]}…", created_at)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; the time as ISO 8601."""
        return {"id": self.id, "text": self.text, "created_at": self.created_at and self.created_at.isoformat()}


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored text an agent may get back.

    ``id`` is unique within ``namespace``. ``importance`` is in [0, 1]; times are timezone-aware. ``parent_id`` is None
    except for a part of a split text, which only legs of your own read; a part has the id ``{parent_id}#{n}``. The text
    of a ``sensitive`` memory is in no index, and is ``MASK`` unless a call reveals it. A memory is valid from
    ``valid_from`` (None: when this version was written) until ``valid_to``, and is removed at ``expires_at``. A
    ``pinned`` memory is in every context for an agent while it is valid.

    ``source_type`` is one of ``SOURCE_TYPES``, who the text comes from, or None if it was not given. ``source`` is the
    path or address that it comes from. Strangers may have written the text of a tool or of an imported file.

    ``seen_count`` counts how often the memory was remembered, and ``last_seen`` is the time of the last repeat, None if
    there was none. ``contradicts`` are the ids of memories with a value that this one changes, as found when it was
    written; ``remember`` and ``update`` fill it, and ``links`` returns them later. ``older`` are up to two older
    memories of the namespace, the nearest ones, which this one may outdate; only ``remember`` fills it.
    ``access_count`` counts the recalls that returned it and ``last_accessed`` is the time of the last one; only ``get``
    and ``list`` fill these two. Two memories that differ only in the last three fields are equal.
    """

    id: str
    namespace: str
    text: str
    title: str | None = None
    author: str | None = None
    session: str | None = None
    position: int | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    importance: float = 0.5
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 1
    parent_id: str | None = None
    sensitive: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    pinned: bool = False
    source_type: SourceType | None = None
    seen_count: int = 1
    last_seen: datetime | None = None
    contradicts: tuple[str, ...] = ()
    access_count: int | None = field(default=None, compare=False)
    last_accessed: datetime | None = field(default=None, compare=False)
    older: tuple[Older, ...] = field(default=(), compare=False)

    @property
    def tag(self) -> str:
        """The version and a hash, for ``update``: a memory stored anew under the same id has another tag.

        The text of a sensitive memory is not hashed.
        """
        whole = masked(self)
        values = [getattr(whole, name) for name in _TAGGED]
        at = [one and one.astimezone(UTC).isoformat() for one in (self.created_at, self.updated_at)]
        content = json.dumps([*at, *values], sort_keys=True).encode()
        return f"{self.version}-{blake2b(content, digest_size=8).hexdigest()}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601. ``older`` is left out where it is empty."""
        out: dict[str, Any] = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.name == "older":
                if self.older:
                    out["older"] = [one.as_dict() for one in self.older]
                continue
            if isinstance(value, datetime):
                value = value.isoformat()
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            out[f.name] = value
        return out


def is_valid(valid_from: datetime | None, valid_to: datetime | None, at: datetime) -> bool:
    """Return whether a memory with these times has begun to be valid at a time, and has not ceased to be."""
    return (valid_from is None or valid_from <= at) and (valid_to is None or valid_to > at)


NOTE_HASH = "note_hash"
"""The metadata key with the hash of a note as it was imported; it shows whether the memory was edited by hand."""


_COPIES = (
    ({"langgraph": "record"}, ("value", "given")),
    ({"langgraph": "text"}, ("value",)),
    ({"source": "openai-agents"}, ("item",)),
)
"""Metadata by which the memories of an adapter are known, and the keys under which it keeps the text once more."""


def masked(memory: Memory) -> Memory:
    """Return ``memory`` without its text, and without the copies of it that adapters keep, if it is sensitive."""
    if not memory.sensitive:
        return memory
    metadata = unhashed(memory).metadata
    for known, keys in _COPIES:
        if known.items() <= metadata.items():
            metadata = {key: MASK if key in keys else value for key, value in metadata.items()}
    return dataclasses.replace(memory, text=MASK, metadata=metadata)


def unhashed(memory: Memory) -> Memory:
    """Return ``memory`` without the hash of its content, if it is sensitive: a hash lets guess a short text."""
    if not memory.sensitive or NOTE_HASH not in memory.metadata:
        return memory
    metadata = {key: value for key, value in memory.metadata.items() if key != NOTE_HASH}
    return dataclasses.replace(memory, metadata=metadata)


_ROLES: Mapping[str, SourceType] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "agent", "ai", "model", "bot"), "agent"),
    **dict.fromkeys(("tool", "function", "tool_result", "function_call_output"), "tool"),
}


def source_type_of(role: Any) -> SourceType | None:
    """Return who a message comes from by its role in a chat; None for the system and for a role that is unknown."""
    return _ROLES.get(role.strip().lower()) if isinstance(role, str) else None


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a recall, list or forget. An empty one restricts nothing.

    A memory matches if its session is one of ``sessions``, its author one of ``authors``, its title exactly one of
    ``titles``, its source type one of ``source_types``, it carries all of ``tags``, its metadata contain ``metadata``,
    and ``created_after <= created_at < created_before``. Metadata match by containment; there are no ranges and no
    other operators. ``sensitive`` is True for sensitive memories alone, False for the others, None for both.
    """

    sessions: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_after: datetime | None = None
    created_before: datetime | None = None
    titles: tuple[str, ...] = ()
    sensitive: bool | None = None
    source_types: tuple[SourceType, ...] = ()

    def __bool__(self) -> bool:
        values = map(self.__getattribute__, self.__dataclass_fields__)
        return any(value or value is False for value in values)


@dataclass(frozen=True, slots=True)
class LegRank:
    """The rank of a memory in one leg, from 1, and its score in the leg's own units."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a memory's text: ``memory.text[start:end]`` is ``text``."""

    text: str
    start: int
    end: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"text": self.text, "start": self.start, "end": self.end}


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled memory.

    ``memory`` is the whole memory. ``passage`` is the part of its text that the legs found: all of it, or the best part
    of a split text, whose number, from 1, is ``part``. ``components`` maps the name of a leg or of an adjustment, such
    as ``exact`` or ``reserve``, to its share; the shares sum to ``score``, which is in [0, 1]. ``legs`` has the rank of
    the memory in each leg. ``snippet`` is the best sentence, and ``matches`` the (start, end) offsets of question terms
    in it. ``duplicates`` are ids of memories with the same text, and ``duplicate_namespaces`` the namespace of each.
    """

    memory: Memory
    rank: int
    score: float
    components: Mapping[str, float]
    legs: Mapping[str, LegRank]
    snippet: str = ""
    matches: tuple[tuple[int, int], ...] = ()
    duplicates: tuple[str, ...] = ()
    superseded_by: str | None = None
    part: int | None = None
    passage: Passage = Passage("", 0, 0)
    duplicate_namespaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.part is None:
            object.__setattr__(self, "passage", Passage(self.memory.text, 0, len(self.memory.text)))

    def __repr__(self) -> str:
        text = " ".join((self.snippet or self.passage.text).split())
        return f"Hit({self.rank}, {shown(self.id)}, score={self.score:.3f}, {shown(text)})"

    @property
    def id(self) -> str:
        """The id of the memory, as it was given."""
        return self.memory.id

    @property
    def namespace(self) -> str:
        """The namespace of the memory."""
        return self.memory.namespace

    @property
    def text(self) -> str:
        """The whole text of the memory."""
        return self.memory.text

    @property
    def title(self) -> str | None:
        """The title of the memory."""
        return self.memory.title

    @property
    def source(self) -> str | None:
        """Where the memory came from."""
        return self.memory.source

    @property
    def source_type(self) -> SourceType | None:
        """Who the memory comes from: user, agent, tool or imported."""
        return self.memory.source_type

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
            "id": self.id,
            "namespace": self.namespace,
            "title": self.title,
            "source": self.source,
            "source_type": self.source_type,
            "rank": self.rank,
            "score": self.score,
            "components": dict(self.components),
            "legs": {name: {"rank": found.rank, "score": found.score} for name, found in self.legs.items()},
            "snippet": self.snippet,
            "matches": [list(m) for m in self.matches],
            "duplicates": list(self.duplicates),
            "duplicate_namespaces": list(self.duplicate_namespaces),
            "superseded_by": self.superseded_by,
            "part": self.part,
            "passage": self.passage.as_dict(),
            "memory": self.memory.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Page(Sequence[Memory]):
    """One page of ``list``: a sequence of memories and the ``cursor`` of the next page, None at the end."""

    memories: tuple[Memory, ...]
    cursor: str | None = None

    def __len__(self) -> int:
        return len(self.memories)

    def __getitem__(self, index: Any) -> Any:
        return self.memories[index]

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def to_pandas(self) -> Any:
        """Return the memories as a DataFrame, one column a field. Raises MissingExtra where pandas is not installed."""
        from semmem.model.tables import data_frame, memory_rows

        return data_frame(memory_rows(self.memories))

    def _repr_html_(self) -> str:
        from semmem.model.tables import html_table, memory_rows

        rows = memory_rows(self.memories)
        more = "; more pages follow" if self.cursor else ""
        return html_table(f"{len(rows)} memories{more}", rows, ("id", "created_at", "title", "text"))


@dataclass(frozen=True, slots=True)
class Rejected:
    """An item that was not stored: its ``position`` in the input from 0, its id if it had one, and why."""

    position: int
    id: str | None
    reason: str


MOST_REJECTED = 10_000
"""The most rejected items that a report describes, because a stream may be endless."""


def bound_rejected(report: Any) -> None:
    """Leave the first ``MOST_REJECTED`` rows in ``rejected`` of a report, and count the others in ``more_rejected``."""
    more = len(report.rejected) - MOST_REJECTED
    if more > 0:
        object.__setattr__(report, "more_rejected", report.more_rejected + more)
        object.__setattr__(report, "rejected", report.rejected[:MOST_REJECTED])


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of ``remember_many``: the ``read`` items are remembered, unchanged or rejected.

    ``rejected`` holds the first ``MOST_REJECTED`` rejected items, ``more_rejected`` is the number of the others.
    ``corroborated`` of the unchanged items repeat a memory of the same author in the same session, which counts them.
    ``contradictions`` is the number of links made from a memory to one whose content it changes.
    """

    remembered: int = 0
    unchanged: int = 0
    rejected: tuple[Rejected, ...] = ()
    seconds: float = 0.0
    degraded: Mapping[str, str] = field(default_factory=dict)
    more_rejected: int = 0
    corroborated: int = 0
    contradictions: int = 0

    def __post_init__(self) -> None:
        bound_rejected(self)

    def with_batch(self, batch: Any, seconds: float) -> IngestReport:
        """Return the report after one more batch with the counts of ``batch``, ``seconds`` from the start."""
        return IngestReport(
            self.remembered + batch.remembered,
            self.unchanged + batch.unchanged,
            self.rejected + batch.rejected,
            seconds,
            {**self.degraded, **batch.degraded},
            self.more_rejected,
            self.corroborated + batch.corroborated,
            self.contradictions + batch.contradictions,
        )

    @property
    def read(self) -> int:
        """The number of items read from the input."""
        return self.remembered + self.unchanged + len(self.rejected) + self.more_rejected


@dataclass(frozen=True, slots=True)
class Concept:
    """A name that memories of a namespace mention: its spelling, how many mention it (``df``), how many are about it.

    ``kind`` is "name". ``aliases`` are the names that were merged into it by hand.
    """

    name: str
    kind: str
    df: int
    subjects: int
    aliases: tuple[str, ...] = ()
