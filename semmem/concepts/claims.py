"""Decide whether one text says that something changed which another text had said. Pure.

The texts must agree in subject and attribute and differ in the value. No model reads them. Each sentence is split into
its values (numbers, times, dates, versions, names, addresses), its frame (the other words as stems; verbs with the same
meaning count as one) and its polarity. Two sentences contradict each other when their frames are equal and their
values, of one kind, differ; when one of them denies the other; or when the newer one says what it replaces ("X instead
of Y", "from Y to X").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from semmem.concepts.claim_words import (
    CUE,
    EMPTY,
    FIRST,
    INSTEAD,
    MAY_HOLD_VALUE,
    NAMED,
    NOT,
    NUMBERED,
    NUMBERS,
    PAST,
    PLACE,
    SAME,
    SINGLE,
    VALUE,
    VERBS,
    WORD,
)
from semmem.text.passages import sentences
from semmem.text.tokens import fold, stem

__all__ = ["Change", "Claim", "change", "change_between", "claims", "read_word"]

Kind = Literal["number", "time", "day", "date", "version", "address", "colour", "state"]

ENOUGH = 0.67
"""The share of the smaller frame that two frames must have in common; adr/0035 has the pairs that decided it."""
ENOUGH_WITH_CUE = 0.5
"""The same share where the newer sentence itself says that something changed."""


class Value(NamedTuple):
    """A value in a sentence: its kind, its spelling, and the form that is compared."""

    kind: Kind
    written: str
    key: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence, split into its parts.

    ``values`` are by kind. ``frame`` holds the stems that say what is said of whom, ``subject`` those of them before
    the verb. ``names`` are the words with a capital inside the sentence, which may be subject or value. ``denies`` says
    that the sentence is negative, ``cue`` that it says itself that something changed, ``past`` that it tells of a
    single event.
    """

    sentence: str
    values: Mapping[str, tuple[Value, ...]]
    frame: frozenset[str]
    names: frozenset[str]
    denies: bool
    cue: bool

    subject: frozenset[str] = frozenset()
    past: bool = False
    replacements: tuple[Replacement, ...] = ()


class Replacement(NamedTuple):
    """What a sentence says to be replaced, and by what; of the old value its keys, its words and its frame."""

    old: str
    new: str
    keys: frozenset[str]
    words: frozenset[str]
    frame: frozenset[str]


class Change(NamedTuple):
    """A change: the two sentences, the old and the new value, and the name of the rule that found it."""

    older: str
    newer: str
    old: str
    new: str
    rule: Literal["value", "name", "denial", "replacement"]


_MEANINGS = frozenset(SAME.values())
_MOST_SENTENCES = 12
_LONGEST_TEXT = 5_000
_LONGEST_SENTENCE = 400


def claims(text: str, *, author: str | None = None) -> list[Claim]:
    """Split the first dozen sentences of ``text``, except those of over 400 characters; "I" is ``author``."""
    first = sentences(text[:_LONGEST_TEXT])[:_MOST_SENTENCES]
    return [_claim(sentence, author) for sentence in first if len(sentence) <= _LONGEST_SENTENCE]


def change(
    older: str, newer: str, *, older_author: str | None = None, newer_author: str | None = None
) -> Change | None:
    """Return the change that ``newer`` reports against ``older``; None where both can be true.

    ``older_author`` and ``newer_author`` are the persons that "I" means in each text.
    """
    return change_between(claims(older, author=older_author), claims(newer, author=newer_author))


def change_between(older: Iterable[Claim], newer: Iterable[Claim]) -> Change | None:
    """Return the first change between the claims of two texts."""
    before = list(older)
    for after in newer:
        for one in before:
            if (difference := _changed(one, after)) is not None:
                return difference
    return None


def _only_named(sentence: str, place: int) -> bool:
    """Return whether a number right after a word belongs to that word, because no verb says something of it."""
    before = sentence[:place]
    if not before[-2:-1].isalpha() or not before.endswith(" "):
        return False
    words = [word.lower() for word in WORD.findall(sentence)]
    return before.split()[-1].lower() not in EMPTY and VERBS.isdisjoint(words)


def _claim(sentence: str, author: str | None) -> Claim:
    values: dict[str, tuple[Value, ...]] = {}
    rest = sentence
    for match in VALUE.finditer(sentence) if MAY_HOLD_VALUE.search(sentence) else ():
        kind: Kind = match.lastgroup  # type: ignore[assignment]  # every alternative has a name
        if kind == "number" and NUMBERED.search(sentence, 0, match.start()) and NAMED.match(sentence, match.end()):
            continue  # "Room 12 has": the number belongs to the name of the subject
        if kind == "number" and _only_named(sentence, match.start()):
            continue  # "Chapter 3", "Boats, page 4": a label
        values[kind] = (*values.get(kind, ()), Value(kind, match.group().strip(), _key(kind, match.group())))
        rest = rest[: match.start()] + " " * (match.end() - match.start()) + rest[match.end() :]
    frame: set[str] = set()
    subject: set[str] = set()
    names: set[str] = set()
    past = present = verb = False
    for place, match in enumerate(WORD.finditer(rest)):
        written = match.group().replace("’", "'")
        word, term, cue = read_word(written)
        if word in FIRST:
            frame.add(fold(author) if author else "i")
            if not verb:
                subject.add(fold(author) if author else "i")
            continue
        if word in NUMBERS:
            values["number"] = (*values.get("number", ()), Value("number", written, NUMBERS[word]))
            continue
        present = present or word in ("is", "are", "am", "has", "have")
        past = past or word in PAST or (word.endswith("ed") and word not in SAME)
        named = place > 0 and written[:1].isupper() and word not in EMPTY
        meaning = None if named else SAME.get(word)
        if word in VERBS:
            verb = True
        if named:
            names.add(word)
        if meaning is None and (word in EMPTY or cue):
            continue
        term = meaning or (word if named else term)
        frame.add(term)
        if not verb and meaning is None:
            subject.add(term)
    return Claim(
        sentence,
        values,
        frozenset(frame),
        frozenset(names),
        bool(NOT.search(sentence)),
        bool(CUE.search(sentence)),
        frozenset(subject),
        past and not present,
        tuple(_replacements(sentence)),
    )


