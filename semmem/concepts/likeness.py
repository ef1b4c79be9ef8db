"""Compute the keys by which texts that may contradict or repeat each other are found. Pure.

A key is a signed 64-bit hash. Two texts that say something about the same subject and attribute share a key, and so do
two near-duplicates (by a sketch), so that one look-up by key finds them in a namespace of any size. ``claims.change``
then decides whether they contradict each other, and ``resemblance`` whether they are near-duplicates; see adr/0035.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias

from semmem.concepts.claim_words import EMPTY, FIRST, NUMBERS, SAME, VERBS, WORD
from semmem.concepts.claims import Change, Claim, change_between, claims, read_word
from semmem.text.passages import sentences
from semmem.text.tokens import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ALIKE",
    "LIKENESS",
    "Outline",
    "changed",
    "claim_keys",
    "likeness_keys",
    "may_be_alike",
    "outlines",
    "resemblance",
    "sketches",
]

LIKENESS = 1
"""The version of what finds and decides likeness: one more where it changes, so that maintain compares anew."""
ALIKE = 0.7
"""Two texts that share at least this part of their shingles are near-duplicates; see adr/0035."""
BANDS, ROWS = 5, 2
"""The sketch of a text has this many keys, each made of this many smallest hashes."""
_SHINGLE = 3
_SHORTEST = 5
"""A text with fewer words has no sketch, because it is too short to be a near-duplicate."""
_MOST_SENTENCES, _LONGEST_TEXT, _LONGEST_SENTENCE = 12, 5_000, 400
_SUBJECTS, _MOST_WORDS, _MOST_KEYS = 2, 4, 16
_NEAR = 0.4
"""The share that two frames must have in common before the sentences are split; less than a change needs."""
_MASK, _HALF = (1 << 64) - 1, 1 << 63
_WRITTEN_VALUES = """
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december red green blue yellow black white grey gray orange purple pink brown
    silver gold
