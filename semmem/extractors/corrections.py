"""What people corrected by hand, applied to what was extracted from a memory or a question. Pure."""

from __future__ import annotations

from dataclasses import replace

from semmem.extractors.rules import QuestionConcepts
from semmem.records import Corrections
from semmem.types import Extraction, Kind

__all__ = ["corrected", "corrected_question"]

_NAME = int(Kind.NAME)


def corrected(found: Extraction, corrections: Corrections) -> Extraction:
    """Return ``found`` with every name as what it is taken for; the larger weights of two that become one.

    A relationship between two names that are taken for one is no relationship.
    """
    into = corrections.into
    if not into or (into.keys().isdisjoint(found.keys) and not found.relationships):
        return found
    rows: dict[int, tuple[int, str, float, float, int]] = {}
    columns = (found.keys, found.kinds, found.names, found.mentions, found.subjects, found.counts)
    for at, kind, name, mention, subject, count in zip(*columns, strict=True):
        if kind == _NAME and at in into:
            at, name = into[at]
        if at in rows:
            _, _, most, about, counted = rows[at]
            mention, subject, count = max(mention, most), max(subject, about), count + counted
        rows[at] = (kind, name, mention, subject, count)
    ties = {(corrections.key(one), what, corrections.key(other)) for one, what, other in found.relationships}
    keys = sorted(rows)
    kinds, names, mentions, subjects, counts = (list(column) for column in zip(*(rows[at] for at in keys), strict=True))
    return Extraction(
        keys, kinds, names, mentions, subjects, counts, found.length, sorted(t for t in ties if t[0] != t[2])
    )


def corrected_question(asked: QuestionConcepts, corrections: Corrections) -> QuestionConcepts:
    """Return what a question names, with every name as what it is taken for."""
    into = corrections.into
    if not into:
        return asked
    names = tuple(replace(n, key=into[n.key][0]) if n.key in into else n for n in asked.names)
    spans = tuple(replace(n, key=into[n.key][0]) if n.key in into else n for n in asked.spans)
    rows: dict[int, tuple[int, str, float]] = {}
    for at, kind, label, weight in zip(asked.keys, asked.kinds, asked.labels, asked.weights, strict=True):
        if kind == _NAME and at in into:
            at, label = into[at]
        rows[at] = (kind, label, max(weight, rows[at][2] if at in rows else 0.0))
    keys = tuple(sorted(rows))
    return QuestionConcepts(
        names,
        spans,
        keys,
        kinds=tuple(rows[at][0] for at in keys),
        labels=tuple(rows[at][1] for at in keys),
        weights=tuple(rows[at][2] for at in keys),
    )
