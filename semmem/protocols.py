"""The seams: Store, Leg, Embedder, Extractor, Reranker, and what passes through them.

Everything here is below all back-ends, so that code that measures can use a contract without importing any of them.
``ord`` is the number a store gives each stored memory or part; it is unique in the store and never shown to users.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from semmem.types import Extraction, Filters, Memory, Page, Recipe, Stats, Talk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Corrections",
    "Embedder",
    "Extractor",
    "Forwards",
    "Head",
    "Leg",
    "Postings",
    "Question",
    "Ranking",
    "Reranker",
    "Row",
    "Scope",
    "Store",
    "Written",
]


@dataclass(frozen=True, slots=True)
class Row:
    """One memory, or one part of a split memory, ready to be written.

    ``part`` is 0 for a whole memory, ``parts`` how many parts a whole was split into (0: not split). ``extraction`` is
    None for a whole that was split. ``content`` and ``payload`` are 16-byte hashes: of the normalised text, and of all
    that was given. ``arrivals`` are the keys of its subjects that the namespace did not know.
    """

    memory: Memory
    part: int
    parts: int
    extraction: Extraction | None
    vector: NDArray[np.float32] | None
    content: bytes
    payload: bytes
    arrivals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Corrections:
    """What people corrected in one namespace: ``into`` maps the key of a name to (key, name) of what it is taken for,
    ``apart`` are names that no rule may take for another, ``names`` how each of them was written.
    """

    into: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    apart: frozenset[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)

    def key(self, at: int) -> int:
        """Return the key that ``at`` is taken for, itself where nobody said otherwise."""
        found = self.into.get(at)
        return at if found is None else found[0]

    def forms(self, keys: Collection[int]) -> set[int]:
        """Return ``keys`` and all that is taken for one of them."""
        return set(keys).union(at for at, (into, _) in self.into.items() if into in keys)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the whole memories of a batch, by (namespace, id).

    ``ords`` are those of the new rows, by (namespace, id, part), and ``changes`` the number under which the arrivals of
    each namespace were noted.
    """

    new: frozenset[tuple[str, str]]
    unchanged: frozenset[tuple[str, str]]
    conflicts: frozenset[tuple[str, str]]
    ords: Mapping[tuple[str, str, int], int] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a recall may return: namespaces, and within them ``allowed`` ords (None: all) less ``excluded`` ords.

    ``size`` is the number of indexed memories in it. Both arrays are sorted.
    """

    namespaces: tuple[str, ...]
    size: int
    allowed: NDArray[np.int64] | None = None
    excluded: NDArray[np.int64] | None = None

    def admits(self, ords: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of ``ords`` are in scope, as a boolean array of the same shape."""
        import numpy as np

        inside = np.ones(len(ords), dtype=bool)
        if self.allowed is not None:
            inside &= np.isin(ords, self.allowed)
        if self.excluded is not None and len(self.excluded):
            inside &= ~np.isin(ords, self.excluded)
        return inside


@dataclass(frozen=True, slots=True)
class Postings:
    """What a store knows of some keys in one namespace.

    ``keys`` are those found, ascending, and ``sizes`` how many entries each has; ``entries`` is one structured array
    (ord, count, length, mention, subject), key after key. ``memories`` and ``length`` are the number and the summed
    length of the indexed memories.
    """

    memories: int
    length: int
    keys: NDArray[np.int64]
    sizes: NDArray[np.int64]
    entries: NDArray[Any]

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
    """What some memories hold: ``ords`` ascending, ``sizes`` how many entries each has.

    ``entries`` is one structured array (key, count, mention, subject, kind), memory after memory.
    """

    ords: NDArray[np.int64]
    sizes: NDArray[np.int64]
    entries: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Head:
    """The little that fusion needs of a candidate; the whole memory is fetched for the hits alone."""

    ord: int
    namespace: str
    id: str
    part: int
    importance: float
    content: bytes
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the legs see it: in a conversation ``text`` is without the author's name, which ``talk`` has.

    ``vector`` is called by the legs that need it, so that no model is loaded for a question that needs none; it
    returns a unit vector of shape (dimensions,), or raises EmbedderUnavailable.
    """

    text: str
    phrases: tuple[str, ...] = ()
    vector: Callable[[], NDArray[np.float32]] | None = None
    heads: Mapping[str, Ranking] = field(default_factory=dict)
    talk: Talk | None = None
    sessions: bool = True


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one leg returns: ords best first, their scores in the leg's own units (falling), how many it matched.

    ``regime`` is set by a leg that decides it; ``trace`` is what the leg keeps to explain itself.
    """

    ords: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    total: int = 0
    regime: str | None = None
    trace: Any = None


