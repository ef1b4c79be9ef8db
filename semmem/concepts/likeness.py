"""By what texts that may contradict or repeat each other are found: keys of what is said of whom, and a sketch. Pure.

A key is a signed 64-bit hash. Two texts that say something of the same subject and attribute have a key in common, and
so have two that are nearly the same: a look-up by key finds them in any namespace, however large. Whether they do
contradict each other is for ``claims.change``, and whether they are alike for ``resemblance``; see ADR 0035.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from semmem.concepts.claim_words import EMPTY, FIRST, NUMBERS, SAME, VERBS, WORD
from semmem.concepts.claims import Change, Claim, change_between, claims, read_word
from semmem.text.passages import sentences
from semmem.text.tokens import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ALIKE", "Outline", "changed", "claim_keys", "outlines", "resemblance", "sketches"]

ALIKE = 0.7
"""From this share of common shingles on, two texts are nearly the same; see ADR 0035."""
BANDS, ROWS = 8, 3
"""Of the sketch: so many keys, each of so many smallest hashes."""
_SHINGLE = 3
_SHORTEST = 5
"""Words of a text that has a sketch: of fewer, nothing can be said to be nearly the same."""
_MOST_SENTENCES, _LONGEST_TEXT, _LONGEST_SENTENCE = 12, 5_000, 400
_SUBJECTS, _OTHERS, _MOST_KEYS = 3, 5, 40
_NEAR = 0.4
"""Of the frames of two sentences so much must be common before they are taken apart: below what a change needs."""
_MASK = (1 << 64) - 1
_PRIME = (1 << 31) - 1
_HINTS = ("instead of", "in place of", "rather than", "replace", " from ", "rename")
_WRITTEN_VALUES = """
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december red green blue yellow black white grey gray orange purple pink brown
    silver gold
