"""The extractor of a batch whose texts workers have read: the rules, to the last bit, with less to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from semmem.extractors import Rules
from semmem.model.exchange import Extraction
from semmem.write.bulk.columns import EXTRACT, TextColumns

__all__ = ["ReadRules"]


class ReadRules(Rules):
    """The rules, with what workers have found in some texts; any other text they read by themselves."""

    def __init__(self, language: str, columns: Iterable[TextColumns]) -> None:
        super().__init__(language)
        self._places = {
            (row.read_text, row.title): (one, place)
            for one in columns
            for place, row in enumerate(one.rows)
            if row.what & EXTRACT
        }

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
