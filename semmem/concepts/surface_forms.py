"""Write concepts as people write them: a store keeps stems, and nobody writes "postpon kafka". Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from semmem.model.exchange import Kind
from semmem.text.tokens import Word, key, vocabulary

__all__ = ["written"]


def written(labels: Mapping[int, str], texts: Iterable[str | None], language: str = "english") -> dict[int, str]:
    """Return the labels of concepts, by key, with stems in the spelling that is most frequent in ``texts``.

    Of two equally frequent spellings the lower-case one is taken. Names are returned unchanged, and so are labels that
    occur in none of the texts.
    """
    stems = {
        concept_key: tuple(label.split(" ")) for concept_key, label in labels.items() if _is_stems(concept_key, label)
    }
    sought = frozenset(stems.values())
    if not sought:
        return dict(labels)
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for text in texts:
        before: Word | None = None
        adjacent = False
        for word in vocabulary(text or "", language):  # pairs as semmem.concepts.rules makes them
            if word.stop:
                adjacent = False
                continue
            number = word.kind == Kind.TERM
            if (word.stem,) in sought:
                counts.setdefault((word.stem,), Counter())[_shown(word)] += 1
            if before is not None and (adjacent or not number) and (before.stem, word.stem) in sought:
                pair = f"{_shown(before)} {_shown(word)}"
                counts.setdefault((before.stem, word.stem), Counter())[pair] += 1
            if number:
                adjacent = False
            else:
                before, adjacent = word, True
    best = {parts: min(forms.items(), key=_order)[0] for parts, forms in counts.items()}
    return {
        concept_key: best.get(stems[concept_key], label) if concept_key in stems else label
        for concept_key, label in labels.items()
    }


def _is_stems(concept_key: int, label: str) -> bool:
    """Return whether ``label`` consists of the stem, or the two stems, of ``concept_key``."""
    parts = label.split(" ")
    return concept_key == key(Kind.STEM if len(parts) == 1 else Kind.BIGRAM, parts)


def _shown(word: Word) -> str:
    return word.surface[:-2] if word.surface.lower().endswith(("'s", "\u2019s")) else word.surface


def _order(form: tuple[str, int]) -> Any:
    return -form[1], form[0].swapcase()
