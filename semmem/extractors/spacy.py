"""Find concepts with a trained spaCy pipeline chosen by the user: entities, noun chunks, lemmas.

Entities are names. Neighbouring words in a noun chunk are bigrams, instead of all neighbours in the text. A lemma whose
stem differs from its word's (ran, run) is a stem of the memory too. The rules do what the pipeline cannot.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from semmem.concepts.rules import BIGRAM_WEIGHT, STEM_WEIGHT, extract
from semmem.extractors import Rules
from semmem.extractors.findings import Findings, Gathered, Tally, with_found
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.exchange import Extraction, Kind
from semmem.model.process.forks import Lock
from semmem.text.tokens import Word, key, tokens

__all__ = ["Trained"]

_TERM, _STEM, _BIGRAM = int(Kind.TERM), int(Kind.STEM), int(Kind.BIGRAM)
_QUANTITY_LIST = "CARDINAL DATE MONEY ORDINAL PERCENT QUANTITY TIME"
_QUANTITIES = frozenset(_QUANTITY_LIST.split())  # numbers and dates connect memories that have nothing else in common
_PROBE = "Ada Lovelace wrote the notes for Babbage in London."
_WITHOUT = {
    "entities": "finds no entities (it has no component that sets doc.ents), so names are found by the rules alone",
    "noun chunks": "finds no noun chunks (it has no parser, or its language has no rule for them), "
    "so bigrams are those of the rules",
    "lemmas": "has no lemmas (no component sets token.lemma_), so stems are those of the words as written",
}


class Trained:
    """Extracts with ``pipeline``: the name of an installed one, its folder, or a loaded spaCy Language.

    The pipeline is loaded at the first memory; questions are read by the rules. ``degraded`` says, in one sentence
    each, which components the pipeline lacks; one warning is given. ``counts`` holds read, and fallback with its
    reasons, for texts at which the pipeline raised an error.
    """

    name = "spacy"

    def __init__(self, pipeline: Any, language: str = "english", *, spans: bool = True) -> None:
        if find_spec("spacy") is None:
            raise MissingExtra("spaCy is not installed; install it with: pip install 'semmem[spacy]'")
        if isinstance(pipeline, str | Path) and not (Path(pipeline).expanduser().is_dir() or _installed(str(pipeline))):
            raise InvalidInput(
                f"There is no spaCy pipeline {str(pipeline)!r}: no package of that name is installed and no folder is "
                f"there; install one (python -m spacy download en_core_web_sm) or set spacy_pipeline to its folder."
            )
        self.language = language
        self.version = str(pipeline) if isinstance(pipeline, str | Path) else type(pipeline).__name__
        self._pipeline = pipeline
        self._rules = Rules(language)
        self._spans = spans
        self._lock = Lock()
        self._nlp: Any = None
        self._tally = Tally()
        self.degraded: Mapping[str, str] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many memories the pipeline read, and how many the rules had to read."""
        return self._tally.counts()

    def extract(self, text: str, title: str | None = None) -> Extraction:
        """Return the extraction of one memory."""
        names: list[str] = []
        bigrams: dict[tuple[str, str], None] = {}
        lemmas: Counter[str] = Counter()
        with self._lock:  # a pipeline keeps state between texts
            nlp = self._loaded()
            try:
                for part, times in ((title, 2), (text, 1)):
                    if part:
                        doc = nlp(part)
                        names += self._entities(doc)
                        bigrams |= dict.fromkeys(self._pairs(doc))
                        for root in self._lemmas(doc):
                            lemmas[root] += times
            except Exception as error:  # noqa: BLE001  # a pipeline may raise anything; the rules then read the memory
                self._tally.add("fallback", type(error).__name__)
                return extract(text, title, language=self.language)
        self._tally.add("read")
        spans = self._spans or "entities" in self.degraded
        out = with_found(text, title, Findings(tuple(names)), language=self.language, spans=spans)
        if "noun chunks" not in self.degraded:
            out.unmention(_BIGRAM)
            for pair in bigrams:
                out.add(key(_BIGRAM, pair), _BIGRAM, " ".join(pair), BIGRAM_WEIGHT)
        self._add_lemmas(out, lemmas)
        return out.extraction()

    def _loaded(self) -> Any:
        """Return the pipeline, loaded once and tested on a sentence."""
        if self._nlp is None:
            import spacy

            nlp = self._pipeline
            if isinstance(nlp, str | Path):
                try:
                    nlp = spacy.load(Path(nlp).expanduser() if Path(nlp).expanduser().is_dir() else nlp)
                except (OSError, ValueError, ImportError) as error:
                    why = str(error).splitlines()[0]
                    raise InvalidInput(f"The spaCy pipeline {str(nlp)!r} cannot be loaded: {why}") from error
            self.degraded = {what: f"The pipeline {_name(nlp)} {_WITHOUT[what]}." for what in _lacking(nlp)}
            self._nlp = nlp
            if self.degraded:
                warnings.warn(" ".join(self.degraded.values()), stacklevel=3)
        return self._nlp

    def _entities(self, doc: Any) -> Iterator[str]:
        if "entities" not in self.degraded:
            yield from (entity.text for entity in doc.ents if entity.label_ not in _QUANTITIES)

    def _pairs(self, doc: Any) -> Iterator[tuple[str, str]]:
        """Yield the stems of lemmas that are neighbours in a noun chunk after stop words are removed.

        As in the rules, a number makes a pair only with the stem it directly follows.
        """
        if "noun chunks" in self.degraded:
            return
        for chunk in doc.noun_chunks:
            before, adjacent = "", False
            for word in (w for token in chunk for w in self._words(token)):
                if word.stop:
                    adjacent = False
                    continue
                if before and (adjacent or word.kind != _TERM):
                    yield before, word.stem
                before, adjacent = (before, False) if word.kind == _TERM else (word.stem, True)

    def _lemmas(self, doc: Any) -> Iterator[str]:
        """Yield the stem of each lemma that differs from the stem of its word."""
        if "lemmas" in self.degraded:
            return
        for token in doc:
            written, lemma = tokens(token.text, self.language), self._words(token)
            if len(written) != 1 or len(lemma) != 1 or written[0][0].stop:
                continue
            root = lemma[0]
            if root.kind == _STEM and not root.stop and root.stem != written[0][0].stem:
                yield root.stem

    def _words(self, token: Any) -> list[Word]:
        """Return the words of a token's lemma; of the token itself where it is a stop word or has no lemma."""
        written = [word for word, _, _ in tokens(token.text, self.language)]
        if not token.lemma_ or all(word.stop for word in written):
            return written
        return [word for word, _, _ in tokens(token.lemma_, self.language)]

    def _add_lemmas(self, out: Gathered, lemmas: Mapping[str, int]) -> None:
        for root, count in lemmas.items():
            out.add(key(_STEM, (root,)), _STEM, root, STEM_WEIGHT, count=count)


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _name(nlp: Any) -> str:
    return f"{nlp.meta.get('lang', '')}_{nlp.meta.get('name', '')}".strip("_")


def _lacking(nlp: Any) -> list[str]:
    """Return which annotations the pipeline does not set on a plain sentence."""
    try:
        doc = nlp(_PROBE)
        lacking = [] if doc.has_annotation("ENT_IOB") else ["entities"]
        try:
            chunks = doc.has_annotation("DEP") and list(doc.noun_chunks) is not None
        except (NotImplementedError, ValueError):
            chunks = False
        return lacking + ([] if chunks else ["noun chunks"]) + ([] if doc.has_annotation("LEMMA") else ["lemmas"])
    except Exception as error:
        raise InvalidInput(f"The spaCy pipeline {_name(nlp)} fails on a plain sentence: {error}") from error
