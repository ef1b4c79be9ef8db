"""Parse a question once, before any leg is asked: its author, months, phrases and concepts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from reprlib import repr as brief

from semmem.concepts.rules import question as concepts_of
from semmem.legs.conversation import _ROLES, _is_month, takes_turns
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Kinds, Question
from semmem.model.filters import one_of, whole
from semmem.model.process.forks import cached_property
from semmem.model.question import ConversationalQuery, QuestionConcepts
from semmem.model.recipe import Recipe
from semmem.model.types import SORT_BY, MinConfidence
from semmem.text.passages import phrases
from semmem.text.tokens import Word, author_key, tokens

__all__ = ["NamePlaces", "as_conversational", "candidates", "checked", "conversational_query", "parse", "to_embed"]

_LONGEST_NAME = 4

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip

_MONTH = re.compile(
    rf"\b({'|'.join(_MONTHS)})\b(?:\s+\d{{1,2}}(?!\d)(?:st|nd|rd|th)?)?(?:,?\s+(?:of\s+)?(\d{{4}}))?", re.IGNORECASE
)

_COLLECTS = re.compile(
    r"""^(?:what|which|where|who|whom|how|when)\b[^?]*?\b(?:has|have)\b(?!\s+to\b)
    |^(?:in\s+)?(?:what|which)\s+(?!(?:is|was|does|has|this|his|as)\b)\w{2,}[^s\W]s\b(?=[^?]*\b(?:has|have|do|did|does|are|were)\b)
    |\bhow\ many\b|\bboth\b|\bin\ common\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches questions whose answer is spread over many turns: perfect tense, plural nouns, counting."""

_ALSO_WORDS = ("may", "march")


def candidates(question: str) -> dict[str, list[tuple[int, int]]]:
    """Return the runs of words in ``question`` that may name an author, with their (start, end) offsets.

    They are keyed by ``author_key``. A stop word alone ("will", "may") counts only with a capital letter inside the
    question. The roles that programs give the sides of a chat ("user", "assistant") are never names.
    """
    text_tokens = tokens(question)
    out: dict[str, list[tuple[int, int]]] = {}
    for first in range(len(text_tokens)):
        for past in range(first + 1, min(first + _LONGEST_NAME, len(text_tokens)) + 1):
            words = [text_tokens[i][0] for i in range(first, past)]
            if all(w.stop for w in words) and not (first > 0 and _is_written_as_name(words)):
                continue
            name = " ".join(w.folded for w in words)
            if name not in _ROLES:
                out.setdefault(name, []).append((text_tokens[first][1], text_tokens[past - 1][2]))
    return out


class NamePlaces(Mapping[str, list[tuple[int, int]]]):
    """The ``candidates`` of a question, looked for when they are first read: never where no memory has an author."""

    def __init__(self, question: str) -> None:
        self._question = question

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        return candidates(self._question)

    def __getitem__(self, name: str) -> list[tuple[int, int]]:
        return self._places[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _is_written_as_name(words: Sequence[Word]) -> bool:
    return all(w.surface[:1].isupper() and w.folded not in ("i", "im", "ive", "id", "ill") for w in words)


def conversational_query(
    question: str, places: Mapping[str, list[tuple[int, int]]], authors: Collection[str]
) -> ConversationalQuery:
    """Return the question as it is put to a conversation; ``authors`` are those of ``candidates`` who wrote there."""
    months, collects = _months(question), bool(_COLLECTS.search(question))
    if len(set(authors)) != 1:
        return ConversationalQuery(None, question, question, months, collects, len(set(authors)))
    author = next(iter(authors))
    text = to_embed = question
    for start, end in sorted(places.get(author_key(author), ()), reverse=True):
        possessive = question[start:end].lower().endswith(("'s", "\u2019s"))
        text = f"{text[:start]} {text[end:]}"
        to_embed = to_embed[:start] + ("my" if possessive else "I") + to_embed[end:]
    text = " ".join(text.split())
    return ConversationalQuery(author, text or question, to_embed, months, collects, 1)


def _months(text: str) -> tuple[tuple[int, int | None], ...]:
    out = []
    for match in _MONTH.finditer(text):
        name, year = match.group(1), match.group(2)
        if name.lower() in _ALSO_WORDS and not (year or _is_month(text, match)):
            continue
        out.append((_MONTHS.index(name.lower()) + 1, int(year) if year else None))
    return tuple(out)


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
    query: str, places: Mapping[str, list[tuple[int, int]]], kinds: Mapping[str, Kinds], recipe: Recipe
) -> dict[str, ConversationalQuery | None]:
    """Return the question as it is put to the conversations of each namespace; ``places`` are its ``candidates``.

    It is None where no memory has an author and where the recipe's conversation rules are off.
    """
    return {n: _as_conversational(query, places, found, recipe) for n, found in kinds.items()}


def to_embed(query: str, conversational_queries: Mapping[str, ConversationalQuery | None]) -> list[str]:
    """Return the texts to embed for a question: its own, and those of its namespaces."""
    own = [
        query if conversational is None else conversational.to_embed
        for conversational in conversational_queries.values()
    ]
    return sorted({*own, *([query] if len(conversational_queries) > 1 else [])})


def _as_conversational(
    query: str, places: Mapping[str, list[tuple[int, int]]], kinds: Kinds, recipe: Recipe
) -> ConversationalQuery | None:
    rules = recipe.conversation
    if rules is None or not kinds.authors:
        return None
    named = kinds.named.items()
    return conversational_query(
        query, places, {a for a, before in named if not rules.dialogue or takes_turns(a, before)}
    )


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
