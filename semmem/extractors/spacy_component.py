"""The rules as a spaCy component, to look at their results: ``Doc.spans["concepts"]`` and displaCy.

    from semmem.extractors.spacy_component import OPTIONS, inspect
    spacy.displacy.serve(inspect("Ada Lovelace wrote to Charles Babbage."), style="span", options=OPTIONS)

Nothing in semmem reads these spans: memories and questions are read by the pure functions that this calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from semmem.concepts.names import capitalised_spans, gazetteer, name_key, read, subject_keys
from semmem.model.errors import MissingExtra
from semmem.model.exchange import Kind
from semmem.text.tokens import Reading, key

__all__ = ["COMPONENT", "OPTIONS", "SPANS", "ConceptSpan", "concept_spans", "inspect", "pipeline", "register"]

COMPONENT = "semmem_concepts"
"""Name of the component's factory, known to spaCy after ``register()``."""
SPANS = "concepts"
"""Name of the span group."""
OPTIONS: Mapping[str, Any] = {
    "spans_key": SPANS,
    "colors": {"SUBJECT": "#f4a259", "NAME": "#8cb369", "BIGRAM": "#b8c4e0", "STEM": "#e4e4e4"},
}
"""Options for ``displacy.render(doc, style="span", options=OPTIONS)``."""
_TERM = int(Kind.TERM)


class ConceptSpan(NamedTuple):
    """Where one concept stands: character offsets, SUBJECT, NAME, BIGRAM or STEM, and its key."""

    start: int
    end: int
    label: str
    key: int


def concept_spans(
    text: str, title: str | None = None, *, language: str = "english", known: Collection[int] = ()
) -> list[ConceptSpan]:
    """Return every place in ``text`` where the rules find a concept, as (start, end, label, key).

    Subjects are the names given by the title, where the text mentions them. The concepts of the title itself, which
    ``extract`` counts too, have no place in the text.
    """
    reading = read(text, language)
    subjects = subject_keys(text, title, language=language) if title else set()
    spans = set()
    runs = {(first, past): name_key(reading, first, past) for first, past in capitalised_spans(reading)}
    if not text.islower():
        runs |= {
            (first, past): concept_key for first, past, concept_key in gazetteer(text, subjects.union(known), language)
        }
    for (first, past), concept_key in runs.items():
        spans.add(
            ConceptSpan(
                reading.starts[first],
                reading.ends[past - 1],
                "SUBJECT" if concept_key in subjects else "NAME",
                concept_key,
            )
        )
    spans.update(_words(reading))
    return sorted(spans)


def _words(reading: Reading) -> Iterator[ConceptSpan]:
    """Yield stems and bigrams, by the rule of ``extract``: see ``rules._Concepts.add_words``."""
    before: tuple[str, int] | None = None
    adjacent = False
    for word, start, end in zip(reading.words, reading.starts, reading.ends, strict=True):
        if word.stop:
            adjacent = False
            continue
        if before is not None and (adjacent or word.kind != _TERM):
            yield ConceptSpan(before[1], end, "BIGRAM", key(Kind.BIGRAM, (before[0], word.stem)))
        if word.kind == _TERM:
            adjacent = False
            continue
        yield ConceptSpan(start, end, "STEM", word.key)
        before, adjacent = (word.stem, start), True


def register() -> None:
    """Register the component with spaCy as ``semmem_concepts``; a second call does nothing.

    Raises MissingExtra without spaCy. Its settings: ``language`` (a Snowball language), ``known`` (keys of names that
    are looked for besides). A title is read from ``doc._.semmem_title``.
    """
    try:
        from spacy.language import Language
        from spacy.tokens import Doc, Span
    except ImportError as error:
        raise MissingExtra("spaCy is not installed; install it with: pip install 'semmem[spacy]'") from error
    if not Doc.has_extension("semmem_title"):
        Doc.set_extension("semmem_title", default=None)
    if Language.has_factory(COMPONENT):
        return

    def make(nlp: Any, name: str, language: str, known: list[int]) -> Any:
        keys = frozenset(known)

        def component(doc: Any) -> Any:
            spans = []
            for start, end, label, concept_key in concept_spans(
                doc.text, doc._.semmem_title, language=language, known=keys
            ):
                place = doc.char_span(start, end, alignment_mode="expand")
                if place is not None:
                    spans.append(Span(doc, place.start, place.end, label=label, span_id=str(concept_key)))
            doc.spans[SPANS] = spans
            return doc

        return component

    Language.factory(COMPONENT, default_config={"language": "english", "known": []}, assigns=["doc.spans"], func=make)


def pipeline(*, language: str = "english", known: Collection[int] = ()) -> Any:
    """Return ``spacy.blank("en")`` with the component in it."""
    register()
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe(COMPONENT, config={"language": language, "known": sorted(known)})
    return nlp


def inspect(text: str, title: str | None = None, *, language: str = "english", known: Collection[int] = ()) -> Any:
    """Return a spaCy Doc of ``text`` with the concepts that the rules find in ``spans["concepts"]``."""
    nlp = pipeline(language=language, known=known)
    doc = nlp.make_doc(text)
    doc._.semmem_title = title
    return nlp(doc)
