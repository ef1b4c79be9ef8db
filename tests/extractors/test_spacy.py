"""The rules as a spaCy component to look at, and a user's trained pipeline as an extractor."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.concepts.rules import extract
from semmem.extractors import load
from semmem.extractors.spacy import Trained
from semmem.extractors.spacy_component import OPTIONS, SPANS, concept_spans, inspect, pipeline, register
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key

PROSE = st.lists(
    st.sampled_from(
        [
            "Ada",
            "Will",
            "the",
            "The",
            "of",
            "and",
            "INC-211",
            "U.S.",
            ".",
            ". ",
            "x-ray",
            "ran",
            "7",
            "'s",
            ",",
            "東京都",
        ]
    ),
    max_size=30,
).map(" ".join)


@pytest.fixture(scope="module", autouse=True)
def spacy() -> Any:
    """Load spaCy, which takes seconds, for these tests alone, and name it the components that they add."""
    module = pytest.importorskip("spacy")
    module.Language.component("semmem_test_tagger", func=_tagger)
    module.Language.component("semmem_test_broken", func=_broken)
    return module


def shown(doc: Any) -> set[tuple[str, str]]:
    return {(span.label_, span.text) for span in doc.spans[SPANS]}


def found(extraction: Extraction, kind: Kind) -> dict[str, tuple[float, int]]:
    columns = zip(extraction.kinds, extraction.names, extraction.mentions, extraction.counts, strict=True)
    return {name: (mention, count) for k, name, mention, count in columns if k == kind and (mention or count)}


# ---------------------------------------------------------------------- the component


def test_the_component_shows_subjects_names_bigrams_and_stems_as_spans() -> None:
    doc = inspect("Ada Lovelace wrote notes. Babbage read them.", "Ada Lovelace")
    assert shown(doc) == {
        ("SUBJECT", "Ada Lovelace"),
        ("NAME", "Babbage"),
        *(("STEM", word) for word in ("Ada", "Lovelace", "wrote", "notes", "Babbage", "read")),
        *(
            ("BIGRAM", pair)
            for pair in ("Ada Lovelace", "Lovelace wrote", "wrote notes", "notes. Babbage", "Babbage read")
        ),
    }


def test_known_names_are_shown_within_longer_runs() -> None:
    known = [key(Kind.NAME, ("orbit", "engine"))]
    assert ("NAME", "Orbit engine") in shown(inspect("Orbit engine stalled.", known=known))
    assert ("NAME", "Orbit engine") not in shown(inspect("Orbit engine stalled."))


def test_displacy_draws_the_spans(spacy: Any) -> None:
    doc = inspect("Ada Lovelace wrote notes.")
    html = spacy.displacy.render(doc, style="span", options=dict(OPTIONS), jupyter=False)
    assert "Lovelace" in html
    assert "NAME" in html
    assert OPTIONS["colors"]["NAME"] in html
    assert OPTIONS["colors"]["STEM"] in html


def test_the_component_is_added_to_any_pipeline_by_its_name(spacy: Any) -> None:
    register()
    register()
    nlp = spacy.blank("de")
    nlp.add_pipe("semmem_concepts", config={"language": "german"})
    assert ("STEM", "Häuser") in shown(nlp("Die Häuser brannten."))


@settings(max_examples=60, deadline=None)
@given(PROSE, st.sampled_from([None, "Ada", "The Will of Ada", "INC-211"]))
def test_the_spans_are_exactly_the_concepts_that_the_rules_find_in_the_text(text: str, title: str | None) -> None:
    own = {span.key for span in concept_spans(text)}
    extraction = extract(text)
    assert own == {k for k, kind in zip(extraction.keys, extraction.kinds, strict=True) if kind != Kind.TERM}
    assert {s.key for s in concept_spans(text, title)} <= {
        *extract(text, title).keys,
        *dict(extract(text, title).candidates),
    }


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_any_string_can_be_looked_at(text: str) -> None:
    doc = _nlp()(text)
    assert {int(span.id_) for span in doc.spans[SPANS]} <= {span.key for span in concept_spans(text)}


_nlp = cache(pipeline)


def test_a_question_does_not_import_spacy() -> None:
    program = (
        "import sys, semmem.extractors as e\n"
        "from semmem.concepts import rules\n"
        "from semmem.extractors import findings, llm, precomputed, spacy, spacy_component\n"
        "rules.question('Who is Ada Lovelace?'); e.load('rules').extract('Ada ran.', None)\n"
        "spacy_component.concept_spans('Ada ran.')\n"
        "sys.exit('spacy.language' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# ---------------------------------------------------------------------- a trained pipeline

TEXT = "Grace Hopper ran the harbour office in 1952."
_LEMMAS = {"ran": "run", "offices": "office", "geese": "goose"}


def _tagger(doc: Any) -> Any:
    """Set tags, lemmas and a flat parse, as a trained pipeline would: "the … office" is one noun chunk."""
    for token in doc:
        token.lemma_ = _LEMMAS.get(token.text, token.lower_)
        token.pos_ = "VERB" if token.text == "ran" else "DET" if token.text == "the" else "NOUN"
    heads, deps = [], []
    ends = {t.i - 1 for t in doc if t.pos_ == "VERB" or not t.is_alpha or t.text == "in"} | {len(doc) - 1}
    nouns = [t.i for t in doc if t.pos_ == "NOUN" and t.i in ends]
    for token in doc:
        later = [i for i in nouns if i >= token.i]
        head = later[0] if later and token.pos_ != "VERB" else token.i
        heads.append(head)
        deps.append("nsubj" if head == token.i and token.pos_ == "NOUN" else "ROOT" if head == token.i else "compound")
    return type(doc)(
        doc.vocab,
        [t.text for t in doc],
        [bool(t.whitespace_) for t in doc],
        lemmas=[t.lemma_ for t in doc],
        pos=[t.pos_ for t in doc],
        heads=heads,
        deps=deps,
        ents=[f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]
        if doc.has_annotation("ENT_IOB")
        else None,
    )


def _broken(doc: Any) -> Any:
    if "unreadable" in doc.text:
        raise RuntimeError("no")
    return doc


def taught(*, tagger: bool = True, ruler: bool = True) -> Any:
    from spacy import blank

    nlp = blank("en")
    if ruler:
        rules = nlp.add_pipe("entity_ruler")
        rules.add_patterns(
            [
                {"label": "ORG", "pattern": "the harbour office"},
                {"label": "PERSON", "pattern": "grace hopper"},
                {"label": "DATE", "pattern": "1952"},
            ]
        )
    if tagger:
        nlp.add_pipe("semmem_test_tagger")
    return nlp


def test_entities_become_names_without_the_article_and_dates_do_not() -> None:
    extraction = Trained(taught()).extract(TEXT)
    assert found(extraction, Kind.NAME) == {"Grace Hopper": (1.0, 0), "harbour office": (1.0, 0)}
    only = Trained(taught(), spans=False).extract(TEXT)
    assert found(only, Kind.NAME) == {"harbour office": (1.0, 0)}


def test_bigrams_come_from_noun_chunks_alone() -> None:
    extraction = Trained(taught()).extract("the harbour office ran geese")
    # the rules would also have "office ran" and "ran gees"
    assert set(found(extraction, Kind.BIGRAM)) == {"harbour offic"}


def test_a_lemma_with_another_stem_is_a_stem_of_the_memory_too() -> None:
    extraction = Trained(taught()).extract("geese ran", "geese")
    # in the title twice, in the text once: gees 3, its lemma goos 3; ran 1, its lemma run 1
    assert found(extraction, Kind.STEM) == {"gees": (0.3, 3), "goos": (0.3, 3), "ran": (0.3, 1), "run": (0.3, 1)}
    assert extraction.length == 4  # 2 * 1 + 2: lemmas add no length


def test_a_full_pipeline_lacks_nothing_and_warns_of_nothing() -> None:
    extractor = Trained(taught())
    extractor.extract(TEXT)
    assert extractor.degraded == {}
    assert extractor.counts == {"read": 1}


def test_a_pipeline_that_can_do_nothing_leaves_all_to_the_rules_and_says_so_once(spacy: Any) -> None:
    extractor = Trained(spacy.blank("en"))
    with pytest.warns(UserWarning, match=r"no entities .* no noun chunks .* no lemmas") as seen:
        assert extractor.extract(TEXT) == extract(TEXT)
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert extractor.extract("Ada ran.") == extract("Ada ran.")
    assert set(extractor.degraded) == {"entities", "noun chunks", "lemmas"}
    assert all(sentence.endswith(".") for sentence in extractor.degraded.values())


def test_a_pipeline_without_a_parser_still_gives_its_entities() -> None:
    extractor = Trained(taught(tagger=False))
    with pytest.warns(UserWarning, match="no noun chunks"):
        extraction = extractor.extract("the harbour office ran late")
    assert set(extractor.degraded) == {"noun chunks", "lemmas"}
    assert found(extraction, Kind.NAME) == {"harbour office": (1.0, 0)}
    assert found(extraction, Kind.BIGRAM) == found(extract("the harbour office ran late"), Kind.BIGRAM)


def test_a_pipeline_without_entities_leaves_the_names_to_the_rules_even_when_told_to_leave_them_out() -> None:
    extractor = Trained(taught(ruler=False), spans=False)
    with pytest.warns(UserWarning, match="no entities"):
        extraction = extractor.extract(TEXT)
    assert found(extraction, Kind.NAME) == found(extract(TEXT), Kind.NAME)


def test_a_text_at_which_the_pipeline_fails_falls_back_to_the_rules_and_is_counted() -> None:
    nlp = taught()
    nlp.add_pipe("semmem_test_broken")
    extractor = Trained(nlp)
    assert extractor.extract("An unreadable note.") == extract("An unreadable note.")
    extractor.extract(TEXT)
    assert extractor.counts == {"RuntimeError": 1, "fallback": 1, "read": 1}


def test_a_pipeline_is_loaded_from_its_folder_at_the_first_memory(tmp_path: Path) -> None:
    nlp = taught(tagger=False)
    nlp.to_disk(tmp_path / "mine")
    extractor = load("spacy", spacy_pipeline=str(tmp_path / "mine"))
    with pytest.warns(UserWarning, match="no noun chunks"):
        extraction = extractor.extract(TEXT, None)
    assert "harbour office" in found(extraction, Kind.NAME)


def test_a_folder_that_holds_no_pipeline_is_refused_with_a_sentence(tmp_path: Path) -> None:
    extractor = load("spacy", spacy_pipeline=str(tmp_path))
    with pytest.raises(InvalidInput, match="cannot be loaded"):
        extractor.extract(TEXT, None)


def test_a_pipeline_that_is_nowhere_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="no spaCy pipeline 'en_core_web_none'"):
        load("spacy", spacy_pipeline="en_core_web_none")
    with pytest.raises(InvalidInput, match="SEMMEM_SPACY_PIPELINE"):
        load("spacy")


def test_questions_meet_what_the_pipeline_found() -> None:
    from semmem.concepts.rules import question

    stored = set(Trained(taught()).extract(TEXT).keys)
    asked = question("who ran the harbour office?")
    assert key(Kind.NAME, ("harbour", "office")) in {name.key for name in asked.names} & stored
    assert key(Kind.BIGRAM, ("harbour", "offic")) in set(asked.keys) & stored
