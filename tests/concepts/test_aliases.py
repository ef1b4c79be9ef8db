"""Other forms of a name that people expect to be the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.concepts.aliases import (
    OVERLAP_THRESHOLD,
    acronyms,
    initials,
    number_forms,
    overlap,
    surnames,
    variants,
    without_article,
)

WORD = st.sampled_from(["the", "of", "bank", "england", "van", "w", "a", "Ünal", "1846", "banks", "jr", "is"])
NAME = st.lists(WORD, max_size=6).map(tuple)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("The World Health Organization (WHO) met.", ("world health organization", "who")),
        ("WHO (World Health Organization) met.", ("world health organization", "who")),
        (
            "Cybersecurity and Infrastructure Security Agency (CISA)",
            ("cybersecurity and infrastructure security agency", "cisa"),
        ),
        ("the Bank of England (BoE)", ("bank of england", "boe")),
        ("non-governmental organisations (NGOs)", ("non governmental organisations", "ngos")),
        ("It is deoxyribonucleic acid [DNA].", ("deoxyribonucleic acid", "dna")),
        ("the U.S. Geological Survey (USGS)", ("us geological survey", "usgs")),
        ("Fédération Internationale (F.I.)", ("federation internationale", "fi")),
    ],
)
def test_an_acronym_that_the_text_explains_is_found(text: str, pair: tuple[str, str]) -> None:
    assert acronyms(text) == [(tuple(pair[0].split()), tuple(pair[1].split()))]


@pytest.mark.parametrize(
    "text",
    [
        "She left (USA) early.",
        "the World Health Organization (Geneva) met",
        "Health was bad. Organization (WHO)",
        "He said so (a man of no name) twice.",
        "the Bank of England (IMF)",
        "a list (1846)",
        "()( )[](",
        "WHO (the mill at the river)",
    ],
)
def test_a_bracket_that_explains_nothing_gives_no_acronym(text: str) -> None:
    assert acronyms(text) == []


def test_the_shortest_run_that_spells_the_acronym_is_its_long_form() -> None:
    assert acronyms("Big World Health Organization (HO) notes") == [(("health", "organization"), ("ho",))]


def test_initials_are_made_with_and_without_connectors() -> None:
    assert initials(("bank", "of", "england")) == {"be", "boe"}
    assert initials(("world", "health", "organization")) == {"who"}
    assert initials(("england",)) == set()
    assert initials(()) == set()


def test_the_article_in_front_does_not_count() -> None:
    assert without_article(("the", "hague")) == ("hague",)
    assert without_article(("the",)) == ("the",)
    assert without_article(("hague",)) == ("hague",)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("delivery truck", "delivery trucks"),
        ("delivery trucks", "delivery truck"),
        ("city", "cities"),
        ("cities", "city"),
        ("boss", "bosses"),
        ("boxes", "box"),
        ("church", "churches"),
        ("bank of england", "banks of england"),
        ("women", "woman"),
        ("child", "children"),
        ("key", "keys"),
        ("bus", "buses"),
    ],
)
def test_the_head_of_a_name_has_two_numbers(name: str, other: str) -> None:
    assert number_forms(tuple(name.split())) == {tuple(other.split())}


@pytest.mark.parametrize("name", [(), ("x",), ("kes", "917"), ("the",), ("who",)])
def test_what_has_no_head_has_no_other_number(name: tuple[str, ...]) -> None:
    assert number_forms(name) == set()


def test_a_surname_stands_for_the_only_person_who_has_it() -> None:
    known = [("ada", "lovelace"), ("john", "smith"), ("mary", "smith"), ("bank", "of", "england")]
    assert surnames(known) == {("lovelace",): ("ada", "lovelace")}


def test_particles_titles_and_generations_are_understood() -> None:
    known = [("vincent", "van", "gogh"), ("dr", "martin", "luther", "king", "jr"), ("kes", "917"), ("madonna",)]
    assert surnames(known) == {
        ("van", "gogh"): ("vincent", "van", "gogh"),
        ("gogh",): ("vincent", "van", "gogh"),
        ("king",): ("martin", "luther", "king"),
    }


def test_one_person_with_and_without_middle_names_is_one_person() -> None:
    george = ("george", "walker", "bush")
    assert surnames([("george", "bush"), george, ("george", "w", "bush")]) == {("bush",): george}
    assert surnames([george, ("george", "h", "bush")]) == {}


def test_overlap_is_twice_the_shared_weight_over_all_weight() -> None:
    idf = {"maurice": 0.8, "nassau": 0.7, "prince": 0.5, "orange": 0.6}
    # 2 * .8 / ((.8 + .7) + (.8 + .5 + .6)) = 1.6 / 3.4
    shared = overlap(("maurice", "of", "nassau"), ("maurice", "prince", "of", "orange"), idf)
    assert shared == pytest.approx(0.470588235)
    assert shared > OVERLAP_THRESHOLD
    # a common first name is not enough: 2 * .2 / ((.2 + .6) + (.2 + .7)) = .4 / 1.7
    common = overlap(("john", "smith"), ("john", "adams"), {"john": 0.2, "smith": 0.6, "adams": 0.7})
    assert common == pytest.approx(0.235294118)
    assert common < OVERLAP_THRESHOLD


def test_overlap_counts_unseen_tokens_as_the_rarest_and_connectors_as_nothing() -> None:
    assert overlap(("ada",), ("ada", "lovelace"), {"ada": 0.5}) == pytest.approx(0.5)  # 2 * .5 / (.5 + 1.5)
    assert overlap(("of", "the"), ("of", "the"), {}) == 0.0
    assert overlap((), (), {}) == 0.0


@given(NAME, NAME, st.dictionaries(WORD, st.floats(0, 1)))
def test_overlap_is_a_symmetric_share(a: tuple[str, ...], b: tuple[str, ...], idf: dict[str, float]) -> None:
    assert overlap(a, b, idf) == pytest.approx(overlap(b, a, idf))
    assert 0 <= overlap(a, b, idf) <= 1 + 1e-12
    same = overlap(a, a, idf)
    assert same == pytest.approx(1) or same == 0


def test_the_variants_of_a_name_need_no_other_name() -> None:
    assert variants(("the", "rolling", "stones")) == {("rolling", "stones"), ("rolling", "stone")}
    assert variants(("world", "health", "organization")) == {("world", "health", "organizations"), ("who",)}


@given(NAME, st.lists(NAME, max_size=5), st.text(max_size=120))
def test_any_name_and_any_text_is_survived(name: tuple[str, ...], names: list[tuple[str, ...]], text: str) -> None:
    assert name not in variants(name)
    assert () not in variants(name)
    assert all(full in names or len(full) > 1 for full in surnames(names).values())
    for long, short in acronyms(f"{text} (WHO) {text} [{text}]"):
        assert len(long) > 1
        assert short


def test_a_text_made_to_be_slow_is_not() -> None:
    assert acronyms(("a " * 5000 + "(AAAAAAAAAA) ") * 3) == []
    assert acronyms("(" * 20_000) == []
