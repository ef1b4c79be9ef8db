"""Every language of Snowball and every script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.concepts.rules import question
from semmem.extractors import Rules, load
from semmem.extractors.findings import named
from semmem.model.exchange import Kind
from semmem.text.tokens import LANGUAGES, key

SCRIPTS = {
    "Latin": "Ångström fand die Straße nach Łódź.",
    "Greek": "Ο Σωκράτης πήγε στην Αθήνα.",
    "Cyrillic": "Анна Каренина поехала в Москву.",
    "Armenian": "Երևանը Հայաստանի մայրաքաղաքն է։",
    "Hebrew": "ירושלים היא עיר הבירה",
    "Arabic": "القاهرة عاصمة مصر",
    "Devanagari": "दिल्ली भारत की राजधानी है।",
    "Tamil": "சென்னை தமிழ்நாட்டின் தலைநகரம்",
    "Thai": "กรุงเทพเป็นเมืองหลวง",
    "Han": "東京都は日本の首都です。",
    "Hangul": "서울은 한국의 수도이다",
    "Georgian": "თბილისი დედაქალაქია",
    "Ethiopic": "አዲስ አበባ ከተማ ናት",
    "Emoji": "🙂👍🏽 👨‍👩‍👧 ok",
    "Mixed": "Ada 買了 iPhone в Москве ٣٤",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_of_snowball_reads_every_script(language: str) -> None:
    rules = Rules(language)
    for text in SCRIPTS.values():
        extraction = rules.extract(text, text)
        assert extraction.keys == tuple(sorted(set(extraction.keys)))
        assert {*extraction.kinds} <= {*map(int, Kind)}
        assert extraction.length > 0
        question(text, language)


@given(st.text(max_size=80), st.text(max_size=20), st.sampled_from(LANGUAGES))
def test_no_string_is_too_strange(text: str, title: str, language: str) -> None:
    extraction = Rules(language).extract(text, title)
    columns = (extraction.kinds, extraction.names, extraction.mentions, extraction.subjects, extraction.counts)
    assert {len(column) for column in columns} == {len(extraction.keys)}
    assert extraction.relationships == ()
    question(text, language)
    named(text, language)


def test_chinese_and_japanese_become_pairs_of_characters() -> None:
    extraction = load("rules").extract("東京都庁", None)
    stems = {name for kind, name in zip(extraction.kinds, extraction.names, strict=True) if kind == Kind.STEM}
    assert stems == {"東京", "京都", "都庁"}
    asked = question("京都は?")
    assert key(Kind.STEM, ("京都",)) in set(asked.keys) & set(extraction.keys)


def test_the_language_decides_stems() -> None:
    def stems(text: str, language: str) -> set[str]:
        found = load("rules", language=language).extract(text, None)
        return {name for kind, name in zip(found.kinds, found.names, strict=True) if kind == Kind.STEM}

    assert stems("Häuser", "german") == {"haus"}
    assert stems("chevaux", "french") == {"cheval"}
    assert stems("chevaux", "english") == {"chevaux"}
