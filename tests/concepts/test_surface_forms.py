"""Concepts are shown as people write them."""

from __future__ import annotations

from semmem.concepts.surface_forms import written
from semmem.model.exchange import Kind
from semmem.text.tokens import key


def stems(*parts: str) -> int:
    return key(Kind.STEM if len(parts) == 1 else Kind.BIGRAM, parts)


def test_a_stem_is_shown_in_the_form_that_stands_there_most_often() -> None:
    texts = [
        "We postponed the release.",
        "Postponing it again? Postponing is a habit.",
        "postponed, postponed",
        None,
        "",
    ]
    assert written({stems("postpon"): "postpon"}, texts) == {stems("postpon"): "postponed"}


def test_a_pair_of_stems_is_shown_as_the_two_words_stand_beside_each_other() -> None:
    labels = {stems("postpon", "kafka"): "postpon kafka", stems("port", "8080"): "port 8080"}
    texts = ["They postponed the Kafka upgrade.", "He postponed Kafka's upgrade; ports 8080 and 80, ports 8080."]
    assert written(labels, texts) == {
        stems("postpon", "kafka"): "postponed Kafka",
        stems("port", "8080"): "ports 8080",
    }


def test_of_two_forms_as_frequent_the_one_in_small_letters_is_shown() -> None:
    assert written({stems("worri"): "worri"}, ["Worried?", "worried"]) == {stems("worri"): "worried"}


def test_names_and_what_no_text_has_stay_as_they_are() -> None:
    name = key(Kind.NAME, ("worri",))
    labels = {name: "Worri", stems("kestrel"): "kestrel", stems("worri", "kafka"): "worri kafka"}
    assert written(labels, ["Kafka worries me, not worri."]) == labels
    assert written({}, ["anything"]) == {}


def test_the_forms_are_those_of_the_language() -> None:
    assert written({stems("haus"): "haus"}, ["Die H\u00e4user am Meer."], "german") == {stems("haus"): "H\u00e4user"}