"""
_DIGIT = re.compile(r"\d")
_VALUES = frozenset(_WRITTEN_VALUES.split())


@dataclass(frozen=True, slots=True)
class Outline:
    """What a sentence says of whom, in short: its frame, the names in it, its keys.

    ``names`` are those of the frame that begin with a capital within the sentence. As ``claims.Claim`` has them, but
    for what it takes to be exact: an outline is made of every text that is stored, a claim of few. ``tells`` what takes
    whose place, or who leads: then any two words may be subject and attribute.
    """

    sentence: str
    frame: frozenset[str]
    names: frozenset[str]
    tells: bool
    keys: frozenset[int]


def outlines(text: str, author: str | None = None) -> list[Outline]:
    """Return what the first dozen sentences of ``text`` say; "I" is ``author``, and a question says nothing."""
    me = fold(author) if author else "i"
    first = sentences(text[:_LONGEST_TEXT])[:_MOST_SENTENCES]
    return [_outline(one, me) for one in first if len(one) <= _LONGEST_SENTENCE and not one.endswith("?")]


def claim_keys(said: Sequence[Outline]) -> set[int]:
    """Return the keys of what a text says, at most 40: of each sentence its subject with each other word."""
    found: set[int] = set()
    for one in said:
        found |= one.keys
    return found if len(found) <= _MOST_KEYS else set(sorted(found)[:_MOST_KEYS])


def changed(
    older: Sequence[Outline], newer: Sequence[Outline], *, older_author: str | None, newer_author: str | None
) -> Change | None:
    """Return what one text says to have changed that another had said; see ``claims.change``.

    Only sentences that have a key in common, and enough of their frames, are taken apart.
    """
    for after in newer:
        for before in older:
            if after.sentence != before.sentence and not after.keys.isdisjoint(before.keys) and _near(before, after):
                old, new = _taken_apart(before.sentence, older_author), _taken_apart(after.sentence, newer_author)
                if (found := change_between(old, new)) is not None:
                    return found
    return None


@lru_cache(maxsize=4_096)
def _taken_apart(sentence: str, author: str | None) -> tuple[Claim, ...]:
    return tuple(claims(sentence, author=author))


def _near(before: Outline, after: Outline) -> bool:
    if after.tells:
        return True
    common = len(before.frame & after.frame)
    sizes = (len(one.frame - (one.names - other.frame)) for one, other in ((before, after), (after, before)))
    return common >= _NEAR * min(sizes)


def _outline(sentence: str, me: str) -> Outline:
    subject: list[str] = []
    others: list[str] = []
    names: set[str] = set()
    verb = says = leads = False
    for place, written in enumerate(WORD.findall(sentence)):
        word, stemmed, cue = read_word(written)
        if word in FIRST:
            (others if verb else subject).append(me)
            continue
        verb = verb or word in VERBS
        if word in EMPTY or not word.isalpha() or word in _VALUES or word in NUMBERS:
            continue
        if place > 0 and written[0].isupper():
            names.add(word)
            (others if verb else subject).append(word)
        elif (meaning := SAME.get(word)) is not None:
            says = True
            leads = leads or meaning == "lead"
            others.append(meaning)
        elif not cue:
            (others if verb else subject).append(stemmed)
    low = sentence.lower()
    words = list(dict.fromkeys((*subject, *others)))
    if sentence.endswith("!") and not (verb or says or _DIGIT.search(sentence)):  # "Thanks, Ana!"
        words = []
    tells = leads or any(hint in low for hint in _HINTS)
    plain = [word for word in words if word not in names]
    found = set(map(_hash, plain)) if len(plain) <= 2 else set()
    near = [_hash(word) for word in words[: _SUBJECTS + _OTHERS]]
    about = near if tells or not subject else near[: min(len(set(subject)), _SUBJECTS)]
    found.update(_pair(one, other) for i, one in enumerate(about) for other in near[i + 1 :])
    return Outline(sentence, frozenset(words), frozenset(names), tells, frozenset(found))


@lru_cache(maxsize=16_384)
def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def _pair(one: int, other: int) -> int:
    """Return the key of the hashes of two words, whatever their order."""
    mixed = (one + other) & _MASK
    return mixed - (1 << 64) if mixed >> 63 else mixed


def sketches(texts: Sequence[str]) -> list[list[int]]:
    """Return the keys of each text's sketch, MinHash over its shingles of three words; none of a very short text.

    Texts that share a part s of their shingles have a key in common with probability 1 - (1 - s³)⁸: .97 at .7, .20
    at .3. All texts are worked out together. Broder, "On the resemblance and containment of documents" (1997).
    """
    import numpy as np

    hashed = [_hashes(text) for text in texts]
    held = [i for i, found in enumerate(hashed) if len(found)]
    out: list[list[int]] = [[] for _ in texts]
    if not held:
        return out
    every = np.concatenate([hashed[i] for i in held])
    starts = np.cumsum([0, *(len(hashed[i]) for i in held[:-1])])
    factors, adds = _permutations()
    bands = np.zeros((BANDS, len(held)), dtype=np.uint64)
    for band in range(BANDS):
        key = np.full(len(held), band + 1, dtype=np.uint64)
        for row in range(band * ROWS, (band + 1) * ROWS):
            least = np.minimum.reduceat((every * factors[row] + adds[row]) % _PRIME, starts)
            key = (key ^ least) * np.uint64(0x9E3779B97F4A7C15)
        bands[band] = key
    for i, keys in zip(held, bands.T.view(np.int64).tolist(), strict=True):
        out[i] = keys
    return out


def _hashes(text: str) -> NDArray[np.uint64]:
    """Return the hashes of a text's runs of three words, below 2**31; none where it has fewer than five words."""
    import numpy as np

    words = WORD.findall(text[:_LONGEST_TEXT])
    if len(words) < _SHORTEST:
        return np.zeros(0, dtype=np.uint64)
    one = np.array([_low(word) for word in words], dtype=np.uint64)
    runs: NDArray[np.uint64] = (one[:-2] * np.uint64(3) + one[1:-1] * np.uint64(5) + one[2:] * np.uint64(7)) % _PRIME
    return runs


@lru_cache(maxsize=16_384)
def _low(word: str) -> int:
    return _hash(word.casefold()) & 0xFFFF_FFFF


def resemblance(one: str, other: str) -> float:
    """Return the share of common shingles of two texts, in [0, 1]; 0 where one of them is very short."""
    first, second = set(_hashes(one).tolist()), set(_hashes(other).tolist())
    return len(first & second) / len(first | second) if first and second else 0.0


@lru_cache(maxsize=1)
def _permutations() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    import numpy as np

    drawn = np.random.default_rng(35).integers(1, (1 << 31) - 1, size=(2, BANDS * ROWS), dtype=np.uint64)
    return drawn[0], drawn[1]
