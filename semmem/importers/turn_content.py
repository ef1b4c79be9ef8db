"""Whether a turn says something worth storing: phrases as data, in English, German, Spanish and French.

A turn of nothing but known phrases ("yes, do it", "gracias") is an acknowledgement. Any other word makes it a turn with
content, so "yes, port 6543" is stored.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pkgutil import get_data

__all__ = ["is_acknowledgement", "is_answer", "is_bare_question", "question_in"]

_LANGUAGES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (get_data("semmem.text", "turn_phrases.toml") or b"").decode()
)
"""The phrases of each language by their kind, as the head of the file describes them.

They are read by pkgutil, because every hook waits for it, and importlib.resources takes longer to import than to read.
"""


def _phrases(kind: str) -> list[str]:
    """Return the phrases of a kind in all languages."""
    return [phrase.strip().casefold() for words in _LANGUAGES.values() for phrase in words[kind].split("|")]


def _one_of(kind: str) -> str:
    return "|".join(map(re.escape, _phrases(kind)))


_ANSWERS = frozenset(tuple(phrase.split()) for phrase in _phrases("answers"))
_KNOWN = _ANSWERS.union(tuple(phrase.split()) for phrase in _phrases("empty"))
_LONGEST = max(map(len, _KNOWN))
_MOST_WORDS = 12
_LEAVE = re.compile(
    f"{_one_of('courtesies')}|(?:{_one_of('procedure')})(?: (?:{_one_of('meanwhile')}))* (?:{_one_of('go_on')})"
    f"(?: (?:{_one_of('behind')}))*"
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_LIST = re.compile(r"[ \t]*(?:[-*•]|\(?[0-9a-zA-Z]{1,2}[.)])[ \t]")
_SENTENCE_END = re.compile(r"(?<=[.!?…？。])[\"'»”)*_`]*\s+|\n+")
_LONGEST_QUESTION = 1_000


def is_acknowledgement(text: str) -> bool:
    """Return whether ``text`` is made of nothing but phrases that say nothing, or holds no letter and no digit.

    A question that only asks for leave to go on says nothing either.
    """
    if len(text) > _LONGEST_QUESTION:
        return False
    return all(_says_nothing(_words(sentence)) for sentence in _sentences(text))


def is_answer(text: str) -> bool:
    """Return whether an acknowledgement answers a question, such as "yes please", and does not only thank for it."""
    words = _words(text)
    return any(
        tuple(words[index : index + size]) in _ANSWERS for index in range(len(words)) for size in range(1, _LONGEST + 1)
    )


def question_in(text: str) -> str:
    """Return the question that ``text`` ends with, with the list of choices behind it; "" where it ends with none.

    A question that only asks for leave to go on is none.
    """
    lines = text.strip().split("\n")
    choices = len(lines)
    while choices and (not lines[choices - 1].strip() or _LIST.match(lines[choices - 1])):
        choices -= 1
    head, tail = "\n".join(lines[:choices]).rstrip(), "\n".join(lines[choices:])
    sentences = _sentences(head)
    first = len(sentences)
    while first and _asks(sentences[first - 1]):
        first -= 1
    asked = " ".join(sentences[first:])
    if not asked or _LEAVE.fullmatch(" ".join(_words(asked))):
        return ""
    whole = f"{asked}\n{tail.strip()}" if tail.strip() else asked
    return whole if len(whole) <= _LONGEST_QUESTION else ""


def is_bare_question(text: str) -> bool:
    """Return whether ``text`` only asks: each of its sentences is a question, or says nothing."""
    head = text.strip()
    return bool(question_in(head)) and all(_asks(one) or is_acknowledgement(one) for one in _sentences(head))


def _says_nothing(words: list[str]) -> bool:
    known = len(words) <= _MOST_WORDS and _consists_of(words)
    return not words or known or _LEAVE.fullmatch(" ".join(words)) is not None


def _sentences(text: str) -> list[str]:
    return [one.strip() for one in _SENTENCE_END.split(text) if one.strip()]


def _asks(sentence: str) -> bool:
    return sentence.rstrip(" \"'»”)*_`").endswith(("?", "？"))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("’", "'"))


def _consists_of(words: list[str]) -> bool:
    """Return whether known phrases, one behind the other, make up all the words."""
    reached = {0}
    for index in range(len(words)):
        if index in reached:
            reached |= {
                index + size
                for size in range(1, _LONGEST + 1)
                if index + size <= len(words) and tuple(words[index : index + size]) in _KNOWN
            }
    return len(words) in reached
