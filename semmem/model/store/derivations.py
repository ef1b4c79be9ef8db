"""What made the parts, concepts and likeness keys of memories, each with a version, so that maintain finds stale ones.

A store keeps marks, a few a namespace: (row id, derivation version) says that the memories from this row id on, up to
the next mark, have this derivation version. Row ids only grow and each write takes new ones, so no memory needs a
column for it. Pure; adr/0043.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from semmem.model.exchange import DerivationVersion

__all__ = [
    "MOST_MARKS",
    "DerivationVersion",
    "Mark",
    "Span",
    "derivation_of",
    "made_again",
    "marked",
    "spans",
    "stale",
]

MOST_MARKS = 32
"""The most marks of a namespace; where more would come, all before the last one count as made by nobody known."""
Mark: TypeAlias = tuple[int, str]
Marks: TypeAlias = Sequence[Mark]


class Span(NamedTuple):
    """The memories with row ids above ``after`` up to ``upto``, and their derivation version."""

    after: int
    upto: int
    derivation: DerivationVersion


def derivation_of(text: str) -> DerivationVersion:
    """Return the derivation version whose ``text`` this is; of any other text one that is not known."""
    splitter, _, rest = text.partition(" ")
    likeness, _, rest = rest.partition(" ")
    version, _, extractor = rest.partition(" ")
    if not (splitter.isdecimal() and likeness.isdecimal()):
        return DerivationVersion()
    return DerivationVersion(int(splitter), int(likeness), extractor, "" if version == "-" else version)


def stale(derivation: DerivationVersion, now: DerivationVersion) -> frozenset[str]:
    """Return which of "splitter", "likeness" and "extractor" made something in an older version than ``now``.

    Another extractor is not an older one: that is a choice, and ``rebuild`` with ``extract`` follows it. Versions are
    ordered where they are numbers with dots.
    """
    if not derivation.extractor:
        return frozenset(("splitter", "likeness", "extractor"))
    before, present = _numbers(derivation.version), _numbers(now.version)
    older = derivation.extractor == now.extractor and before is not None and present is not None and before < present
    comparisons = {
        "splitter": derivation.splitter < now.splitter,
        "likeness": derivation.likeness < now.likeness,
        "extractor": older,
    }
    return frozenset(name for name, is_so in comparisons.items() if is_so)


def made_again(derivation: DerivationVersion, now: DerivationVersion) -> DerivationVersion:
    """Return the derivation version of memories of ``derivation`` whose stale rows ``now`` has derived again."""
    extractor = now if "extractor" in stale(derivation, now) else derivation
    newest = max(derivation.splitter, now.splitter), max(derivation.likeness, now.likeness)
    return DerivationVersion(*newest, extractor.extractor, extractor.version)


def spans(marks: Marks, last: int) -> list[Span]:
    """Return the spans of row ids up to ``last``, ascending; what is before the first mark counts to it."""
    starts = [0, *(start - 1 for start, _ in marks[1:])]
    ends = [*starts[1:], last]
    all_spans = [
        Span(after, min(upto, last), derivation_of(by))
        for after, upto, (_, by) in zip(starts, ends, marks, strict=False)
    ]
    return [span for span in all_spans if span.after < span.upto]


def marked(marks: Marks, span: Span, last: int) -> list[Mark]:
    """Return the marks once the memories of ``span`` are derived; ``last`` is the last row id of the namespace."""
    after, upto, by = span.after, span.upto, span.derivation.text
    edges: list[Mark] = [(1, marks[0][1] if marks else by), *marks[1:]]
    behind = next((derivation for start, derivation in reversed(edges) if start <= upto + 1), by)
    new_marks = [mark for mark in edges if mark[0] <= after]
    new_marks.append((after + 1, by))
    if upto < last or any(start > upto + 1 for start, _ in edges):
        new_marks.append((upto + 1, behind))
    new_marks += [mark for mark in edges if mark[0] > upto + 1]
    distinct = [mark for index, mark in enumerate(new_marks) if not index or mark[1] != new_marks[index - 1][1]]
    return distinct if len(distinct) <= MOST_MARKS else [(1, ""), distinct[-1]]


def _numbers(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version such as 2 or 1.10; None for any other."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdecimal() for part in parts) else None