class Store(Protocol):
    """One transactional store of memories, postings and vectors. Every method is safe to call from any thread."""

    url: str

    def close(self) -> None:
        """Give the connections back; the data stays."""
        ...

    def embedder(self) -> Mapping[str, Any] | None:
        """Return who filled the store with vectors (name, dimensions, fingerprint), None before the first one."""
        ...

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        ...

    def write(self, rows: Sequence[Row], *, on_conflict: str) -> Written:
        """Store ``rows`` in one transaction; with on_conflict="abort" a Conflict rolls all of it back."""
        ...

    def known_subjects(self, keys: Mapping[str, Collection[int]]) -> Mapping[str, set[int]]:
        """Return, for each namespace, which of the name keys some memory has as its subject."""
        ...

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, in the order asked; ``{id}#{n}`` names a part."""
        ...

    def list(self, namespace: str, filters: Filters, limit: int, cursor: str | None) -> Page:
        """Return whole memories, newest first."""
        ...

    def forget(self, namespace: str, id: str | None, filters: Filters, *, dry_run: bool) -> int:
        """Remove memories with all that was derived from them; return how many whole memories."""
        ...

    def stats(self, namespace: str | None) -> Stats:
        """Count."""
        ...

    def scope(self, namespaces: tuple[str, ...], filters: Filters, exclude: Sequence[str]) -> Scope:
        """Resolve filters and excluded ids to ords."""
        ...

    def postings(
        self, namespaces: Sequence[str], keys: Collection[int], *, max_df: int | None = None, shared: bool = False
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace.

        Keys that more than ``max_df`` memories mention are left out, with ``shared`` also those that only one has.
        """
        ...

    def forwards(self, namespaces: Sequence[str], ords: Sequence[int]) -> Forwards:
        """Return what each memory holds."""
        ...

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories of highest inner product with a unit vector, within scope."""
        ...

    def similarities(
        self, namespaces: Sequence[str], ords: Sequence[int], vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        ...

    def neighbours(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        ...

    def kinds(self, namespaces: Sequence[str], keys: Collection[str]) -> tuple[bool, bool, set[str]]:
        """Return whether any memory has a session, whether any has an author, and the authors named in ``keys``.

        ``keys`` are folded names, as ``conversation.author_key`` writes them.
        """
        ...

    def written_by(self, namespaces: Sequence[str], ords: Sequence[int], author: str) -> NDArray[np.int64]:
        """Return which of ``ords`` are by ``author``, ascending."""
        ...

    def turns(
        self, namespaces: Sequence[str], ords: Sequence[int]
    ) -> Sequence[tuple[int, str | None, str | None, bool, int]]:
        """Return (ord, session, author, whether it asks, month) of the sessions that hold ``ords``, in order."""
        ...

    def vectors(self, namespaces: Sequence[str], ords: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ords that have a vector, ascending, and their vectors, one a row."""
        ...

    def heads(self, namespaces: Sequence[str], ords: Collection[int]) -> Mapping[int, Head]:
        """Return what fusion needs of each candidate; forgotten ones are left out."""
        ...

    def memories(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, Memory]:
        """Return whole rows by ord."""
        ...

    def locate(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the ords a memory is indexed under: one, or one a part; empty when there is none."""
        ...

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return what people read for each key."""
        ...

    def missing_vectors(self, after: tuple[str, int], limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of indexed memories without a vector, by (namespace, ord), from ``after`` on."""
        ...

    def add_vectors(self, rows: Sequence[tuple[str, int, NDArray[np.float32]]]) -> None:
        """Store (namespace, ord, vector) of memories that have none; those forgotten meanwhile are left out."""
        ...

    def moment(self, namespaces: Collection[str]) -> tuple[str, Mapping[str, Corrections]]:
        """Return what names this moment, for ``alias_changes``, and what people corrected in each namespace."""
        ...

    def alias_changes(self, namespace: str, since: str) -> set[int]:
        """Return the keys of the subjects that came or went, or were corrected, since a moment."""
        ...

    def note_aliases(self, namespace: str, keys: Collection[int]) -> None:
        """Note that older memories that mention ``keys`` are to be read again."""
        ...

    def waiting_aliases(self, namespace: str, *, all: bool) -> Sequence[tuple[int, Sequence[int]]]:
        """Return (number, keys) of what was noted and not settled; without ``all`` only what nobody looked at yet."""
        ...

    def settle_aliases(self, namespace: str, numbers: Sequence[int], left: Collection[int]) -> None:
        """Mark what was noted as settled, but for the keys ``left``, which wait for maintain."""
        ...

    def alias_namespaces(self) -> Sequence[str]:
        """Return the namespaces where something waits."""
        ...

    def spelled(self, namespace: str, words: Collection[str]) -> NDArray[np.int64]:
        """Return the memories whose text may hold one of ``words``: too many, never too few."""
        ...

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that hold memories."""
        ...

    def indexed_after(self, namespace: str, ord: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of what is indexed, in order, from ``ord`` on."""
        ...

    def reindex(self, namespace: str, found: Sequence[tuple[int, Extraction]]) -> int:
        """Let memories hold what was found in them anew; return how many were changed. Forgotten ones are left out."""
        ...

    def correct(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> None:
        """Record that the name ``one`` (key, as written) is ``into``, or (None) stands apart; note what changes by it."""
        ...

    def concepts(self, namespace: str, like: str | None, limit: int) -> Sequence[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""
        ...

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, what a relationship ties it to), each once."""
        ...

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of what the indexed memories hold, whatever the order in which they came."""
        ...

    def maintain(self) -> Mapping[str, int]:
        """Fold what is pending, join small segments, index what is not; return how much of each."""
        ...


class Leg(Protocol):
    """A retriever with a name. Scope is applied inside it, before fusion."""

    name: str

    def search(self, question: Question, scope: Scope, recipe: Recipe) -> Ranking:
        """Return at most the recipe's depth of memories in scope, best first."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors. Loading happens at the first call of ``embed``."""

    name: str
    dimensions: int
    max_tokens: int | None

    @property
    def fingerprint(self) -> str:
        """What tells these weights from others, such as their sha256."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens ``text`` has for this model."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions)."""
        ...


class Extractor(Protocol):
    """Finds the terms and concepts of a text. Pure: the same text gives the same extraction."""

    name: str

    def extract(self, text: str, title: str | None, known: Collection[int]) -> Extraction:
        """Return the extraction of one memory; ``known`` are keys of the subjects known in the namespace."""
        ...

    def candidates(self, text: str, title: str | None) -> Collection[int]:
        """Return the name keys that ``extract`` would like to know about."""
        ...

    def subjects(self, text: str, title: str | None) -> Collection[int]:
        """Return the name keys of the subjects of one memory."""
        ...


class Reranker(Protocol):
    """A second stage over the fused head of the list."""

    name: str

    def rerank(
        self, query: str, memories: Sequence[Memory], scores: Sequence[float], *, now: datetime
    ) -> list[dict[str, float]]:
        """Return each memory's terms by name, which sum to its new score in [0, 1]; ``scores`` are the fused ones."""
        ...
