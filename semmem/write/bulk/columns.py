"""What is found in many texts, as columns: a worker packs them, and the process that stores the texts unpacks them.

Nothing here depends on a store. What a text's extraction owes to the names that a namespace knows is left out, and
added from the runs of words that may be such a name (``TextColumns.extraction``).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Container, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from semmem.concepts.likeness import likeness_keys
from semmem.concepts.names import longest_known, name_runs, read, spelled
from semmem.concepts.rules import add_known_names, extract
from semmem.model.exchange import Extraction

__all__ = ["EXTRACT", "LIKENESS", "SCREEN", "TextColumns", "TextRow", "packed"]

EXTRACT, LIKENESS, SCREEN = 1, 2, 4
"""What is to be found in a text, as bits: its concepts, the keys of what is like it, the kinds of credentials in it."""


class TextRow(NamedTuple):
    """A text to be read: the extractor reads ``suffix`` behind it, "I" in it is the ``author``, ``what`` are bits."""

    text: str
    suffix: str
    title: str | None
    author: str | None
    what: int

    @property
    def read_text(self) -> str:
        """The text that the extractor reads."""
        return self.text + self.suffix


_COLUMNS = "qBidd" "qii" "ii" "q" "q"  # fmt: skip
"""The types of the columns: the concepts, the runs that may be a known name, tokens, subjects, keys of likeness."""
_CONCEPTS, _TITLE_RUNS, _TEXT_RUNS, _TITLE_TOKENS, _TEXT_TOKENS, _SUBJECTS, _LIKENESS, _LENGTH = range(8)
"""The numbers of each text: how many rows it has in the columns, and the number of its terms."""


def packed(rows: Sequence[TextRow], language: str) -> list[bytes]:
    """Return what is found in texts: the numbers of each, the columns, the names, the kinds of credentials as JSON."""
    columns: list[Any] = [array(code) for code in _COLUMNS]
    keys, kinds, counts, mentions, subjects, runs, firsts, pasts, starts, ends, about, alike = columns
    alike_of = iter(likeness_keys([(row.text, row.author) for row in rows if row.what & LIKENESS]))
    numbers = array("i")
    labels: list[str] = []
    kinds_by_place = _credentials_of(rows)
    for row in rows:
        sizes, names = [0] * 8, ""
        if row.what & EXTRACT:
            text = row.read_text
            extraction = extract(text, row.title, language=language)
            keys.extend(extraction.keys)
            kinds.extend(extraction.kinds)
            counts.extend(extraction.counts)
            mentions.extend(extraction.mentions)
            subjects.extend(extraction.subjects)
            names = "\n".join(extraction.names)
            sizes[_CONCEPTS], sizes[_LENGTH] = len(extraction.keys), extraction.length
            for place, part in enumerate((row.title, text)):
                if part and not part.islower():
                    run_firsts, run_pasts, run_keys = name_runs(part, language)
                    reading = read(part, language)
                    runs.extend(run_keys)
                    firsts.extend(run_firsts)
                    pasts.extend(run_pasts)
                    starts.extend(reading.starts)
                    ends.extend(reading.ends)
                    sizes[_TITLE_RUNS + place], sizes[_TITLE_TOKENS + place] = len(run_keys), len(reading.starts)
            of_text = [at for at, weight in zip(extraction.keys, extraction.subjects, strict=True) if weight > 0]
            about.extend(of_text)
            sizes[_SUBJECTS] = len(of_text)
        if row.what & LIKENESS:
            own = next(alike_of)
            alike.extend(own)
            sizes[_LIKENESS] = len(own)
        numbers.extend(sizes)
        labels.append(names)
    texts = "\0".join(labels).encode(), json.dumps(kinds_by_place).encode()
    return [numbers.tobytes(), *(column.tobytes() for column in columns), *texts]


def _credentials_of(rows: Sequence[TextRow]) -> list[tuple[int, Sequence[str]]]:
    from semmem.write.screening import kinds_of

    each = ((place, kinds_of([row.text])) for place, row in enumerate(rows) if row.what & SCREEN)
    return [(place, kinds) for place, kinds in each if kinds]


class TextColumns:
    """What is found in the texts of ``rows``, from the result of ``packed``; raises ValueError where it is not that."""

    def __init__(self, rows: Sequence[TextRow], parts: Sequence[bytes]) -> None:
        if len(parts) != len(_COLUMNS) + 3:
            raise ValueError("a result has another number of parts")
        numbers, *columns = (_values(code, raw) for code, raw in zip("i" + _COLUMNS, parts[:-2], strict=True))
        if len(numbers) != 8 * len(rows) or min(numbers, default=0) < 0:
            raise ValueError("the numbers are not those of these texts")
        self.rows = rows
        self._numbers = numbers
        (self._keys, self._kinds, self._counts, self._mentions, self._subjects, self._runs, self._firsts, self._pasts,
         self._starts, self._ends, self._about, self._alike) = columns  # fmt: skip
        self._names = parts[-2].decode().split("\0")
        of_rows = [numbers[at::8] for at in range(8)]
        runs = [one + other for one, other in zip(of_rows[_TITLE_RUNS], of_rows[_TEXT_RUNS], strict=True)]
        tokens = [one + other for one, other in zip(of_rows[_TITLE_TOKENS], of_rows[_TEXT_TOKENS], strict=True)]
        each = (of_rows[_CONCEPTS], runs, tokens, of_rows[_SUBJECTS], of_rows[_LIKENESS])
        self._starts_of = [
            list(accumulate(sizes, initial=0)) for sizes in each
        ]  # and no tuple a text, for the collector
        lengths = (5, 3, 2, 1, 1)
        expected = [sum(sizes) for sizes, times in zip(each, lengths, strict=True) for _ in range(times)]
        if [len(column) for column in columns] != expected or len(self._names) != len(rows):
            raise ValueError("the columns are not as long as the numbers say")
        if any(size and size != names.count("\n") + 1 for size, names in zip(each[0], self._names, strict=True)):
            raise ValueError("a concept has no name")
        self.credentials = {int(place): tuple(map(str, kinds)) for place, kinds in json.loads(parts[-1])}

    def candidates(self, place: int) -> list[int]:
        """Return the keys of the names that a text may mention; some may be there several times."""
        first, past = self._starts_of[1][place : place + 2]
        return self._runs[first:past].tolist()

    def subjects(self, place: int) -> list[int]:
        """Return the keys of the names that a text is about."""
        first, past = self._starts_of[3][place : place + 2]
        return self._about[first:past].tolist()

    def likeness(self, place: int) -> tuple[int, ...]:
        """Return the keys that similar memories share with a text."""
        first, past = self._starts_of[4][place : place + 2]
        return tuple(self._alike[first:past])

    def extraction(self, place: int, known: Container[int]) -> Extraction | None:
        """Return the extraction of a text where the names ``known`` are known; None where only the text tells it."""
        first, past = self._starts_of[0][place : place + 2]
        names = self._names[place].split("\n") if past > first else []
        keys, kinds, mentions, subjects, counts = (
            column[first:past].tolist()
            for column in (self._keys, self._kinds, self._mentions, self._subjects, self._counts)
        )
        length = self._numbers[8 * place + _LENGTH]
        extraction = Extraction(keys, kinds, names, mentions, subjects, counts, length)
        hits = [at for at, key in enumerate(self.candidates(place)) if key in known]
        sure = not hits or add_known_names(extraction, self._known_names(place, hits))
        return extraction if sure else None

    def _known_names(self, place: int, hits: Sequence[int]) -> Iterator[tuple[int, str, bool]]:
        """Yield key, label and whether it stands in the title, of those known names that are the longest."""
        row, numbers = self.rows[place], self._numbers[8 * place : 8 * place + 8]
        run, token = self._starts_of[1][place], self._starts_of[2][place]
        title_runs = numbers[_TITLE_RUNS]
        for part, in_title in ((row.title, True), (row.read_text, False)):
            own = [run + at for at in hits if (at < title_runs) == in_title]
            some = ((self._firsts[at], self._pasts[at], self._runs[at]) for at in own)
            for first, past, key in longest_known(some, _ALL) if own else ():
                shown = spelled((part or "")[self._starts[token + first] : self._ends[token + past - 1]])
                yield key, shown, in_title
            token += numbers[_TITLE_TOKENS] if in_title else 0


class _All:
    def __contains__(self, key: object) -> bool:
        return True


_ALL = _All()


def _values(code: str, raw: bytes) -> array[Any]:
    values = array(code)
    values.frombytes(raw)
    return values
