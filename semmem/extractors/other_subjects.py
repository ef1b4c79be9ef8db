"""The other names of what a memory is about, as its metadata's "aliases" give them: subjects beside the title. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from semmem.extractors.names import BARE_TITLE, subject_aliases
from semmem.extractors.rules import NAME_WEIGHT
from semmem.tokens import key
from semmem.types import Extraction, Kind

__all__ = ["keys_of_other_names", "with_other_names"]

_NAME = int(Kind.NAME)


def keys_of_other_names(names: Sequence[str], language: str = "english") -> set[int]:
    """Return the keys of ``names``, each in the forms that a title has: whole, without "(...)", before its comma."""
    return {key(_NAME, parts) for name in names for parts, _, _ in subject_aliases("", name, language=language)}


def with_other_names(found: Extraction, names: Sequence[str], language: str = "english") -> Extraction:
    """Return ``found`` of a memory that is also about ``names``, a little less (.9) than about its title.

    A whole name is mentioned too, as a title is, so that the memory meets those that only mention the name.
    """
    if not names:
        return found
    columns = (found.keys, found.kinds, found.names, found.mentions, found.subjects, found.counts)
    rows = {row[0]: row for row in zip(*columns, strict=True)}
    for name in names:
        for place, (parts, shown, weight) in enumerate(subject_aliases("", name, language=language)):
            at = key(_NAME, parts)
            _, _, label, mention, subject, count = rows.get(at, (at, _NAME, shown, 0.0, 0.0, 0))
            mention = max(mention, NAME_WEIGHT if place == 0 else 0.0)
            rows[at] = (at, _NAME, label, mention, max(subject, min(weight, BARE_TITLE)), count)
    if not rows:
        return found
    keys, kinds, labels, mentions, subjects, counts = (
        list(c) for c in zip(*(rows[at] for at in sorted(rows)), strict=True)
    )
    return Extraction(keys, kinds, labels, mentions, subjects, counts, found.length, found.relationships)
