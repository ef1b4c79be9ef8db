"""Data exchanged between pipelines, stores and legs: rows to write, scopes, postings, questions and rankings.

``row_id`` is the number a store gives each memory or part within its namespace, never shown to users. In a call about
several namespaces its upper bits say which of them it is of: the place in their list (``placed``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from semmem.model.question import Kinds, Question
from semmem.model.types import Filters, Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semmem.model.history import Similar

__all__ = [
    "BEHIND",
    "LAST",
    "MOST_TURNS",
    "UNINDEXED",
    "CandidateMetadata",
    "Corrections",
    "DerivationVersion",
    "Extraction",
    "Forwards",
    "Kind",
    "Kinds",
    "Postings",
    "Question",
    "Ranking",
    "Row",
    "RowIds",
    "Scope",
    "Stored",
    "Trace",
    "Turn",
    "Written",
    "apart",
    "local",
    "placed",
]  # fmt: skip

RowIds: TypeAlias = "Collection[int] | NDArray[np.int64]"
"""Numbers of memories or parts."""

MOST_TURNS = 4_000
"""Most turns read around the candidates of one question; beyond it the rules of conversation do not act."""

LAST = 16
"""Last memories of an author that decide whether the author takes turns with others."""

BEHIND = 8
"""Memories before each of them whose authors are read."""

UNINDEXED = -1
"""The number of parts of a sensitive memory: neither it nor a part of it is indexed."""

_SHIFT = 40


def placed(row_ids: Any, place: int) -> Any:
    """Return a row id, or an array of row ids, with the ``place`` of its namespace in the upper bits."""
    return row_ids + (place << _SHIFT)


def local(row_ids: Any) -> Any:
    """Return a row id, or an array of row ids, without the place of its namespace."""
    return row_ids & ((1 << _SHIFT) - 1)


def apart(namespaces: Sequence[str], row_ids: RowIds) -> list[tuple[int, str, NDArray[np.int64]]]:
    """Return (place, namespace, its local row ids) for each namespace that has some of ``row_ids``.

    A single namespace is always returned, even without row ids.
    """
    import numpy as np

    whole = np.fromiter(row_ids, np.int64, len(row_ids))
    if len(namespaces) == 1:
        return [(0, namespaces[0], whole)]
    if not len(whole):
        return []
    order = np.argsort(whole >> _SHIFT, kind="stable")
    places, starts = np.unique(whole[order] >> _SHIFT, return_index=True)
    pieces = np.split(local(whole[order]), starts[1:])
    return [(place, namespaces[place], piece) for place, piece in zip(places.tolist(), pieces, strict=True)]


class DerivationVersion(NamedTuple):
    """The versions of the splitter and of the likeness keys, and an extractor with its version; "" is not known."""

    splitter: int = 0
    likeness: int = 0
    extractor: str = ""
    version: str = ""

    @property
    def text(self) -> str:
        """The derivation version as a store keeps it."""
        return f"{self.splitter} {self.likeness} {'_'.join(self.version.split()) or '-'} {self.extractor}"


@dataclass(frozen=True, slots=True)
class Row:
    """One memory, or one part of a split memory, ready to be written.

    ``part`` is 0 for a whole memory. ``parts`` is how many parts a whole was split into (0: not split), and
    ``UNINDEXED`` for a sensitive memory; so the indexed rows are those with ``parts`` 0. ``extraction`` is None for
    rows that are not indexed. ``content`` and ``payload`` are 16-byte hashes, of the normalised text and of everything
    given; for a sensitive memory they are 16 random bytes. ``embedder`` is the identity of the embedder that made
    ``vector``: a store filled by another embedder refuses it, an empty store records it. ``replaces`` are version,
    payload and creation time of the memory that a whole replaces; the history keeps that one as changed by
    ``changed_by``. ``retells`` says that the new one says something else, ``restores`` that the memory comes out of the
    history. ``likeness`` are the keys by which similar memories find a whole. A row that ``merges`` is not stored where
    a memory has the same content. ``text_at`` is when the text of a whole began, None for its ``created_at``.
    ``made_by`` is what made the parts, concepts and keys of the batch (model/store/derivations.py), "" where that is
    not known. ``versions`` is how many earlier versions the history keeps of a whole that is replaced, None for all of
    them.
    """

    memory: Memory
    part: int
    parts: int
    extraction: Extraction | None
    vector: NDArray[np.float32] | None
    content: bytes
    payload: bytes
    embedder: Mapping[str, Any] | None = None
    replaces: tuple[int, bytes, datetime] | None = None
    language: str = "english"  # of its stems
    changed_by: str | None = None
    restores: bool = False
    likeness: tuple[int, ...] = ()
    merges: bool = False
    retells: bool = False
    text_at: datetime | None = None
    made_by: str = ""
    versions: int | None = None

    @property
    def name(self) -> tuple[str, str]:
        """Namespace and id of the whole memory."""
        return self.memory.namespace, self.memory.parent_id or self.memory.id

    @property
    def made_anew(self) -> bool:
        """Whether a whole replaces the same version of itself, of which only what is derived is made anew."""
        return self.replaces is not None and self.replaces[0] == self.memory.version


@dataclass(frozen=True, slots=True)
class Stored:
    """A whole memory as it is stored, the hash of the item it was made from, and ``text_at`` as a Row has it."""

    memory: Memory
    payload: bytes
    text_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Corrections:
    """Corrections of names in one namespace, made by people.

    ``into`` maps the key of a name to the (key, name) it is merged into, ``apart`` are names that no rule may merge,
    ``names`` are their spellings.
    """

    into: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    apart: frozenset[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)

    def key(self, key: int) -> int:
        """Return the key that ``key`` is merged into, ``key`` itself where it is not merged."""
        target = self.into.get(key)
        return key if target is None else target[0]

    def forms(self, keys: Collection[int]) -> set[int]:
        """Return ``keys`` and all keys that are merged into one of them."""
        return set(keys).union(key for key, (into, _) in self.into.items() if into in keys)


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing a batch of whole memories, by (namespace, id).

    ``replaced`` are new versions of stored memories. ``conflicts`` are ids stored with other content, or with another
    version than the one to be replaced. ``row_ids`` are those of the written rows, by (namespace, id, part).
    ``degraded`` maps work left to ``maintain`` to the reason. ``memories`` holds some memories as stored, where the
    store knows them without another query. ``corroborated`` maps a repeat that was not stored to the id of the first
    memory, and ``similar`` maps a written memory to those that share keys with it.
    """

    new: frozenset[tuple[str, str]]
    unchanged: frozenset[tuple[str, str]]
    conflicts: frozenset[tuple[str, str]]
    row_ids: Mapping[tuple[str, str, int], int] = field(default_factory=dict)
    replaced: frozenset[tuple[str, str]] = frozenset()
    degraded: Mapping[str, str] = field(default_factory=dict)
    memories: Mapping[tuple[str, str], Memory] = field(default_factory=dict)
    corroborated: Mapping[tuple[str, str], str] = field(default_factory=dict)
    similar: Mapping[tuple[str, str], Sequence[Similar]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """The memories that a recall may return: the row ids ``allowed`` in its namespaces (None: all) less ``excluded``.

    ``size`` is the number of indexed memories in scope, ``excluded`` ones included, and ``sizes`` that of each
    namespace, where the store tells. Both arrays are sorted. ``filters`` and ``exclude`` are the arguments the scope
    was made from, for a leg that looks memories up by itself. ``settings`` are the search settings of the namespaces as
    a JSON array of [namespace, name, value], None where there are none. ``kinds`` and ``corrections`` are the
    conversation facts and corrections of each namespace for this question, None where they were not asked for;
    ``languages`` are those in which its memories were extracted. ``states`` tell whether a namespace has changed since
    another scope was made (None: it has no memories), where the store counts changes; they were read last, and
    ``states_before`` first, so that what both name has one state. ``linked`` are the namespaces that have links between
    memories, ``superseding`` those in which a link may supersede. ``lapsed`` are the row ids of memories that are not
    valid now. In a recall of another time, ``at``, these are out of scope.
    """

    namespaces: tuple[str, ...]
    size: int
    allowed: NDArray[np.int64] | None = None
    excluded: NDArray[np.int64] | None = None
    filters: Filters | None = None
    exclude: tuple[str, ...] = ()
    settings: str | None = None
    kinds: Mapping[str, Kinds] | None = None
    corrections: Mapping[str, Corrections] | None = None
    states: Mapping[str, tuple[Any, ...] | None] | None = None
    states_before: Mapping[str, tuple[Any, ...] | None] | None = None
    languages: Mapping[str, str] = field(default_factory=dict)
    linked: frozenset[str] = frozenset()
    superseding: frozenset[str] = frozenset()
    lapsed: frozenset[int] = frozenset()
    at: datetime | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    def matches(self, row_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of ``row_ids`` are in scope, as a boolean array of the same shape."""
        import numpy as np

        inside = np.ones(len(row_ids), dtype=bool)
        if self.allowed is not None:
            inside &= np.isin(row_ids, self.allowed)
        if self.excluded is not None and len(self.excluded):
            inside &= ~np.isin(row_ids, self.excluded)
        return inside

    @property
    def searched(self) -> int:
        """The number of memories in scope, without the excluded ones; each part of a long memory is one."""
        import numpy as np

        if self.excluded is None:
            return self.size
        outside = self.excluded if self.allowed is None else self.allowed[np.isin(self.allowed, self.excluded)]
        return max(0, self.size - len(outside))

    def names_row_ids_of(self, other: Scope) -> bool:
        """Return whether both scopes allow and exclude the same row ids."""
        import numpy as np

        pairs = ((self.allowed, other.allowed), (self.excluded, other.excluded))
        return all(one is its if one is None or its is None else np.array_equal(one, its) for one, its in pairs)

    def holds_beside(self, later: Scope) -> bool:
        """Return whether a later scope of the same question still allows all row ids of this one and excludes no more.

        Then no memory had its row id replaced. One that was added meanwhile is in the later scope alone.
        """
        import numpy as np

        pairs = ((self.allowed, later.allowed), (later.excluded, self.excluded))
        return all(one is None or bool(np.isin(one, () if its is None else its).all()) for one, its in pairs)

    def with_links(self, linked: Mapping[str, int]) -> Scope:
        """Return the scope with the link facts of namespaces: 1 for links, 2 where one may supersede."""
        some, older = (frozenset(n for n, has in linked.items() if has >= least) for least in (1, 2))
        return replace(self, linked=some, superseding=older)

    def occupied(self) -> Collection[str]:
        """Return the namespaces that a leg has to ask: without those known to be empty, or all where all are empty."""
        if self.filters or self.at is not None or not self.sizes or not self.size:
            return self.namespaces
        return {n for n in self.namespaces if self.sizes.get(n) != 0}

    def each(self) -> tuple[Scope, ...]:
        """Return the scope restricted to each of its namespaces, with local row ids."""
        if len(self.namespaces) == 1:
            return (self,)
        return tuple(self._of(place, namespace) for place, namespace in enumerate(self.namespaces))

    def _of(self, place: int, namespace: str) -> Scope:
        def own(row_ids: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
            if row_ids is None:
                return None
            start, end = row_ids.searchsorted((placed(0, place), placed(0, place + 1)))
            within: NDArray[np.int64] = local(row_ids[start:end])
            return within

        size, allowed, excluded = self.sizes.get(namespace, self.size), own(self.allowed), own(self.excluded)
        return replace(self, namespaces=(namespace,), size=size, allowed=allowed, excluded=excluded)


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of some keys in one namespace.

    ``keys`` are those found, ascending, and ``sizes`` how many entries each has; ``entries`` is one structured array
    (row id, count, length, mention, subject), key after key. ``memories`` and ``length`` are the number and the summed
    length of the indexed memories. ``of_today`` is how many memories of today count each key, where entries of earlier
    versions stand among those of today; None elsewhere.
    """

    memories: int
    length: int
    keys: NDArray[np.int64]
    sizes: NDArray[np.int64]
    entries: NDArray[Any]
    of_today: NDArray[np.int64] | None = None

    def counted(self) -> NDArray[np.int64]:
        """Return for each key how many of its entries count it; some memories have it only as their subject."""
        import numpy as np

        if (counts := self.entries["count"] > 0).all():
            return self.sizes
        return np.bincount(np.repeat(np.arange(len(self.sizes)), self.sizes)[counts], minlength=len(self.sizes))

    def df(self) -> NDArray[np.int64]:
        """Return for each key how many memories of today count it."""
        return self.counted() if self.of_today is None else self.of_today

    def items(self) -> list[tuple[int, NDArray[Any]]]:
        """Return each key with its entries, keys ascending."""
        ends = self.sizes.cumsum()
        starts = ends - self.sizes
        return [
            (key, self.entries[start:end])
            for key, start, end in zip(self.keys.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Forwards:
    """The concepts of some memories: ``row_ids`` ascending, ``sizes`` how many entries each has.

    ``entries`` is one structured array (key, count, mention, subject, kind), memory after memory. ``candidates`` is one
    structured array (row id, key, place) of the runs that may be known names, where they were asked for.
    """

    row_ids: NDArray[np.int64]
    sizes: NDArray[np.int64]
    entries: NDArray[Any]
    candidates: NDArray[Any] | None = None


class Turn(NamedTuple):
    """A memory in its session: ``asks`` whether it ends in a question mark; ``month`` is 12 · year + month - 1.

    The other fields are those of its CandidateMetadata.
    """

    namespace: str
    row_id: int
    session: str | None
    author: str | None
    asks: bool
    month: int
    id: str = ""
    part: int = 0
    importance: float = 0.5
    content: bytes = b""
    created_at: float = 0.0
    updated_at: float = 0.0

    @property
    def candidate(self) -> CandidateMetadata:
        """The fields that fusion needs."""
        return CandidateMetadata(self.row_id, self.namespace, *self[6:])


@dataclass(frozen=True, slots=True)
class CandidateMetadata:
    """The fields of a candidate that fusion needs, times in seconds since 1970; texts are fetched only for hits.

    ``key`` is (id, part, namespace), by which candidates are fused and ordered; it is made once, for many recalls.
    """

    row_id: int
    namespace: str
    id: str
    part: int
    importance: float
    content: bytes
    created_at: float
    updated_at: float
    key: tuple[str, int, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.id, self.part, self.namespace))


@dataclass(slots=True)
class Trace:
    """What a leg knows besides its list, for fusion, for counting and for explanations.

    ``most`` is the best score that the question allows, where the leg knows it. ``matched`` are the row ids of all
    matches, sorted, also beyond the depth; None where the leg knows only its list. ``exact`` are row ids that hold
    every word of the question, which may earn the exact bonus.
    """

    most: float | None = None
    matched: NDArray[np.int64] | None = None
    exact: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result of one leg: row ids, best first; their falling scores in the leg's own units; the number of matches.

    A memory that is named twice counts once, at its better place. ``turns`` are memories whose metadata the leg has
    read, by row id, so that they are not read again. ``regime`` is set by the leg that decides it. ``degraded`` maps a
    part of the leg that did not act to the reason.
    """

    row_ids: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    total: int = 0
    regime: str | None = None
    trace: Trace = field(default_factory=Trace)
    degraded: Mapping[str, str] = field(default_factory=dict)
    turns: Mapping[int, Turn] = field(default_factory=dict)


class Kind(IntEnum):
    """The kind of a key. A term is only a word of the lexical leg; the other kinds are concepts too."""

    TERM = 0
    STEM = 1
    BIGRAM = 2
    NAME = 3


@dataclass(frozen=True, slots=True)
class Extraction:
    """The terms and concepts of one memory: parallel columns, one entry per key, keys distinct and ascending.

    ``keys`` are signed 64-bit hashes of (kind, folded tokens), ``names`` their spellings. ``mentions`` is the weight
    a(m, c) in [0, 1], ``subjects`` the weight b(c, m), 0 where the memory is not about the concept. ``counts`` is the
    term frequency (title counted twice) of stems and terms, 0 for other kinds; ``length`` is the number of terms of the
    memory, title counted twice. ``relationships`` are (key of a name, type, key of a name), sorted; the rules find
    none. ``candidates`` are (key of a name, place) of the runs of title and text that are names if another memory is
    about them (see concepts.names.candidates).

    An extractor may give lists. Those of semmem give tuples: a bulk has millions of values in these columns at once,
    and the garbage collector visits each value of a list again and again, but of a tuple of numbers or strings once.
    """

    keys: Sequence[int]
    kinds: Sequence[int]
    names: Sequence[str]
    mentions: Sequence[float]
    subjects: Sequence[float]
    counts: Sequence[int]
    length: int
    relationships: Sequence[tuple[int, str, int]] = ()
    candidates: Sequence[tuple[int, int]] = ()
