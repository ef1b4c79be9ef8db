"""Find concepts by rule: subject aliases, known names, capitalised spans, bigrams, stems (adr/0009).

Pure functions of a text, its title and the names that the namespace knows, so that the batch size, the order and the
number of workers cannot change the result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

from semmem.concepts.names import (
    BARE_TITLE,
    MAX_NAME,
    capitalised_spans,
    gazetteer,
    initials_key,
    label,
    name_key,
    read,
    subject_aliases,
    subjects,
    title_initials,
)
from semmem.model.exchange import Corrections, Extraction, Kind
from semmem.model.protocols import Extractor
from semmem.model.question import Name, QuestionConcepts
from semmem.model.types import Memory
from semmem.text.passages import other_names, read_text
from semmem.text.tokens import Reading, Word, hashed, key, vocabulary

__all__ = [
    "BIGRAM_WEIGHT",
    "NAME_WEIGHT",
    "STEM_WEIGHT",
    "add_known_names",
    "candidates_and_subjects",
    "corrected",
    "corrected_question",
    "extract",
    "keys_of_other_names",
    "question",
    "subjects_of",
    "texts_of",
    "with_other_names",
]

NAME_WEIGHT, BIGRAM_WEIGHT, STEM_WEIGHT = 1.0, 0.6, 0.3

_MOST_QUESTION_WORDS = 128

_TERM, _STEM, _BIGRAM, _NAME = int(Kind.TERM), int(Kind.STEM), int(Kind.BIGRAM), int(Kind.NAME)

_MENTION = {_TERM: 0.0, _STEM: STEM_WEIGHT}
_NOTHING = Reading([], [], [], [])


class _Concepts:
    """The concepts of one memory while they are collected; names map a key to (label, mention, subject)."""

    __slots__ = ("bigrams", "counts", "length", "names", "words")

    def __init__(self) -> None:
        self.words: dict[int, Word] = {}
        self.counts: dict[int, int] = {}
        self.bigrams: dict[tuple[str, str], None] = {}
        self.names: dict[int, tuple[str, float, float]] = {}
        self.length = 0

    def add_words(self, read_words: Sequence[Word], times: int) -> None:
        """Add the terms, stems and bigrams of one text; each word counts ``times`` times.

        Bigrams are neighbours after stop words and numbers are removed. A number makes a bigram only with the stem it
        directly follows (port 8080, INC-211), because it says little without that stem.
        """
        counts, bigrams = self.counts, self.bigrams
        before = ""
        adjacent = False
        for word in read_words:
            _, root, at, kind, stop, _, _ = word
            if stop:
                adjacent = False
                continue
            if at in counts:
                counts[at] += times
            else:
                counts[at] = times
                self.words[at] = word
            self.length += times
            if kind == _TERM:
                if adjacent:
                    bigrams[before, root] = None
                adjacent = False
                continue
            if before:
                bigrams[before, root] = None
            before = root
            adjacent = True

    def add_name(self, at: int, shown: str, mention: float, subject: float) -> None:
        """Add a name; where it is there already, the larger weights and the first label are kept."""
        if (entry := self.names.get(at)) is not None:
            shown, mention, subject = entry[0], max(mention, entry[1]), max(subject, entry[2])
        self.names[at] = (shown, mention, subject)

    def extraction(self) -> Extraction:
        """Return the extraction: parallel lists, keys ascending."""
        words = self.words.values()
        pairs = [f"{left}\x1f{right}" for left, right in self.bigrams]
        named = self.names.values()
        few, more, most = len(words), len(pairs), len(named)
        keys = [*self.words, *[hashed(f"2\x1f{pair}") for pair in pairs], *self.names]  # key(Kind.BIGRAM, …), in line
        if not keys:
            return Extraction([], [], [], [], [], [], 0)
        kinds = [word.kind for word in words]
        weights = [_MENTION[kind] for kind in kinds]
        columns: list[list[Any]] = [
            keys,
            [*kinds, *[_BIGRAM] * more, *[_NAME] * most],
            [*[word.stem for word in words], *[pair.replace("\x1f", " ") for pair in pairs], *[n[0] for n in named]],
            [*weights, *[BIGRAM_WEIGHT] * more, *[n[1] for n in named]],
            [*[0.0] * (few + more), *[n[2] for n in named]],
            [*self.counts.values(), *[0] * (more + most)],
        ]
        if len(keys) > 1:
            ascending = itemgetter(*sorted(range(len(keys)), key=keys.__getitem__))
            columns = [list(ascending(column)) for column in columns]
        keys, kinds, labels, mentions, subjects, counts = columns
        return Extraction(keys, kinds, labels, mentions, subjects, counts, self.length)


def extract(
    text: str, title: str | None = None, *, language: str = "english", known: Container[int] | None = None
) -> Extraction:
    """Return the terms and concepts of one memory.

    ``known`` are the keys of the names that memories of the namespace are about (the gazetteer). Of the known names
    among ``alias_candidates``, the longest at each place counts as a mention.
    """
    out = _Concepts()
    body = _NOTHING
    body_spans: list[tuple[int, int]] = []
    for part, times in ((title, 2), (text, 1)):
        if not part:
            continue
        if part.islower():  # no word has a capital
            out.add_words(vocabulary(part, language), times)
            continue
        reading = read(part, language)
        out.add_words(reading.words, times)
        spans = list(capitalised_spans(reading))
        for first, past in spans:
            out.add_name(name_key(reading, first, past), label(part, reading, first, past), NAME_WEIGHT, 0.0)
        if known:
            for first, past, at in gazetteer(part, known, language):
                out.add_name(at, label(part, reading, first, past), NAME_WEIGHT, 0.0)
        if times == 1:
            body, body_spans = reading, spans
    if title or body_spans:
        for parts, shown, weight in subjects(text, title, language, body, body_spans):
            out.add_name(key(_NAME, parts), shown, 0.0, weight)
    for short in title_initials(title, language) if title else ():
        out.add_name(initials_key(short), short.upper(), 0.0, 0.0)
    return out.extraction()


def add_known_names(extraction: Extraction, hits: Iterable[tuple[int, str, bool]]) -> bool:
    """Add to an extraction made without known names those that ``extract`` would have found.

    ``hits`` are what the gazetteer yields, of the title and then of the text: the key, the label, and whether it stands
    in the title. Returns False, with the lists half changed, where only the text tells which label a name has.
    """
    keys, names, mentions = extraction.keys, extraction.names, extraction.mentions
    added: set[int] = set()
    for at, shown, in_title in hits:
        place = bisect_left(keys, at)
        if place == len(keys) or keys[place] != at:
            keys.insert(place, at)
            extraction.kinds.insert(place, _NAME)
            names.insert(place, shown)
            mentions.insert(place, NAME_WEIGHT)
            extraction.subjects.insert(place, 0.0)
            extraction.counts.insert(place, 0)
            added.add(at)
        elif not mentions[place]:  # the memory is about it: its label comes after those of the gazetteer
            names[place], mentions[place] = shown, NAME_WEIGHT
            added.add(at)
        elif in_title and at not in added and names[place] != shown:  # a span of the title came before, or of the text
            return False
    return True


class _Runs:
    """The runs of tokens of a question as names; what is asked of each token of a run is found once."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._text, self._reading = text, reading
        words = reading.words
        self._folded = [w.folded for w in words]
        self._stop = [w.stop for w in words]
        self._capital = [w.capital for w in words]
        self._content = [0, *accumulate(w.capital and not w.stop for w in words)]  # how many stand before each token
        self._misfits = [0, *accumulate(not (w.capital or w.stop or w.kind == _TERM) for w in words)]

    def name(self, first: int, past: int, span: bool) -> Name:
        """Return the run from ``first`` to before ``past`` as a name."""
        capitalised = self._content[first] < self._content[past] and self._misfits[first] == self._misfits[past]
        parts = tuple(self._folded[first:past])
        start, end = self._reading.starts[first], self._reading.ends[past - 1]
        shown = label(self._text, self._reading, first, past)
        edge_stops = self._stop[first] or self._stop[past - 1]
        return Name(key(_NAME, parts), parts, shown, first, past, start, end, capitalised, span, edge_stops)

    def may_name(self, first: int, past: int) -> bool:
        """Return whether a run is more than stop words, or two capitals or more inside the question ("by The Who")."""
        return not all(self._stop[first:past]) or (first > 0 and past - first > 1 and all(self._capital[first:past]))


