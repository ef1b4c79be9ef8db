"""Find concepts by rule: subject aliases, capitalised spans, bigrams, stems, candidates for names (adr/0009, adr/0058).

Pure functions of a text and its title: no other memory, no order and no number of workers can change the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

from semmem.concepts.names import (
    BARE_TITLE,
    MAX_NAME,
    candidates,
    capitalised_spans,
    initials_key,
    label,
    longest,
    name_key,
    past_of,
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
    "corrected_question",
    "extract",
    "extraction_of",
    "question",
    "with_other_names",
]

NAME_WEIGHT, BIGRAM_WEIGHT, STEM_WEIGHT = 1.0, 0.6, 0.3

_MOST_QUESTION_WORDS = 128

_TERM, _STEM, _BIGRAM, _NAME = int(Kind.TERM), int(Kind.STEM), int(Kind.BIGRAM), int(Kind.NAME)

_NAME_OPENING = f"{_NAME}\x1f"

_MENTION = {_TERM: 0.0, _STEM: STEM_WEIGHT}
_NOTHING = Reading([], (), (), ())


class _Concepts:
    """The concepts of one memory while they are collected; names map a key to (label, mention, subject)."""

    __slots__ = ("bigrams", "candidates", "counts", "length", "names", "words")

    def __init__(self) -> None:
        self.words: dict[int, Word] = {}
        self.counts: dict[int, int] = {}
        self.bigrams: dict[tuple[str, str], None] = {}
        self.names: dict[int, tuple[str, float, float]] = {}
        self.candidates: list[tuple[int, int]] = []
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
            _, root, concept_key, kind, stop, _, _ = word
            if stop:
                adjacent = False
                continue
            if concept_key in counts:
                counts[concept_key] += times
            else:
                counts[concept_key] = times
                self.words[concept_key] = word
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

    def add_name(self, concept_key: int, shown: str, mention: float, subject: float) -> None:
        """Add a name; where it is there already, the larger weights and the first label are kept."""
        if (entry := self.names.get(concept_key)) is not None:
            shown, mention, subject = entry[0], max(mention, entry[1]), max(subject, entry[2])
        self.names[concept_key] = (shown, mention, subject)

    def extraction(self) -> Extraction:
        """Return the extraction, keys ascending."""
        words = self.words.values()
        pairs = [f"{left}\x1f{right}" for left, right in self.bigrams]
        named = self.names.values()
        few, more, most = len(words), len(pairs), len(named)
        keys = [*self.words, *[hashed(f"2\x1f{pair}") for pair in pairs], *self.names]  # key(Kind.BIGRAM, …), in line
        if not keys:
            return Extraction((), (), (), (), (), (), 0)  # a text of punctuation has no candidates either
        kinds = [word.kind for word in words]
        weights = [_MENTION[kind] for kind in kinds]
        columns: list[Sequence[Any]] = [
            keys,
            [*kinds, *[_BIGRAM] * more, *[_NAME] * most],
            [*[word.stem for word in words], *[pair.replace("\x1f", " ") for pair in pairs], *[n[0] for n in named]],
            [*weights, *[BIGRAM_WEIGHT] * more, *[n[1] for n in named]],
            [*[0.0] * (few + more), *[n[2] for n in named]],
            [*self.counts.values(), *[0] * (more + most)],
        ]
        ascending = itemgetter(*sorted(range(len(keys)), key=keys.__getitem__)) if len(keys) > 1 else tuple
        ordered, kinds, labels, mentions, subjects, counts = map(ascending, columns)
        candidates = tuple(self.candidates)
        return Extraction(ordered, kinds, labels, mentions, subjects, counts, self.length, candidates=candidates)


def extract(text: str, title: str | None = None, *, language: str = "english") -> Extraction:
    """Return the terms and concepts of one memory, and the runs of its title and text that other memories may know.

    The names that the memory itself is about count as mentions wherever they are the longest of these.
    """
    out = _Concepts()
    body = _NOTHING
    body_spans: list[tuple[int, int]] = []
    parts: list[tuple[str, Reading, int]] = []
    before = 0
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
        parts.append((part, reading, before))
        out.candidates += candidates(part, language, before)
        before += len(reading.words)
        if times == 1:
            body, body_spans = reading, spans
    about = subjects(text, title, language, body, body_spans) if title or body_spans else []
    own = {key(_NAME, named): (named, shown, weight) for named, shown, weight in about}
    places = dict.fromkeys(longest(out.candidates, own)) if own else {}
    for part, reading, start in parts if places else ():
        for concept_key, place in places:
            first, past = place // MAX_NAME - start, past_of(place) - start
            if 0 <= first < len(reading.words):
                out.add_name(concept_key, label(part, reading, first, past), NAME_WEIGHT, 0.0)
    for concept_key, (_, shown, weight) in own.items():
        out.add_name(concept_key, shown, 0.0, weight)
    for short in title_initials(title, language) if title else ():
        out.add_name(initials_key(short), short.upper(), 0.0, 0.0)
    return out.extraction()


def extraction_of(extractor: Extractor, memory: Memory, language: str) -> Extraction:
    """Return all that an extractor finds in a memory, which is a function of the memory alone."""
    extraction = extractor.extract(read_text(memory), memory.title)
    return with_other_names(extraction, other_names(memory.metadata), language)


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
        concept_key = hashed(_NAME_OPENING + "\x1f".join(parts))  # key(Kind.NAME, …), in line for speed
        return Name(concept_key, parts, shown, first, past, start, end, capitalised, span, edge_stops)

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
        for size in range(min(MAX_NAME, count), 0, -1)  # longest first, then from left to right
        for first, past in zip(range(count - size + 1), range(size, count + 1), strict=True)
        if runs.may_name(first, past)
    ]
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


def corrected_question(concepts: QuestionConcepts, corrections: Corrections) -> QuestionConcepts:
    """Apply the corrections of a namespace to the concepts of a question."""
    into = corrections.into
    if not into:
        return concepts
    names = tuple(n._replace(key=into[n.key][0]) if n.key in into else n for n in concepts.names)
    spans = tuple(n._replace(key=into[n.key][0]) if n.key in into else n for n in concepts.spans)
    rows: dict[int, tuple[int, str, float]] = {}
    for concept_key, kind, shown, weight in zip(
        concepts.keys, concepts.kinds, concepts.labels, concepts.weights, strict=True
    ):
        if kind == _NAME and concept_key in into:
            concept_key, shown = into[concept_key]
        rows[concept_key] = (kind, shown, max(weight, rows[concept_key][2] if concept_key in rows else 0.0))
    keys = tuple(sorted(rows))
    return QuestionConcepts(
        names,
        spans,
        keys,
        kinds=tuple(rows[concept_key][0] for concept_key in keys),
        labels=tuple(rows[concept_key][1] for concept_key in keys),
        weights=tuple(rows[concept_key][2] for concept_key in keys),
    )


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
            concept_key = key(_NAME, parts)
            _, _, label, mention, subject, count = rows.get(concept_key, (concept_key, _NAME, shown, 0.0, 0.0, 0))
            mention = max(mention, NAME_WEIGHT if place == 0 else 0.0)
            rows[concept_key] = (concept_key, _NAME, label, mention, max(subject, min(weight, BARE_TITLE)), count)
    if not rows:
        return extraction
    ordered = [rows[concept_key] for concept_key in sorted(rows)]
    keys, kinds, labels, mentions, subjects, counts = zip(*ordered, strict=True)
    columns = (keys, kinds, labels, mentions, subjects, counts)
    return Extraction(*columns, extraction.length, extraction.relationships, extraction.candidates)
