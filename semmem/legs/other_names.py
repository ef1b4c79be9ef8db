"""Subjects that a question names in another way than they are titled: Maurice of Nassau, a surname, a plural.

A link is proposed for a capitalised span of the question that no memory is about as it stands. Where a form is
ambiguous nothing is linked, and never what a person has set apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from semmem.concepts.aliases import overlap, surnames, variants
from semmem.concepts.names import OPENING, initials_key
from semmem.concepts.rules import Name, QuestionConcepts
from semmem.proximity import idf
from semmem.records import Corrections, Postings
from semmem.stop_words import STOP_WORDS
from semmem.tokens import key, stem, tokens
from semmem.types import Kind

__all__ = ["LIKE", "by_initials", "likely_subjects", "unlinked", "variant_keys"]

LIKE = 0.7
"""Overlap of two names (see ``aliases.overlap``), with two tokens shared, from which on one is linked to the other."""
_MOST_SPANS = 4
_MOST_MEMORIES = 100
_NAME, _STEM = int(Kind.NAME), int(Kind.STEM)
_OPENING = round(100 * OPENING)


def variant_keys(asked: QuestionConcepts) -> dict[int, Name]:
    """Return the keys of other forms of the question's capitalised spans, each with its span."""
    found: dict[int, Name] = {}
    for span in asked.spans[: 2 * _MOST_SPANS]:
        for form in sorted(variants(span.tokens)):
            found.setdefault(key(_NAME, form), span)
    return found


def by_initials(asked: QuestionConcepts) -> dict[int, Name]:
    """Return the keys of the initials that the question may write in capitals, each with its span."""
    return {
        initials_key(span.tokens[0]): span
        for span in asked.spans[: 2 * _MOST_SPANS]
        if len(span.tokens) == 1 and span.label.isupper()
    }


def unlinked(asked: QuestionConcepts, linked: set[int], corrections: Corrections) -> list[Name]:
    """Return the capitalised spans where nothing of the question is linked yet."""
    taken = {at for name in asked.names if name.key in linked for at in range(name.first, name.past)}
    return [
        span
        for span in asked.spans
        if span.key not in corrections.apart and taken.isdisjoint(range(span.first, span.past))
    ][:_MOST_SPANS]


def likely_subjects(
    store: Any,
    namespace: str,
    asked: QuestionConcepts,
    linked: set[int],
    shared: Postings,
    language: str,
    corrections: Corrections,
) -> list[tuple[Name, int, float]]:
    """Return (span, key of a subject, how alike in [0, 1]) for spans that nothing is linked to; two round trips.

    Looks at the memories that share the rare words of a span: two of them, or the one of a surname.
    """
    spans = unlinked(asked, linked, corrections)
    entries = dict(shared.items())
    near: dict[Name, set[int]] = {}
    rarity: dict[str, float] = {}
    for span in spans:
        content = [t for t in span.tokens if t not in STOP_WORDS.get(language, ())]
        counted: dict[int, int] = {}
        for token in content:
            held = entries.get(key(_STEM, (stem(token, language),)))
            if held is None:
                continue
            rarity[token] = float(idf(shared.memories, len(held)))
            for ord in held["ord"].tolist():
                counted[ord] = counted.get(ord, 0) + 1
        needed = 1 if len(content) == 1 else 2
        near[span] = {ord for ord, count in counted.items() if count >= needed}
    ords = set().union(*near.values()) if near else set()
    if not 0 < len(ords) <= _MOST_MEMORIES:
        return []
    about = _about(store, namespace, ords, language, corrections)
    found = []
    for span in spans:
        names = {at: name for ord in near[span] for at, name in about.get(ord, {}).items()}
        if len(span.tokens) == 1:
            whole = surnames(names.values()).get(span.tokens)
            found += [(span, at, 1.0) for at, name in names.items() if whole and name[-len(whole) :] == whole]
            continue
        for at, name in names.items():
            alike = overlap(span.tokens, name, rarity)
            if alike >= LIKE and len(set(span.tokens) & set(name) - STOP_WORDS.get(language, frozenset())) >= 2:
                found.append((span, at, alike))
    return sorted(found, key=lambda f: (f[0].first, -f[2], f[1]))


def _about(
    store: Any, namespace: str, ords: set[int], language: str, corrections: Corrections
) -> Mapping[int, dict[int, tuple[str, ...]]]:
    """Return, for each memory, the names that its title gives as folded tokens; only those written with capitals.

    The name that a text opens with is left out: by its surname alone it led astray (untitled notes, R@5 -.01).
    """
    forwards = store.forwards([namespace], sorted(ords))
    subject = forwards.entries["subject"]
    which = (subject > 0) & (subject != _OPENING) & (forwards.entries["kind"] == _NAME)
    owners = np.repeat(forwards.ords, forwards.sizes)[which].tolist()
    keys = forwards.entries["key"][which].tolist()
    labels = store.names([namespace], set(keys) - corrections.apart)
    out: dict[int, dict[int, tuple[str, ...]]] = {}
    for ord, at in zip(owners, keys, strict=True):
        words = [word for word, _, _ in tokens(labels.get(at, ""), language)]
        if words and all(word.capital or word.stop or not word.folded.isalpha() for word in words):
            out.setdefault(ord, {})[at] = tuple(word.folded for word in words)
    return out