def question(text: str, language: str = "english") -> QuestionConcepts:
    """Return the concepts of a question; names are looked for in its first 128 tokens."""
    reading = read(text, language)
    out = _Concepts()
    out.add_words(reading.words, 1)
    bounds = list(capitalised_spans(reading))
    runs = _Runs(text, reading)
    spans = tuple(runs.name(first, past, True) for first, past in bounds)
    for span in spans:
        out.add_name(span.key, span.label, NAME_WEIGHT, 0.0)
    count = min(len(reading.words), _MOST_QUESTION_WORDS)
    whole = set(bounds)
    names = [
        runs.name(first, past, (first, past) in whole)
        for first in range(count)
        for past in range(first + 1, min(first + MAX_NAME, count) + 1)
        if runs.may_name(first, past)
    ]
    names.sort(key=lambda n: (-n.size, n.first))
    all_found = out.extraction()
    columns = zip(all_found.keys, all_found.kinds, all_found.names, all_found.mentions, strict=True)
    concepts = [row for row in columns if row[3] > 0]
    return QuestionConcepts(
        tuple(names),
        spans,
        keys=tuple(row[0] for row in concepts),
        kinds=tuple(row[1] for row in concepts),
        labels=tuple(row[2] for row in concepts),
        weights=tuple(row[3] for row in concepts),
    )


def _rows(extraction: Extraction) -> Iterator[tuple[int, int, str, float, float, int]]:
    """Yield each concept of a text: its key, kind and name, the strength of mention and subject, and the count."""
    columns = (extraction.keys, extraction.kinds, extraction.names)
    return zip(*columns, extraction.mentions, extraction.subjects, extraction.counts, strict=True)


