"""The extractor of a list whose texts workers read: the rules, to the last bit, with less to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from semmem.extractors import Rules
from semmem.model.exchange import Extraction
from semmem.write.bulk.columns import EXTRACT, TextColumns

__all__ = ["KEPT", "ReadRules"]


KEPT = 8_000
"""Texts of which it is remembered what workers have found, some 4 KB each: a name that comes later needs them again."""


class ReadRules(Rules):
    """The rules, with what workers have found in the last texts; any other text they read by themselves."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._places: dict[tuple[str, str | None], tuple[TextColumns, int]] = {}

    def learn(self, columns: Iterable[TextColumns]) -> None:
        """Take what workers have found, and forget the oldest of what is too much."""
        for one in columns:
            texts = {(row.read_text, row.title): (one, at) for at, row in enumerate(one.rows) if row.what & EXTRACT}
            for text in [text for text in texts if text in self._places]:
                del self._places[text]  # so that it is the newest again
            self._places |= texts
        for text in list(islice(self._places, max(0, len(self._places) - KEPT))):
            del self._places[text]

    def extract(self, text: str, title: str | None = None, known: Collection[int] = ()) -> Extraction:
        """Return the extraction of one memory; ``known`` are keys of the subjects known in the namespace."""
        columns, place = self._places.get((text, title), (None, 0))
        extraction = columns.extraction(place, known) if columns is not None else None
        return super().extract(text, title, known) if extraction is None else extraction

    def candidates(self, text: str, title: str | None = None) -> set[int]:
        """Return the name keys that may be in the text."""
        columns, place = self._places.get((text, title), (None, 0))
        return super().candidates(text, title) if columns is None else set(columns.candidates(place))

    def subjects(self, text: str, title: str | None = None) -> set[int]:
        """Return the name keys of the subjects of one memory."""
        columns, place = self._places.get((text, title), (None, 0))
        return super().subjects(text, title) if columns is None else set(columns.subjects(place))
