"""How to find the memories that may mention a name: the keys that all of them hold. Pure."""

from __future__ import annotations

from semmem.stop_words import CONTRACTIONS, STOP_WORDS
from semmem.tokens import key, tokens
from semmem.types import Kind

__all__ = ["accented", "name_of", "required", "spelling"]

_STEM, _BIGRAM, _NAME = int(Kind.STEM), int(Kind.BIGRAM), int(Kind.NAME)


def name_of(written: str, language: str = "english") -> int:
    """Return the key of a name as somebody writes it."""
    return key(_NAME, [word.folded for word, _, _ in tokens(written, language)])


def required(written: str, at: int, language: str = "english", *, bigrams: bool) -> frozenset[int]:
    """Return keys that every memory whose text spells the name ``at`` holds; empty where no key is sure.

    ``bigrams``: the extractor makes one of every two words that stand side by side, which narrows the search most.
    Words that are stop words in some spelling (US, us) are left out: whether they have a key depends on the text.
    """
    words = [word for word, _, _ in tokens(written, language)]
    if key(_NAME, [w.folded for w in words]) != at:
        return frozenset()  # a label that was cut
    loose = {*STOP_WORDS.get(language, ()), *CONTRACTIONS.get(language, ())}
    sure = [not w.stop and w.folded not in loose for w in words]
    found = set()
    covered = set()
    for i in range(len(words) - 1):
        if bigrams and sure[i] and sure[i + 1] and words[i].kind == _STEM:
            found.add(key(_BIGRAM, (words[i].stem, words[i + 1].stem)))
            covered |= {i, i + 1}
    return frozenset(found.union(words[i].key for i in range(len(words)) if sure[i] and i not in covered))


def spelling(written: str, at: int, language: str = "english") -> str:
    """Return a folded word that every text in plain ASCII that spells the name ``at`` has; empty: any text may."""
    folded = [word.folded for word, _, _ in tokens(written, language)]
    if key(_NAME, folded) != at:
        return ""
    return max((f for f in folded if f.isascii() and f.isalnum()), key=len, default="")


def accented(language: str) -> bool:
    """Return whether the stem of a word depends on its accents, so that two spellings of a name may share no key."""
    return language not in ("english", "porter")
