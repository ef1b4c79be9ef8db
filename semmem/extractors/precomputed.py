"""Read names and relationships from a file, so that the graph of a language model can be measured without one.

The file has the form of HippoRAG's open information extraction (Gutiérrez et al. 2024): ``{"docs": [{"title", "text",
"passage", "extracted_entities", "extracted_triples"}]}``, where ``passage`` (title, new line, text) can replace both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from semmem.concepts.rules import extract
from semmem.extractors import Rules
from semmem.extractors.findings import Findings, Tally, ties, with_found, within
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction
from semmem.text.passages import content_key, sentences

__all__ = ["Precomputed"]


class Precomputed:
    """Looks a memory up by the hash of its normalised title and text, then by text, then by its first sentence.

    The first sentence finds the parts of a split text; a part gets the findings that occur in it. A memory that is not
    in the file gets the extraction of the rules. ``counts`` holds matched, part and fallback, and of the file passages
    and malformed (passages, names or relationships of an invalid form, left out).
    """

    name = "precomputed"

    def __init__(self, path: str | Path, language: str = "english", *, spans: bool = True) -> None:
        self.language = language
        self.version = _version(Path(path).expanduser())
        self._rules = Rules(language)
        self._spans = spans
        self._tally = Tally()
        self._whole: dict[tuple[bytes, bytes], Findings] = {}
        self._text: dict[bytes, Findings | None] = {}
        self._sentence: dict[tuple[bytes, bytes], Findings | None] = {}
        for title, text, findings in self._passages(_rows(path)):
            self._learn(title, text, findings)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return counts of the memories so far, by how they were matched, and of the file's passages."""
        return self._tally.counts()

    def extract(self, text: str, title: str | None = None) -> Extraction:
        """Return the extraction of one memory."""
        findings, outcome = self._find(text, title)
        self._tally.add(outcome)
        if findings is None:
            return extract(text, title, language=self.language)
        joined = with_found(text, title, findings, language=self.language, spans=self._spans)
        return joined.extraction(ties(findings, self.language))

    def _find(self, text: str, title: str | None) -> tuple[Findings | None, str]:
        named, body = content_key(title or ""), content_key(text)
        findings = self._whole.get((named, body))
        if findings is None:
            findings = self._text.get(body)  # without a title here, or with another one
        if findings is not None:
            return findings, "matched"
        for sentence in sentences(text)[:1]:
            whole = self._sentence.get((named, content_key(sentence)))
            if whole is not None:
                return within(whole, text, title, self.language)[0], "part"
        return None, "fallback"

    def _learn(self, title: str, text: str, findings: Findings) -> None:
        named, body = content_key(title), content_key(text)
        self._whole.setdefault((named, body), findings)
        # A text or sentence that occurs in two passages does not identify one.
        self._text[body] = findings if body not in self._text else None
        for key in {(named, content_key(sentence)) for sentence in sentences(text)}:
            self._sentence[key] = findings if key not in self._sentence else None

    def _passages(self, rows: Sequence[Any]) -> Iterator[tuple[str, str, Findings]]:
        for row in rows:
            passage = _passage(row) if isinstance(row, Mapping) else None
            if passage is None:
                self._tally.add("malformed")
                continue
            findings, lost = _findings(row)
            self._tally.add("passages")
            self._tally.add("malformed", times=lost)
            yield *passage, findings


def _version(path: Path) -> str:
    """Return a version that tells this file from a later one of the same name."""
    try:
        about = path.stat()
    except OSError:
        return ""  # reading the file will raise the error
    return f"{path.name} {about.st_size} {about.st_mtime_ns}"


def _rows(path: str | Path) -> Sequence[Any]:
    where = Path(path).expanduser()
    form = 'it needs {"docs": [{"passage": …, "extracted_entities": […], "extracted_triples": [[…, …, …]]}]}'
    try:
        whole = json.loads(where.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror
        raise InvalidInput(f"The file of relationships {path} cannot be read ({why}); check its path.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"The file of relationships {path} is not JSON in UTF-8; {form}.") from None
    rows = whole.get("docs") if isinstance(whole, Mapping) else whole
    if not isinstance(rows, list):
        raise InvalidInput(f"The file of relationships {path} has no list of passages; {form}.")
    return rows


def _passage(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return title and text of one passage, None where there is no text."""
    text, title = row.get("text"), row.get("title")
    if isinstance(text, str):
        return (title if isinstance(title, str) else ""), text
    passage = row.get("passage")
    if not isinstance(passage, str):
        return None
    first, cut, rest = passage.partition("\n")
    return (first, rest) if cut else ("", first)


def _findings(row: Mapping[str, Any]) -> tuple[Findings, int]:
    """Return the findings of one passage, and the number of its malformed names and relationships."""
    listed, tied = (v if isinstance(v := row.get(f"extracted_{k}"), list) else [] for k in ("entities", "triples"))
    names = tuple(n for n in listed if isinstance(n, str))
    relationships = tuple(
        (t[0], t[1], t[2]) for t in tied if isinstance(t, list) and len(t) == 3 and all(isinstance(x, str) for x in t)
    )
    return Findings(names, relationships), len(listed) + len(tied) - len(names) - len(relationships)
