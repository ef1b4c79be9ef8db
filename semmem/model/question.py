"""A parsed question and its parts: its concepts, and the author and the months that it asks about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semmem.model.exchange import Ranking

__all__ = ["ConversationalQuery", "Kinds", "Name", "Period", "Question", "QuestionConcepts"]


class Name(NamedTuple):
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
class ConversationalQuery:
    """A question put to a conversation: the one author it asks, the text without that name, and its months.

    ``text`` is for words and concepts. ``to_embed`` is for the embedder: it has "I" and "my" in place of the name, as
    the author would have said it. Months are (month from 1, year or None). ``collects`` says that the answer is in many
    turns. ``authors`` is how many authors it names; of several it asks none.
    """

    author: str | None
    text: str
    to_embed: str
    months: tuple[tuple[int, int | None], ...]
    collects: bool = False
    authors: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """A period of time that a question names: its ``words``, its first moment, and the first moment after it.

    None for an open side. A time without a zone is local to this process.
    """

    words: str
    start: datetime | None
    end: datetime | None

    @property
    def bounds(self) -> tuple[float, float]:
        """The start and the end in seconds since 1970."""
        return -inf if self.start is None else _seconds(self.start), inf if self.end is None else _seconds(self.end)

    def __str__(self) -> str:
        if self.end is None:
            return f'"{self.words}" (from {_moment(self.start)})' if self.start else f'"{self.words}" (any time)'
        first = "" if self.start is None else f"from {_moment(self.start)} "
        return f'"{self.words}" ({first}to before {_moment(self.end)})'


def _seconds(at: datetime) -> float:
    try:
        return at.timestamp()
    except (OverflowError, ValueError):  # the first or the last day of the calendar, in local time
        return -inf if at.year < 1970 else inf


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d}" if at.time() == time() else f"{at:%Y-%m-%d %H:%M}"


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
        kinds: dict[str, set[str]] = {namespace: set() for namespace in namespaces}
        named: dict[str, dict[str, list[Sequence[str | None]]]] = {namespace: {} for namespace in namespaces}
        for namespace, what, author, behind in rows:
            kinds[namespace].add(what)
            if author is not None:
                named[namespace].setdefault(author, []).append(tuple(behind or ()))
        return {n: cls("session" in kinds[n], "author" in kinds[n], named[n]) for n in namespaces}


@dataclass(frozen=True, slots=True)
class Question:
    """A query, parsed once before any leg is asked; no leg changes it.

    ``query`` is the query as given. ``text`` is used for words and concepts; in a conversation it lacks the name of the
    author asked about. ``conversational`` says who that author is and which months are meant, None where no memory has
    an author. ``concepts`` are those of ``text``, where a leg that reads them is called. ``vector`` is a unit vector of
    shape (dimensions,). Where there is none, ``no_vector`` says why, and a leg that needs a vector raises it.

    ``rankings`` are the lists of the legs that answered before, for a leg that follows them, and ``prepared`` is what
    this leg prepared meanwhile. ``narrowed`` holds the
    question for each of several namespaces, because who is meant depends on who wrote there; its ``rankings`` belong to
    that namespace. ``periods`` are the periods of time that the query names, None where the recipe does not use them.
    """

    text: str
    phrases: tuple[str, ...] = ()
    conversational: ConversationalQuery | None = None
    concepts: QuestionConcepts | None = None
    vector: NDArray[np.float32] | None = None
    no_vector: Exception | None = None
    sessions: bool = True
    query: str = ""
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    periods: tuple[Period, ...] | None = None
    narrowed: Mapping[str, Question] = field(default_factory=dict)
    prepared: Any = None

    def within(self, namespace: str) -> Question:
        """Return the question for one namespace."""
        return self.narrowed.get(namespace, self)

    @property
    def to_embed(self) -> str:
        """The words to embed: those that the author asked about would have said."""
        return self.conversational.to_embed if self.conversational is not None else self.query or self.text