@lru_cache(maxsize=16_384)
def read_word(written: str) -> tuple[str, str, bool]:
    """Return a word folded, its stem, and whether it is a word of change."""
    word = fold(written).removesuffix("'s")
    return word, stem(word), bool(CUE.fullmatch(word))


def _replacements(sentence: str) -> Iterator[Replacement]:
    low = sentence.lower()
    for hint, pattern in INSTEAD:
        match = pattern.search(sentence) if hint in low else None
        if match is None:
            continue
        old = PLACE.split(match["old"])[0]
        if old == sentence:
            continue
        claim = _claim(old, None)
        keys = frozenset(value.key for values in claim.values.values() for value in values)
        words = frozenset(SAME.get(word, word) for word in claim.frame)
        if keys or claim.frame:
            yield Replacement(match["old"].strip(), match["new"].strip(), keys, words, claim.frame)


def _key(kind: Kind, written: str) -> str:
    text = " ".join(written.lower().split()).rstrip(".")
    if kind == "number":
        return text.replace(",", "").strip("$€£")
    if kind == "day":
        return text.removesuffix("s")
    if kind == "time":
        return re.sub(r"[\s.]|^(?:at|by|until|from)", "", text).removeprefix("0")
    if kind == "version":
        return text.removeprefix("v")
    if kind == "date" and not text[:4].isdigit():
        day = re.search(r"\d{1,2}", text)
        month = re.search(r"[a-z]{3,}", re.sub(r"\b(?:of|st|nd|rd|th)\b|(?<=\d)(?:st|nd|rd|th)", "", text))
        return f"{month.group()[:3] if month else ''}{day.group() if day else ''}"
    return text


def _changed(older: Claim, newer: Claim) -> Change | None:
    if older.sentence == newer.sentence:
        return None
    replaced = _replaced(older, newer)
    if replaced is not None:
        return Change(older.sentence, newer.sentence, *replaced, "replacement")
    if not _one_subject(older, newer):
        leaders = None if older.denies or newer.denies else _leaders(older, newer)
        return None if leaders is None else Change(older.sentence, newer.sentence, *leaders, "name")
    differing = [
        (values, newer.values[kind])
        for kind, values in older.values.items()
        if kind in newer.values and {v.key for v in values}.isdisjoint(v.key for v in newer.values[kind])
    ]
    shared_names = older.names & newer.frame | newer.names & older.frame
    old_names, new_names = older.names - newer.frame, newer.names - older.frame
    frames = older.frame - old_names, newer.frame - new_names
    common = frames[0] & frames[1]
    if not common or (len(common) == 1 and max(map(len, frames)) > 2):
        return None
    share = _share(*frames)
    enough = ENOUGH_WITH_CUE if newer.cue else ENOUGH
    tells = newer.cue or not (newer.past or older.past)
    if (
        differing
        and share >= enough
        and tells
        and (newer.cue or (len(differing) == 1 and not (old_names and new_names)))
    ):
        old, new = differing[0]
        return Change(older.sentence, newer.sentence, old[0].written, new[0].written, "value")
    both_named = bool(old_names and new_names)
    says_which = bool(common - {"use", "own", "hold"} or shared_names)
    single = newer.cue or bool(common & SINGLE and tells)
    if both_named and not older.denies and share >= enough and single and says_which:
        return Change(older.sentence, newer.sentence, _listed(old_names), _listed(new_names), "name")
    whole = len(common) >= 2 and len(common) == min(map(len, frames)) and bool(older.subject and newer.subject)
    if older.denies != newer.denies and not differing and whole and not both_named:
        return Change(older.sentence, newer.sentence, older.sentence, newer.sentence, "denial")
    return None


def _leaders(older: Claim, newer: Claim) -> tuple[str, str] | None:
    """Return (old, new) where the sentences name two different holders of one office."""
    rest = older.frame - older.subject, newer.frame - newer.subject
    if "lead" in rest[0] & rest[1] and _share(*rest) == 1 and older.subject.isdisjoint(newer.subject) and newer.subject:
        return _listed(older.subject), _listed(newer.subject)
    return None


def _replaced(older: Claim, newer: Claim) -> tuple[str, str] | None:
    """Return (old, new) where the newer sentence says that a value was replaced and the older one states that value."""
    if older.denies:
        return None
    keys = {value.key for values in older.values.values() for value in values}
    for replacement in newer.replacements:
        if not replacement.keys <= keys:
            continue
        words = replacement.words
        if words:
            whole = {read_word(word)[1] for word in WORD.findall(older.sentence)} | older.frame
            if not (words <= whole or {stem(word) for word in words} <= whole):
                continue
        context = newer.frame - replacement.frame
        if context & (older.frame - replacement.frame) or not older.frame - replacement.frame - _MEANINGS:
            return replacement.old, replacement.new
    return None


def _one_subject(older: Claim, newer: Claim) -> bool:
    """Return whether both sentences can have one subject: the words before one verb occur in the other sentence."""
    if not older.subject or not newer.subject:  # "It runs", "Keep going": the subject is unknown
        return newer.cue and bool(older.frame & newer.frame)
    return older.subject <= newer.frame or newer.subject <= older.frame


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _listed(words: Iterable[str]) -> str:
    return " ".join(sorted(words))
