"""Parts of a parsed question: its concepts and their corrections, the author and the months it asks about. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Corrections", "Kinds", "Name", "QuestionConcepts", "Talk"]


@dataclass(frozen=True, slots=True)
class Corrections:
    """Corrections of names in one namespace, made by people.

    ``into`` maps the key of a name to the (key, name) it is merged into, ``apart`` are names that no rule may merge,
    ``names`` are their spellings.
    """

    into: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    apart: frozenset[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)

    def key(self, at: int) -> int:
        """Return the key that ``at`` is merged into, ``at`` itself where it is not merged."""
        found = self.into.get(at)
        return at if found is None else found[0]

    def forms(self, keys: Collection[int]) -> set[int]:
        """Return ``keys`` and all keys that are merged into one of them."""
        return set(keys).union(at for at, (into, _) in self.into.items() if into in keys)


@dataclass(frozen=True, slots=True)
class Name:
    """A run of tokens of a question that may be a name.

    ``first`` and ``past`` are token positions, ``start`` and ``end`` character offsets. ``capitalised`` says that all
    content words begin with a capital, ``span`` that the run is a capitalised span, and ``edge_stops`` that its first
    or last word is a stop word.
    """

    key: int
    tokens: tuple[str, ...]
    label: str
    first: int
    past: int
    start: int
    end: int
    capitalised: bool
    span: bool
    edge_stops: bool

    @property
    def size(self) -> int:
        """Number of tokens."""
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class QuestionConcepts:
    """A question as the graph leg reads it.

    ``names`` are all runs of up to 8 tokens, capitals or not, that may name a subject, longest first, then from left to
    right. ``spans`` are the capitalised ones (see semmem.concepts.names). ``keys, kinds, labels, weights`` are
    parallel: the concepts of every kind with their weight a (spans, bigrams, stems), keys ascending.
    """

    names: tuple[Name, ...]
    spans: tuple[Name, ...]
    keys: tuple[int, ...]
    kinds: tuple[int, ...]
    labels: tuple[str, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """A question put to a conversation: the one author it names, the text without that name, and its months.

    ``text`` is for words and concepts. ``spoken`` is for the embedder: it has "I" and "my" in place of the name, as the
    author would have said it. Months are (month from 1, year or None). ``collects`` says that the answer is in many
    turns.
    """

    author: str | None
    text: str
    spoken: str
    months: tuple[tuple[int, int | None], ...]
    collects: bool = False


@dataclass(frozen=True, slots=True)
class Kinds:
    """Whether a namespace has sessions and authors, and the authors whom a question names.

    ``named`` maps each author, as spelled in memories, to the authors who spoke before each of that author's last
    memories in the session, nearest first.
    """

    sessions: bool = False
    authors: bool = False
    named: Mapping[str, Sequence[Sequence[str | None]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, namespaces: Sequence[str], rows: Iterable[tuple[str, str, str | None, Sequence[str | None] | None]]
    ) -> dict[str, Kinds]:
        """Build from rows (namespace, what, author, authors before), where what is "session", "author" or "named"."""
        seen: dict[str, set[str]] = {namespace: set() for namespace in namespaces}
        named: dict[str, dict[str, list[Sequence[str | None]]]] = {namespace: {} for namespace in namespaces}
        for namespace, what, author, behind in rows:
            seen[namespace].add(what)
            if author is not None:
                named[namespace].setdefault(author, []).append(tuple(behind or ()))
        return {n: cls("session" in seen[n], "author" in seen[n], named[n]) for n in namespaces}
