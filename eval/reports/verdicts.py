"""Verdicts for a terminal and for a summary: one line each, no half line twice, and beside each what the leg found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eval.statistics.verdict import numbers_of

__all__ = ["FOUND", "SUMMED", "WIDTH", "found", "found_rows", "lines", "summed"]

WIDTH = 100
"""The most columns that a line of verdicts takes."""
FOUND = ("found by", "class at its rank", "found", "gold", "in the first k", "gold")


def lines(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the verdicts of one group of questions: a heading a comparison, a line a metric, then what the leg found.

    A reason that holds for every metric stands there once.
    """
    out: list[str] = []
    for name in dict.fromkeys(c["name"] for c in comparisons):
        own = [c for c in comparisons if c["name"] == name]
        out += [name, *(f"  {line}" for line in _verdicts(own)), *(f"  {line}" for line in _notes(own))]
        if own[0].get("finds"):
            out += [f"  {line}" for line in found(own[0])]
    return out


def _verdicts(own: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences of one comparison, each once, and behind a refusal what the leg changed all the same."""
    sentences = list(dict.fromkeys(c["sentence"] for c in own))
    changed = [f"{c['metric']} {numbers_of(c['reranking'])}" for c in own if c.get("reranking")]
    seeds = (own[0].get("finds") or {}).get("seeds")
    return sentences + [f"{'by its votes and seeds' if seeds else 'by its votes'}: {line}" for line in changed]


def _notes(own: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(note for c in own for note in c["notes"]))


def found(comparison: Mapping[str, Any]) -> list[str]:
    """Return a table of what the studied leg found, as lines: by whom, with which class, and what became of it."""
    head = [name.replace("the first k", f"the first {comparison['finds']['k']}") for name in FOUND]
    rows = [head, *found_rows(comparison)]
    if len(rows) == 1:
        return ["found: nothing that is not in a list without it"]
    wide = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, wide, strict=True)))
        for row in rows
    ]
    return [*lines, how_often(comparison)]


def how_often(comparison: Mapping[str, Any]) -> str:
    """Return how often each class occurs among the finds of these data."""
    parts = comparison["finds"]["parts"]
    total, sure, may = (
        sum(part["found"] for part in parts if class_ is None or part["class"] == class_)
        for class_ in (None, "guaranteed", "possible")
    )
    rest = total - sure - may
    return f"of {total:,} finds arithmetic guarantees {sure:,} a place, may let in {may:,}, keeps out {rest:,}"


def found_rows(comparison: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each class and each group of legs that found memories of that class together."""
    parts = comparison["finds"]["parts"]
    total = sum(part["found"] for part in parts)
    return [
        [
            _by(part["by"], comparison["leg"]),
            part["class"],
            f"{part['found']:,} of {total:,}",
            str(part.get("gold", "")),
            str(part["entered"]),
            str(part.get("gold entered", "")),
        ]
        for part in parts
    ]


SUMMED = ("found (gold)", "guaranteed a place", "possible", "in the first k (gold)")


def summed(comparison: Mapping[str, Any]) -> list[str]:
    """Return the finds of one leg in a row: all, those of the two stronger classes, and those that entered."""
    parts = comparison["finds"]["parts"]
    of = {name: sum(part.get(name, 0) for part in parts) for name in ("found", "gold", "entered", "gold entered")}
    sure, may = (
        sum(part["found"] for part in parts if part["class"] == class_) for class_ in ("guaranteed", "possible")
    )
    return [f"{of['found']:,} ({of['gold']})", f"{sure:,}", f"{may:,}", f"{of['entered']:,} ({of['gold entered']})"]


def _by(legs: Sequence[str], leg: str) -> str:
    if leg not in legs:
        return f"{' and '.join(legs)}, by the seeds of {leg}"
    return f"{leg} alone" if len(legs) == 1 else " and ".join(legs)
