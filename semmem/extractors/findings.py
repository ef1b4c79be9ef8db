"""Add the names and relationships of a pipeline, a file or a language model to the extraction of the rules. Pure.

Terms, counts and length stay those of the rules, so the lexical leg does not depend on the extractor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from semmem.concepts.names import MAX_NAME, label, printed
from semmem.concepts.rules import NAME_WEIGHT, extract
from semmem.model.exchange import Extraction, Kind
from semmem.model.process.forks import Lock
from semmem.text.tokens import key, reading, tokens

__all__ = ["END_WEIGHT", "Findings", "Gathered", "Tally", "named", "ties", "with_found", "within"]

END_WEIGHT = 0.6
"""Weight a(m, c) of an end of a relationship that is not listed as a name; as a noun phrase it weighs like a bigram."""
_MARK = "\x1f"
_STEM, _NAME = int(Kind.STEM), int(Kind.NAME)


@dataclass(frozen=True, slots=True)
class Findings:
    """Names and relationships (subject, predicate, object) found in one memory, as people write them."""

    names: tuple[str, ...] = ()
    relationships: tuple[tuple[str, str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.relationships)


class Tally:
    """Counts by name that any thread may increase."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    def add(self, *names: str, times: int = 1) -> None:
        """Add ``times`` to the count of each name; 0 adds no entry."""
        if times:
            with self._lock:
                self._counts.update(dict.fromkeys(names, times))

    def counts(self) -> dict[str, int]:
        """Return a copy of the counts, by name."""
        with self._lock:
            return dict(sorted(self._counts.items()))


class Gathered:
    """An extraction that can be extended; of a key the largest weights and the first label are kept."""

    __slots__ = ("_candidates", "_length", "_rows")

    def __init__(self, start: Extraction) -> None:
        columns = (start.keys, start.kinds, start.names, start.mentions, start.subjects, start.counts)
        self._rows = {row[0]: row for row in zip(*columns, strict=True)}
        self._length = start.length
        self._candidates = start.candidates

    def add(self, concept_key: int, kind: int, label: str, mention: float, *, count: int = 0) -> None:
        """Add one concept with the weight ``mention``, and ``count`` occurrences of a stem."""
        _, _, shown, weight, subject, counted = self._rows.get(concept_key, (concept_key, kind, label, 0.0, 0.0, 0))
        self._rows[concept_key] = (concept_key, kind, shown, max(weight, mention), subject, counted + count)

    def unmention(self, kind: int) -> None:
        """Remove every mention of a ``kind``; subjects stay."""
        for concept_key, row in list(self._rows.items()):
            if row[1] == kind:
                if row[4]:
                    self._rows[concept_key] = (concept_key, kind, row[2], 0.0, row[4], row[5])
                else:
                    del self._rows[concept_key]

    def extraction(self, relationships: Collection[tuple[int, str, int]] = ()) -> Extraction:
        """Return the extraction, keys ascending; relationships sorted, each once."""
        rows = [self._rows[concept_key] for concept_key in sorted(self._rows)]
        if not rows:
            return Extraction((), (), (), (), (), (), self._length)
        keys, kinds, names, mentions, subjects, counts = zip(*rows, strict=True)
        columns = (keys, kinds, names, mentions, subjects, counts)
        return Extraction(*columns, self._length, tuple(sorted(set(relationships))), self._candidates)


def named(name: str, language: str = "english") -> tuple[tuple[str, ...], str]:
    """Return the folded tokens of a name without the stop words around it, and its label; ((), "") if it is no concept.

    Not a concept: only stop words (unless two of them have capitals, such as The Who), only numbers, more than 8
    tokens.
    """
    name_reading = reading(name, language)
    words = name_reading.words
    first, past = 0, len(words)
    while first < past and words[first].stop:
        first += 1
    while past > first and words[past - 1].stop and not words[past - 1].capital:
        past -= 1
    if first == past and len(words) > 1 and all(w.capital for w in words):
        first, past = 0, len(words)  # The Who
    elif all(w.kind != _STEM for w in words[first:past]):
        return (), ""
    if past - first > MAX_NAME:
        return (), ""
    return tuple(w.folded for w in words[first:past]), label(name, name_reading, first, past)


def with_found(
    text: str,
    title: str | None,
    findings: Findings,
    *,
    language: str = "english",
    spans: bool = True,
) -> Gathered:
    """Return what the rules find, with the names of ``findings`` at the weight of a name, the ends of relationships
    at ``END_WEIGHT``; with ``spans=False`` the rules' capitalised spans are left out, subjects and candidates stay.
    """
    out = Gathered(extract(text, title, language=language))
    if not spans:
        out.unmention(_NAME)
    ends = [end for left, _, right in findings.relationships for end in (left, right)]
    for names, weight in ((findings.names, NAME_WEIGHT), (ends, END_WEIGHT)):
        for name in names:
            parts, shown = named(name, language)
            if parts:
                out.add(key(_NAME, parts), _NAME, shown, weight)
    return out


def ties(findings: Findings, language: str = "english") -> list[tuple[int, str, int]]:
    """Return the relationships of ``findings`` as (key, predicate, key).

    Relationships with an end that is no concept, or between a concept and itself, are left out.
    """
    out = []
    for left, what, right in findings.relationships:
        one, other = named(left, language)[0], named(right, language)[0]
        if one and other and one != other:
            out.append((key(_NAME, one), printed(what), key(_NAME, other)))
    return out


def within(findings: Findings, text: str, title: str | None = None, language: str = "english") -> tuple[Findings, int]:
    """Return the part of ``findings`` that occurs in title or text, ignoring case and punctuation; count the rest."""
    whole = _folded(text, title, language)

    def stands(name: str) -> bool:
        return _folded(name, None, language) in whole

    names = tuple(n for n in findings.names if stands(n))
    tied = tuple(r for r in findings.relationships if stands(r[0]) and stands(r[2]))
    lost = len(findings.names) + len(findings.relationships) - len(names) - len(tied)
    return Findings(names, tied), lost


def _folded(text: str, title: str | None, language: str) -> str:
    """Return the folded tokens of title and text, each between separators, so that a name is a substring."""
    parts = [word.folded for part in (title, text) if part for word, _, _ in tokens(part, language)]
    return f"{_MARK}{_MARK.join(parts)}{_MARK}"
