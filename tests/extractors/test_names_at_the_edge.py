"""What stays of a name that ends in a stop word, and of a subject whose mentions are left to others."""

from __future__ import annotations

from semmem.extractors.findings import Findings, named, with_found
from semmem.model.exchange import Kind
from semmem.text.tokens import key


def test_a_stop_word_with_a_capital_ends_a_name_and_one_without_does_not() -> None:
    assert named("Vitamin A") == (("vitamin", "a"), "Vitamin A")
    assert named("Vitamin a") == (("vitamin",), "Vitamin")


def test_a_memory_stays_about_its_title_where_a_pipeline_finds_the_names_in_place_of_the_rules() -> None:
    found = with_found("Our logger writes to Norrbeck.", "Kestrel", Findings(("Norrbeck",)), spans=False).extraction()
    subjects = dict(zip(found.keys, found.subjects, strict=True))
    mentions = dict(zip(found.keys, found.mentions, strict=True))
    kestrel = key(int(Kind.NAME), ("kestrel",))
    assert subjects[kestrel] == 1.0
    assert mentions[kestrel] == 0.0
