"""The rules for conversation in four languages: the same question has the same outcome in each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.extractors import Rules
from semmem.read.question import candidates, conversational_query
from semmem.text.languages import LANGUAGES
from semmem.text.passages import terms
from semmem.text.talk import Talk, _patterns, talk
from semmem.text.tokens import tokens

DATA = Path(__file__).resolve().parents[2] / "eval" / "data" / "talk"
SPEAKERS = ("Anna", "Emil", "Ines", "Otto")


def asked(question: str, language: str, *speakers: str) -> Any:
    """Return ``question`` as it is put to a conversation of ``speakers``."""
    places = candidates(question, language)
    return conversational_query(question, places, {one for one in speakers if one.lower() in places}, language)


def rules(language: str) -> Talk:
    found = talk(language)
    assert found is not None
    return found


def questions(language: str) -> list[str]:
    lines = (DATA / language / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_forty_questions_ask_the_same_person_month_and_list_as_in_english(language: str) -> None:
    for english, other in zip(questions("english"), questions(language), strict=True):
        ours, theirs = asked(english, "english", *SPEAKERS), asked(other, language, *SPEAKERS)
        assert (theirs.author, theirs.months, theirs.collects, theirs.authors) == (
            ours.author,
            ours.months,
            ours.collects,
            ours.authors,
        ), other


def test_of_forty_questions_five_name_a_month_and_eight_collect() -> None:
    found = [asked(one, "english", *SPEAKERS) for one in questions("english")]
    assert [one.months for one in found if one.months] == [((m, None),) for m in (1, 5, 4, 6, 9)]
    assert sum(one.collects for one in found) == 8
    assert sum(one.author is not None for one in found) == 39  # one names two


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("other", LANGUAGES)
def test_a_rule_of_one_language_does_nothing_to_a_question_in_another(language: str, other: str) -> None:
    if language == other:
        return
    for question in questions(other):
        assert not rules(language).collects(question), question
        theirs = rules(other).months(question)
        assert rules(language).months(question) in ((), theirs), question  # April is April


@pytest.mark.parametrize(
    ("language", "question", "text", "said"),
    [
        ("english", "Where does Anna's sister live?", "Where does sister live?", "Where does my sister live?"),
        ("german", "Wo wohnt Annas Schwester?", "Wo wohnt Schwester?", "Wo wohnt mein Schwester?"),
        ("german", "Wo wohnt Anna's Schwester?", "Wo wohnt Schwester?", "Wo wohnt mein Schwester?"),
        ("spanish", "¿Dónde vive la hermana de Anna?", "¿Dónde vive la hermana de ?", "¿Dónde vive mi hermana?"),
        ("spanish", "¿Dónde viven los padres de Anna?", "¿Dónde viven los padres de ?", "¿Dónde viven mis padres?"),
        ("french", "Où habite la sœur d'Anna ?", "Où habite la sœur d' ?", "Où habite ma sœur ?"),
        ("french", "Où habite la sœur d\u2019Anna ?", "Où habite la sœur d\u2019 ?", "Où habite ma sœur ?"),
        ("english", "What did Anna buy?", "What did buy?", "What did I buy?"),
        ("german", "Was kauft Anna?", "Was kauft ?", "Was kauft ich?"),
        ("spanish", "¿Qué compró Anna?", "¿Qué compró ?", "¿Qué compró yo?"),
        ("spanish", "¿Qué le dijo Otto a Anna?", "¿Qué le dijo Otto a ?", "¿Qué le dijo Otto a mí?"),
        ("french", "Qu'a acheté Anna ?", "Qu'a acheté ?", "Qu'a acheté je ?"),
        ("french", "Qui parle de Anna ?", "Qui parle de ?", "Qui parle de moi ?"),
    ],
)
def test_the_author_who_is_asked_says_i_and_my(language: str, question: str, text: str, said: str) -> None:
    found = asked(question, language, "Anna")
    assert (found.author, found.text, found.to_embed) == ("Anna", text, said)


def test_a_german_name_that_ends_in_s_is_a_possessive_before_an_apostrophe_alone() -> None:
    assert asked("Wo wohnt Ines' Bruder?", "german", "Ines").to_embed == "Wo wohnt mein Bruder?"
    assert asked("Wo wohnt Ines?", "german", "Ines").to_embed == "Wo wohnt ich?"


def test_a_name_with_an_s_is_somebody_else_in_english() -> None:
    assert asked("Where are Annas photos?", "english", "Anna").author is None
    assert asked("Wo sind Annas Fotos?", "german", "Anna").author == "Anna"


MONTHS: Mapping[str, tuple[str, tuple[tuple[int, int | None], ...]]] = {
    "What did we buy in March 2023?": ("english", ((3, 2023),)),
    "Was haben wir im März 2023 gekauft?": ("german", ((3, 2023),)),
    "Was war am 3. März?": ("german", ((3, None),)),
    "¿Qué compramos en marzo de 2023?": ("spanish", ((3, 2023),)),
    "¿Qué pasó el 3 de marzo?": ("spanish", ((3, None),)),
    "Qu'avons-nous acheté en mars 2023 ?": ("french", ((3, 2023),)),
    "Qui est venu le 3 mars ?": ("french", ((3, None),)),
    "Qui a parlé de février et d'août ?": ("french", ((2, None), (8, None))),
    "We march at dawn.": ("english", ()),
    "La planète Mars est rouge ?": ("french", ()),
    "¿Dónde vive Julio?": ("spanish", ()),
    "¿Qué pasó en julio?": ("spanish", ((7, None),)),
}


@pytest.mark.parametrize("question", MONTHS)
def test_a_month_is_named_in_each_language(question: str) -> None:
    language, months = MONTHS[question]
    assert rules(language).months(question) == months


LISTS = {
    "english": "Which books has she read? | How many dogs are there? | What do both like? | What is in common?",
    "german": "Welche Bücher hat sie gelesen? | Wie viele Hunde gibt es? | Was mögen beide? | Was ist gemeinsam?",
    "spanish": "¿Qué libros ha leído? | ¿Cuántos perros hay? | ¿Qué les gusta a ambos? | ¿Qué tienen en común?",
    "french": "Quels livres lit-elle ? | Combien de chiens a-t-il ? | Qui aime tous les deux ? | Quoi en commun ?",
}
SINGLES = {
    "english": "Which book did she read? | How long did it take? | When did she paint it? | What is she called?",
    "german": "Welches Buch hat sie gelesen? | Wie lange war es? | Wann war das? | Welche Farbe hat ihr Auto?",
    "spanish": "¿Qué libro leyó? | ¿Cuánto tardó? | ¿Cuándo lo pintó? | ¿En qué mes nació?",
    "french": "Quel livre a-t-elle lu ? | Combien de temps ? | Quand est-ce ? | Combien d'argent a-t-elle ?",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_question_for_a_list_collects_and_one_for_a_single_thing_does_not(language: str) -> None:
    assert [rules(language).collects(one) for one in LISTS[language].split(" | ")] == [True] * 4
    assert [rules(language).collects(one) for one in SINGLES[language].split(" | ")] == [False] * 4


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("english", "Who was with you on the ferry, and why?", ["ferri"]),
        ("german", "Wer war mit dir auf der Fähre, und warum?", ["fahr"]),
        ("spanish", "¿Quién estaba contigo en el ferry, y por qué?", ["ferry"]),
        ("french", "Qui était avec toi sur le bateau, et pourquoi ?", ["bateau"]),
        ("french", "L'hôtel d'en face, aujourd'hui", ["hotel", "fac"]),
        ("english", "die was", ["die"]),  # a stop word of one language is a word of another
        ("german", "who was", ["who"]),
        ("dutch", "wie was daar", ["wie", "was", "daar"]),
    ],
)
def test_function_words_are_left_out_by_the_language_of_the_namespace(
    language: str, text: str, found: list[str]
) -> None:
    assert terms(text, language) == found


def test_a_french_elision_is_a_token_of_its_own_with_either_apostrophe() -> None:
    for text in ("l'eau d'Anna", "l\u2019eau d\u2019Anna"):
        assert [(word.folded, start, end) for word, start, end in tokens(text, "french")] == [
            ("l", 0, 2),
            ("eau", 2, 5),
            ("d", 6, 8),
            ("anna", 8, 12),
        ]
    assert [word.folded for word, _, _ in tokens("l'eau", "german")] == ["leau"]


def test_a_language_without_a_file_of_words_has_no_rules() -> None:
    assert talk("dutch") is None
    found = asked("Hoeveel honden heeft Anna in september?", "dutch", "Anna")
    assert (found.author, found.to_embed) == ("Anna", "Hoeveel honden heeft Anna in september?")
    assert (found.months, found.collects) == ((), False)


def test_no_pattern_is_compiled_before_an_author_is_asked_about() -> None:
    _patterns.cache_clear()
    assert "anna" in candidates("What did Anna say in May?", "english")
    assert _patterns.cache_info().currsize == 0
    assert asked("What did Anna say in May?", "english", "Anna").months == ((5, None),)
    assert _patterns.cache_info().currsize == 1


def test_the_stemmer_porter_has_the_rules_of_english() -> None:
    assert talk("porter") is not None
    assert terms("who was with you", "porter") == []


def test_what_was_stored_before_a_language_had_function_words_is_stale() -> None:
    assert {one: Rules(one).version for one in (*LANGUAGES, "dutch")} == {
        "english": "3",
        "german": "4",
        "spanish": "4",
        "french": "4",
        "dutch": "3",
    }


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("english", "Where is Anna's sister?"),
        ("german", "Wo ist Annas Schwester?"),
        ("spanish", "¿Dónde está la hermana de Anna?"),
        ("french", "Où est la sœur d'Anna ?"),
    ],
)
def test_a_recall_prefers_the_turn_of_the_person_whose_sister_is_meant(
    tmp_path: Path, language: str, question: str
) -> None:
    sister = {"english": "sister", "german": "Schwester", "spanish": "hermana", "french": "sœur"}[language]
    with semmem.connect(f"sqlite:///{tmp_path}/talk.db", embedder="none", language=language) as mem:
        for number, (author, text) in enumerate(
            [("Otto", f"{sister} Porto"), ("Anna", f"{sister} Granada"), ("Otto", "Madrid"), ("Anna", "Oslo")]
        ):
            mem.remember(text, id=f"t{number}", author=author, session="s", namespace="chat")
        found = mem.recall(question, namespace="chat", recipe="lexical")
    assert found[0].memory.id == "t1"
