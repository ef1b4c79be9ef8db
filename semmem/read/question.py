"""Parse a question once, before any leg is asked: its author, months, phrases and concepts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from reprlib import repr as brief

from semmem.concepts.rules import question as concepts_of
from semmem.legs.conversation import ROLES, takes_turns
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Kinds, Question
from semmem.model.filters import one_of, whole
from semmem.model.process.forks import cached_property
from semmem.model.question import ConversationalQuery, QuestionConcepts
from semmem.model.recipe import Recipe
from semmem.model.types import SORT_BY, MinConfidence
from semmem.text.passages import phrases
from semmem.text.talk import Talk, talk
from semmem.text.tokens import Word, author_key, tokens

__all__ = ["NamePlaces", "as_conversational", "candidates", "checked", "conversational_query", "parse", "to_embed"]

_LONGEST_NAME = 4


def candidates(question: str, language: str = "english") -> dict[str, list[tuple[int, int]]]:
    """Return the runs of words in ``question`` that may name an author, with their (start, end) offsets.

    They are keyed by ``author_key``; a genitive is keyed by the name without its ending, too. A stop word alone
    ("will", "may") counts only with a capital letter inside the question. The roles that programs give the sides of a
    chat ("user", "assistant") are never names.
    """
    text_tokens, rules = tokens(question, language), talk(language)
    first_person = rules.first_person if rules is not None else frozenset[str]()
    out: dict[str, list[tuple[int, int]]] = {}
    for first in range(len(text_tokens)):
        for past in range(first + 1, min(first + _LONGEST_NAME, len(text_tokens)) + 1):
            words = [text_tokens[i][0] for i in range(first, past)]
            if all(w.stop for w in words) and not (first > 0 and _is_written_as_name(words, first_person)):
                continue
            name = " ".join(w.folded for w in words)
            base = rules.base(name) if rules is not None and words[-1].capital else name
            for one in dict.fromkeys((name, base)):
                if one not in ROLES:
                    out.setdefault(one, []).append((text_tokens[first][1], text_tokens[past - 1][2]))
    return out


class NamePlaces(Mapping[str, list[tuple[int, int]]]):
    """The ``candidates`` of a question, looked for when they are first read: never where no memory has an author."""

    def __init__(self, question: str, language: str = "english") -> None:
        self._question, self._language = question, language

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        return candidates(self._question, self._language)

    def __getitem__(self, name: str) -> list[tuple[int, int]]:
        return self._places[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _is_written_as_name(words: Sequence[Word], first_person: Collection[str]) -> bool:
    return all(w.surface[:1].isupper() and w.folded not in first_person for w in words)


def conversational_query(
    question: str,
    places: Mapping[str, list[tuple[int, int]]],
    authors: Collection[str],
    language: str = "english",
) -> ConversationalQuery:
    """Return the question as it is put to a conversation; ``authors`` are those of ``candidates`` who wrote there."""
    rules = talk(language)
    months = rules.months(question) if rules is not None else ()
    collects = rules is not None and rules.collects(question)
    if len(set(authors)) != 1:
        return ConversationalQuery(None, question, question, months, collects, len(set(authors)))
    author = next(iter(authors))
    named = places.get(author_key(author), ())
    text = question
    for start, end in sorted(named, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    text = " ".join(text.split())
    to_embed = question
    if rules is not None:
        marked = [(start, end, _is_possessive(question, start, end, author, rules)) for start, end in named]
        to_embed = rules.as_said(question, marked)
    return ConversationalQuery(author, text or question, to_embed, months, collects, 1)


def _is_possessive(question: str, start: int, end: int, author: str, rules: Talk) -> bool:
    """Return whether the name of ``author`` stands there as a possessive: Ann's, German Annas or Ines'."""
    written = question[start:end]
    if written.lower().endswith(("'s", "\u2019s")):
        return True
    followed = question[end : end + 1] in ("'", "\u2019")
    return bool(rules.genitive) and (followed or author_key(written) != author_key(author))


def parse(
    query: str,
    kinds: Mapping[str, Kinds],
    conversational_queries: Mapping[str, ConversationalQuery | None],
    recipe: Recipe,
    language: str,
) -> Question:
    """Parse ``query`` for each namespace of ``kinds``, because a name means another person in each of them.

    ``conversational_queries`` are those of ``as_conversational``. Concepts are extracted only where the graph leg is
    called. The vector is made beside this.
    """
    quoted = tuple(phrases(query)[0])

    @cache  # most namespaces are asked the same
    def concepts(text: str) -> QuestionConcepts | None:
        return concepts_of(text, language) if recipe.walks else None

    def question_of(conversational: ConversationalQuery | None, sessions: bool) -> Question:
        text = query if conversational is None else conversational.text
        return Question(text, quoted, conversational, concepts(text), sessions=sessions, query=query)

    each = {n: question_of(conversational_queries[n], found.sessions) for n, found in kinds.items()}
    if len(each) == 1:
        return next(iter(each.values()))
    return replace(question_of(None, any(found.sessions for found in kinds.values())), narrowed=each)


def as_conversational(
    query: str,
    places: Mapping[str, list[tuple[int, int]]],
    kinds: Mapping[str, Kinds],
    recipe: Recipe,
    language: str = "english",
) -> dict[str, ConversationalQuery | None]:
    """Return the question as it is put to the conversations of each namespace; ``places`` are its ``candidates``.

    It is None where no memory has an author and where the recipe's conversation rules are off.
    """
    return {n: _as_conversational(query, places, found, recipe, language) for n, found in kinds.items()}


def to_embed(query: str, conversational_queries: Mapping[str, ConversationalQuery | None]) -> list[str]:
    """Return the texts to embed for a question: its own, and those of its namespaces."""
    own = [
        query if conversational is None else conversational.to_embed
        for conversational in conversational_queries.values()
    ]
    return sorted({*own, *([query] if len(conversational_queries) > 1 else [])})


def _as_conversational(
    query: str, places: Mapping[str, list[tuple[int, int]]], kinds: Kinds, recipe: Recipe, language: str
) -> ConversationalQuery | None:
    rules = recipe.conversation
    if rules is None or not kinds.authors:
        return None
    named = kinds.named.items()
    authors = {a for a, before in named if not rules.dialogue or takes_turns(a, before)}
    return conversational_query(query, places, authors, language)


_LONGEST_QUERY = 10_000

_MOST = 1_000


def checked(query: str, limit: int, offset: int, sort_by: str, min_confidence: MinConfidence) -> str:
    """Check the arguments of a recall; return the query without NUL characters, cut to 10,000 characters.

    Raises InvalidInput for a bad argument.
    """
    if not isinstance(query, str):
        raise InvalidInput(f"The query must be a string, not {type(query).__name__}.")
    plain = query[:_LONGEST_QUERY].replace("\x00", " ").encode("utf-8", "replace").decode()
    if not plain.strip():
        raise InvalidInput("The query is empty; ask a question, or use list to see what is stored.")
    whole("limit", limit, 1, _MOST, example=10)
    whole("offset", offset, 0, 10 * _MOST, example=10)
    one_of("sort_by", sort_by, SORT_BY)
    number = isinstance(min_confidence, int | float) and not isinstance(min_confidence, bool)
    if min_confidence != "auto" and not (number and 0 <= float(min_confidence) <= 1):
        raise InvalidInput(f'min_confidence must be a number from 0 to 1, or "auto", not {brief(min_confidence)}.')
    return plain