"""
_Kind: TypeAlias = Literal["", "me", "name", "same", "plain"]
_Words: TypeAlias = tuple[frozenset[str], frozenset[str], bool]
Outline: TypeAlias = tuple[str, str, tuple[int, ...]]
"""A cheap summary of a sentence: the sentence, the folded name of its author, which "I" in it means, and the keys of
its claims. It is a plain tuple, because a batch makes some 60,000 of them, and the garbage collector visits objects of
other types again and again.
"""
_DIGIT = re.compile(r"\d")
_VALUES = frozenset(_WRITTEN_VALUES.split())


def outlines(text: str, author: str | None = None) -> list[Outline]:
    """Return the outlines of the first dozen sentences of ``text``, without questions; "I" is ``author``."""
    return [(one, me, tuple(_keys(one, me))) for one, me in _statements(text, author)]


def claim_keys(text: str, author: str | None = None) -> list[int]:
    """Return up to 16 keys of the claims of a text, ascending: of each sentence its subject with the next words."""
    keys: set[int] = set()
    for one, me in _statements(text, author):
        keys |= _keys(one, me)
    return sorted(keys)[:_MOST_KEYS]


def changed(
    older: Sequence[Outline], newer: Sequence[Outline], *, older_author: str | None, newer_author: str | None
) -> Change | None:
    """Return the change that one text reports against another; see ``claims.change``.

    Only sentences that share a key and enough of their frames are split.
    """
    for after, after_me, after_keys in newer:
        keys = frozenset(after_keys)
        for before, before_me, before_keys in older:
            shared = after != before and not keys.isdisjoint(before_keys)
            if shared and _near(before, before_me, after, after_me):
                old, new = _taken_apart(before, older_author), _taken_apart(after, newer_author)
                if (change := change_between(old, new)) is not None:
                    return change
    return None


@lru_cache(maxsize=4_096)
def _taken_apart(sentence: str, author: str | None) -> tuple[Claim, ...]:
    return tuple(claims(sentence, author=author))


def _near(before: str, before_me: str, after: str, after_me: str) -> bool:
    """Return whether two sentences share enough of their frames, or the later one tells a change of anything."""
    new, new_names, tells = _words(after, after_me)
    if tells:
        return True
    old, old_names, _ = _words(before, before_me)
    return len(old & new) >= _NEAR * min(len(old - (old_names - new_names)), len(new - (new_names - old_names)))


@lru_cache(maxsize=1_024)
def _words(sentence: str, me: str) -> _Words:
    """Return the frame of a sentence, the names in it, and whether it tells what replaces what, or who leads.

    Names are words of the frame with a capital inside the sentence. They are less exact than in ``claims.Claim``,
    because they are made of many sentences and a claim only of few. Of a sentence that tells a change any two words may
    be subject and attribute.
    """
    subject, others, names, tells, _ = _statement_words(sentence, me, len(sentence))
    return frozenset((*subject, *others)), frozenset(names), tells


def _statements(text: str, author: str | None) -> Iterator[tuple[str, str]]:
    """Yield the first dozen statements of a text, each with the person that "I" means."""
    me = fold(author) if author else "i"
    for one in sentences(text[:_LONGEST_TEXT])[:_MOST_SENTENCES]:
        if len(one) <= _LONGEST_SENTENCE and not one.endswith("?"):
            yield one, me


def _statement_words(sentence: str, me: str, most: int) -> tuple[dict[str, int], dict[str, int], set[str], bool, bool]:
    """Return subject words, other words, names, whether it tells a change, and whether it was read to its end.

    Words come with their hashes.

    Reading may stop after ``most`` words, because the subject's words come first.
    """
    subject: dict[str, int] = {}
    others: dict[str, int] = {}
    names: set[str] = set()
    verb = says = leads = False
    whole = True
    words = WORD.findall(sentence)
    if words and words[0][0].isupper():
        words[0] = words[0].lower()  # then its capital does not mean a name
    for written in words:
        part, word, hashed, is_verb = _word(written)
        verb = verb or is_verb
        if part == "":
            continue
        if part == "same":
            says = True
            leads = leads or word == "lead"
            others[word] = hashed
        else:
            if part == "me":
                word, hashed = me, _hash(me)
            elif part == "name":
                names.add(word)
            (others if verb else subject)[word] = hashed
        if (len(subject) + len(others) if verb else len(subject)) >= most:
            whole = False
            break
    if whole and sentence.endswith("!") and not (verb or says or _DIGIT.search(sentence)):  # "Thanks, Ana!"
        return {}, {}, names, False, True
    return subject, others, names, leads or _hints(sentence.lower()), whole


def _hints(low: str) -> bool:
    """Return whether a sentence in lower case may say what replaces what."""
    return (
        "replace" in low
        or " from " in low
        or "rename" in low
        or "instead of" in low
        or "in place of" in low
        or "rather than" in low
    )


def _keys(sentence: str, me: str) -> set[int]:
    """Return the keys of a sentence: its subject with the next words, and single words where there are few."""
    subject, others, names, tells, whole = _statement_words(sentence, me, _MOST_WORDS)
    words = subject | others
    plain = [hashed for word, hashed in words.items() if word not in names] if whole else ()
    keys = set(plain) if len(plain) <= 2 else set()
    near = list(words.values())[:_MOST_WORDS]
    about = len(near) if tells or not subject else min(len(subject), _SUBJECTS)
    for place in range(about):
        one = near[place]
        for other in near[place + 1 :]:
            keys.add(((one + other) & _MASK) - _HALF)  # whatever their order
    return keys


@lru_cache(maxsize=32_768)
def _word(written: str) -> tuple[_Kind, str, int, bool]:
    """Return the kind of a word, its form in a frame with its hash, and whether it is a verb.

    The kind is "" for an empty word.
    """
    word, stemmed, cue = read_word(written)
    kind, form = _form(written, word, stemmed, cue)
    return kind, form, _hash.__wrapped__(form) if kind else 0, kind != "me" and word in VERBS


def _form(written: str, word: str, stemmed: str, cue: bool) -> tuple[_Kind, str]:
    if word in FIRST:
        return "me", word
    if word in EMPTY or not word.isalpha() or word in _VALUES or word in NUMBERS:
        return "", word
    if written[0].isupper():
        return "name", word
    if (meaning := SAME.get(word)) is not None:
        return "same", meaning
    return ("", word) if cue else ("plain", stemmed)


@lru_cache(maxsize=1_024)
def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def likeness_keys(texts: Sequence[tuple[str, str | None]]) -> list[tuple[int, ...]]:
    """Return the keys of texts, each with its author: those of its claims and those of its sketch."""
    bands = sketches([text for text, _ in texts])
    claims = [claim_keys(text, author) for text, author in texts]
    return [tuple({*one, *some}) for one, some in zip(claims, bands, strict=True)]


def sketches(texts: Sequence[str]) -> list[list[int]]:
    """Return the keys of each text's sketch, MinHash over its shingles of three words; none for a very short text.

    Texts that share a part s of their shingles have a key in common with probability 1 - (1 - s²)⁵: .97 at .7, .38 at
    .3. All texts are computed together. Broder, "On the resemblance and containment of documents" (1997); the
    multiply-shift hash is from Dietzfelbinger et al., "A reliable randomized algorithm for the closest-pair problem".
    """
    import numpy as np

    words = [WORD.findall(text[:_LONGEST_TEXT]) for text in texts]
    places = [i for i, text_words in enumerate(words) if len(text_words) >= _SHORTEST]
    out: list[list[int]] = [[] for _ in texts]
    if not places:
        return out
    every = _runs([word for i in places for word in words[i]])
    ends = np.cumsum([len(words[i]) for i in places])
    starts = ends - [len(words[i]) for i in places]
    bounds = np.stack((starts, ends - _SHINGLE + 1), axis=1).ravel()[:-1]  # of the last text to its end
    factors, half = _factors(), np.uint64(32)
    bands = np.zeros((BANDS, len(places)), dtype=np.uint64)
    for band in range(BANDS):
        key = np.full(len(places), band + 1, dtype=np.uint64)
        for row in range(band * ROWS, (band + 1) * ROWS):
            least = np.minimum.reduceat((every * factors[row]) >> half, bounds)[::2]
            key = (key ^ least) * np.uint64(0x9E3779B97F4A7C15)
        bands[band] = key
    for i, keys in zip(places, bands.T.view(np.int64).tolist(), strict=True):
        out[i] = keys
    return out


def _runs(words: Sequence[str]) -> NDArray[np.uint64]:
    """Return the hashes of all runs of three words."""
    import numpy as np

    one = np.fromiter(map(_low, words), np.uint64, len(words))
    runs: NDArray[np.uint64] = one[:-2] * np.uint64(3) + one[1:-1] * np.uint64(5) + one[2:] * np.uint64(7)
    return runs


@lru_cache(maxsize=512)
def _shingles(text: str) -> frozenset[int]:
    words = WORD.findall(text[:_LONGEST_TEXT])
    return frozenset(_runs(words).tolist() if len(words) >= _SHORTEST else ())


@lru_cache(maxsize=65_536)
def _low(word: str) -> int:
    return _hash.__wrapped__(word.casefold()) & _MASK


def resemblance(one: str, other: str) -> float:
    """Return the share of shingles that two texts have in common, in [0, 1]; 0 where one is very short."""
    first, second = _shingles(one), _shingles(other)
    return len(first & second) / len(first | second) if first and second else 0.0


def may_be_alike(one: str, other: str) -> bool:
    """Return whether ``other`` has so many words of ``one`` that the two may be near-duplicates; costs little.

    A word that ``other`` does not hold, not even within another word, takes three shingles with it, where it is a third
    one of ``one``. Once these are more than near-duplicates may lack, ``resemblance`` is below ``ALIKE``.
    """
    shingles, words = _thirds(one)
    low, missing = other.casefold(), 0
    for word in words:
        if word not in low:
            missing += _SHINGLE
            if missing > (1 - ALIKE) * shingles:
                return False
    return True


@lru_cache(maxsize=64)
def _thirds(text: str) -> tuple[int, Sequence[str]]:
    """Return the number of shingles of a text, and each third word but those in fewer shingles than three.

    No words are returned of a text that repeats a shingle.
    """
    shingles, words = _shingles(text), [word.casefold() for word in WORD.findall(text[:_LONGEST_TEXT])]
    count = len(words) - _SHINGLE + 1
    return count, words[_SHINGLE - 1 : count : _SHINGLE] if len(shingles) == count else ()


@lru_cache(maxsize=1)
def _factors() -> NDArray[np.uint64]:
    """Return an odd factor for each row of the sketch."""
    import numpy as np

    drawn: NDArray[np.uint64] = np.random.default_rng(35).integers(0, 1 << 63, size=BANDS * ROWS, dtype=np.uint64)
    return drawn * np.uint64(2) + np.uint64(1)