def corrected(extraction: Extraction, corrections: Corrections) -> Extraction:
    """Apply the corrections of a namespace to an extraction; where two names become one, the larger weights are kept.

    A relationship between two names that become one is left out.
    """
    into = corrections.into
    if not into or (into.keys().isdisjoint(extraction.keys) and not extraction.relationships):
        return extraction
    rows: dict[int, tuple[int, str, float, float, int]] = {}
    for at, kind, name, mention, subject, count in _rows(extraction):
        if kind == _NAME and at in into:
            at, name = into[at]
        if at in rows:
            _, _, most, about, counted = rows[at]
            mention, subject, count = max(mention, most), max(subject, about), count + counted
        rows[at] = (kind, name, mention, subject, count)
    ties = {(corrections.key(one), what, corrections.key(other)) for one, what, other in extraction.relationships}
    keys = sorted(rows)
    kinds, names, mentions, subjects, counts = (list(column) for column in zip(*(rows[at] for at in keys), strict=True))
    return Extraction(
        keys, kinds, names, mentions, subjects, counts, extraction.length, sorted(t for t in ties if t[0] != t[2])
    )


def corrected_question(concepts: QuestionConcepts, corrections: Corrections) -> QuestionConcepts:
    """Apply the corrections of a namespace to the concepts of a question."""
    into = corrections.into
    if not into:
        return concepts
    names = tuple(n._replace(key=into[n.key][0]) if n.key in into else n for n in concepts.names)
    spans = tuple(n._replace(key=into[n.key][0]) if n.key in into else n for n in concepts.spans)
    rows: dict[int, tuple[int, str, float]] = {}
    for at, kind, shown, weight in zip(concepts.keys, concepts.kinds, concepts.labels, concepts.weights, strict=True):
        if kind == _NAME and at in into:
            at, shown = into[at]
        rows[at] = (kind, shown, max(weight, rows[at][2] if at in rows else 0.0))
    keys = tuple(sorted(rows))
    return QuestionConcepts(
        names,
        spans,
        keys,
        kinds=tuple(rows[at][0] for at in keys),
        labels=tuple(rows[at][1] for at in keys),
        weights=tuple(rows[at][2] for at in keys),
    )


def keys_of_other_names(names: Sequence[str], language: str = "english") -> set[int]:
    """Return the keys of ``names``, each in the forms that a title has: whole, without "(...)", before its comma."""
    return {key(_NAME, parts) for name in names for parts, _, _ in subject_aliases("", name, language=language)}


def with_other_names(extraction: Extraction, names: Sequence[str], language: str = "english") -> Extraction:
    """Add ``names`` as further subjects of a memory, with 0.9 of the weight of its title.

    A whole name is mentioned too, like a title, so that the memory is connected with memories that only mention the
    name.
    """
    if not names:
        return extraction
    rows = {row[0]: row for row in _rows(extraction)}
    for name in names:
        for place, (parts, shown, weight) in enumerate(subject_aliases("", name, language=language)):
            at = key(_NAME, parts)
            _, _, label, mention, subject, count = rows.get(at, (at, _NAME, shown, 0.0, 0.0, 0))
            mention = max(mention, NAME_WEIGHT if place == 0 else 0.0)
            rows[at] = (at, _NAME, label, mention, max(subject, min(weight, BARE_TITLE)), count)
    if not rows:
        return extraction
    keys, kinds, labels, mentions, subjects, counts = (
        list(c) for c in zip(*(rows[at] for at in sorted(rows)), strict=True)
    )
    return Extraction(keys, kinds, labels, mentions, subjects, counts, extraction.length, extraction.relationships)


def subjects_of(extractor: Extractor, memory: Memory, language: str) -> set[int]:
    """Return the keys of the names that a memory is about: from its title and text, and its other names."""
    keys = extractor.subjects(read_text(memory), memory.title)
    return {*keys, *keys_of_other_names(other_names(memory.metadata), language)}


def candidates_and_subjects(
    extractor: Extractor, memories: Iterable[Memory], language: str, unread: list[Memory] | None = None
) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Return, by namespace, the names that memories may mention, and the names that they are about themselves.

    Memories that the extractor cannot read are added to ``unread`` and left out; where that is None, its error is
    raised.
    """
    names: dict[str, set[int]] = {}
    own: dict[str, set[int]] = {}
    for memory in memories:
        try:
            candidates = extractor.candidates(read_text(memory), memory.title)
            subjects = subjects_of(extractor, memory, language)
        except Exception:
            if unread is None:
                raise
            unread.append(memory)
            continue
        names.setdefault(memory.namespace, set()).update(candidates, subjects)
        own.setdefault(memory.namespace, set()).update(subjects)
    return names, own


def texts_of(memories: Iterable[Memory]) -> list[tuple[Any, ...]]:
    """Return, for each memory, everything that extraction reads of it."""
    return [(memory.namespace, read_text(memory), memory.title, other_names(memory.metadata)) for memory in memories]
