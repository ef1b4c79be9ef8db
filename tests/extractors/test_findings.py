"""Names that others found beside those of the rules, and extractors by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import semmem
from semmem.concepts.rules import extract
from semmem.config import Settings
from semmem.extractors import NAMES, Rules, load
from semmem.extractors.findings import Findings, Tally, named, ties, with_found, within
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key


@pytest.mark.parametrize(
    ("name", "parts", "label"),
    [
        ("Ada Lovelace", ("ada", "lovelace"), "Ada Lovelace"),
        ("the analytical engine's", ("analytical", "engine"), "analytical engine"),
        ("Bank of England", ("bank", "of", "england"), "Bank of England"),
        ("The Who", ("the", "who"), "The Who"),
        ("INC-211", ("inc", "211"), "INC-211"),
        ("in the", (), ""),
        ("1846", (), ""),
        ("", (), ""),
        ("?!", (), ""),
        ("ada met nine old mills by six wide rivers near york", (), ""),
    ],
)
def test_a_name_is_read_without_the_stop_words_around_it(name: str, parts: tuple[str, ...], label: str) -> None:
    assert named(name) == (parts, label)


def test_with_nothing_found_the_rules_stay_as_they_are() -> None:
    text, title = "Ada Lovelace met Babbage in 1833.", "Ada Lovelace"
    assert with_found(text, title, Findings()).extraction() == extract(text, title)
    assert with_found("", None, Findings()).extraction() == Extraction((), (), (), (), (), (), 0)


def test_the_larger_weight_of_a_name_wins() -> None:
    found = Findings(("engine",), (("engine", "drives", "mill"),))
    extraction = with_found("the engine drives the mill", None, found).extraction(ties(found))
    weights = dict(zip(extraction.keys, extraction.mentions, strict=True))
    assert weights[key(Kind.NAME, ("engine",))] == 1.0
    assert weights[key(Kind.NAME, ("mill",))] == 0.6


def test_a_relationship_needs_two_ends_that_are_different_concepts() -> None:
    a, b = key(Kind.NAME, ("ada",)), key(Kind.NAME, ("babbage",))
    found = Findings(
        (), (("Ada", "met", "the Babbage"), ("Ada", "is", "ada"), ("Ada", "born in", "1815"), ("", "x", "Ada"))
    )
    assert ties(found) == [(a, "met", b)]


def test_what_ties_two_names_is_cleaned_for_a_store() -> None:
    found = Findings((), (("Ada", "met\x00\n  once", "Babbage"),))
    assert ties(found)[0][1] == "met once"


def test_relationships_are_sorted_and_each_is_there_once() -> None:
    found = Findings((), (("Ada", "met", "Babbage"), ("Ada", "knew", "Babbage"), ("Ada", "met", "Babbage")))
    relationships = with_found("Ada met Babbage", None, found).extraction(ties(found)).relationships
    assert [what for _, what, _ in relationships] == ["knew", "met"]


def test_within_keeps_what_stands_in_title_or_text_word_for_word() -> None:
    found = Findings(("ADA LOVELACE", "Love", "Notes"), (("ada", "wrote", "notes"), ("ada", "met", "Peel")))
    held, lost = within(found, "ada lovelace's pages", "Notes")
    assert held == Findings(("ADA LOVELACE", "Notes"), (("ada", "wrote", "notes"),))
    assert lost == 2  # Love is no word of it; Peel is not there


def test_a_tally_counts_by_name_and_leaves_out_zeros() -> None:
    tally = Tally()
    tally.add("b", "a")
    tally.add("a", times=2)
    tally.add("c", times=0)
    assert tally.counts() == {"a": 3, "b": 1}


def test_the_rules_find_no_relationships() -> None:
    assert extract("Ada Lovelace met Babbage.").relationships == ()


def test_extractors_are_loaded_by_name_and_an_unknown_one_is_refused() -> None:
    assert NAMES == ("rules", "spacy", "precomputed", "llm")
    assert isinstance(load("rules"), Rules)
    with pytest.raises(InvalidInput, match="no extractor named 'gpt'; choose one of rules, spacy, precomputed, llm"):
        load("gpt")
    with pytest.raises(InvalidInput, match="no stemmer"):
        load("rules", language="klingon")


def test_the_key_of_an_endpoint_is_never_shown() -> None:
    settings = Settings.load(llm_key="secret-key")
    assert "secret-key" not in repr(settings)
    assert settings.llm_key is not None
    assert settings.llm_key.get_secret_value() == "secret-key"


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_EXTRACTOR", "llm")
    monkeypatch.setenv("SEMMEM_LLM_URL", "http://127.0.0.1:9/v1")
    settings = Settings.load()
    assert (settings.extractor, settings.llm_url) == ("llm", "http://127.0.0.1:9/v1")


def test_connect_wires_the_extractor_by_name_by_setting_and_as_an_object(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "it drives the old mill."
    triples = tmp_path / "triples.json"
    row = {"text": text, "extracted_entities": ["old mill"], "extracted_triples": []}
    triples.write_text(json.dumps({"docs": [row]}), encoding="utf-8")
    with semmem.connect(store_url, embedder="none", extractor="precomputed", triples=triples) as mem:
        mem.remember(text, id="m1")
        names = mem.store.graph.names(["default"], [key(Kind.NAME, ("old", "mill"))])
        assert list(names.values()) == ["old mill"]
        assert [hit.memory.id for hit in mem.recall("who drives the mill?")] == ["m1"]
    monkeypatch.setenv("SEMMEM_EXTRACTOR", "precomputed")
    with pytest.raises(InvalidInput, match="SEMMEM_TRIPLES"):
        semmem.connect(store_url, embedder="none")
    with semmem.connect(store_url, embedder="none", extractor=Rules()) as mem:
        mem.remember("Ada Lovelace wrote notes.", id="m2")
        assert mem.recall("Who is Ada Lovelace?")[0].memory.id == "m2"
    with pytest.raises(InvalidInput, match="no extractor named"):
        semmem.connect(store_url, embedder="none", extractor="gpt")
