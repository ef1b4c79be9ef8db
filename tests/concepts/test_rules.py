"""Concepts by rule: what a memory and a question are found to be about."""

from __future__ import annotations

import gc
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.concepts import names
from semmem.concepts.names import (
    initials_key,
    longest,
    past_of,
    subject_aliases,
    subject_keys,
    title_initials,
    title_is_name,
)
from semmem.concepts.rules import extract, question
from semmem.extractors import Rules
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction, Kind
from semmem.text.passages import term_key, terms
from semmem.text.tokens import key, reading

ANY = st.text(max_size=200)
PROSE = st.lists(
    st.sampled_from(
        ["Ada", "Will", "the", "The", "of", "and", "INC-211", "U.S.", ".", ". ", "x-ray", "ran", "7", "\n", "'s", ","]
    )
).map(" ".join)


def found(extraction: Extraction, kind: Kind) -> dict[str, tuple[float, float, int]]:
    """Return name -> (mention, subject, count) of one kind."""
    columns = zip(
        extraction.kinds,
        extraction.names,
        extraction.mentions,
        extraction.subjects,
        extraction.counts,
        strict=True,
    )
    return {name: (a, b, count) for k, name, a, b, count in columns if k == kind}


def spans(text: str) -> set[str]:
    return {name for name, (a, _, _) in found(extract(text), Kind.NAME).items() if a}


def name_key(*parts: str) -> int:
    return key(Kind.NAME, parts)


def test_stems_and_numbers_are_counted_with_the_title_twice() -> None:
    extraction = extract("The mill ground 12 sacks; the mills stopped.", "mill notes")
    # mill: 2 from the title, 2 from the text; note: 2; ground, sack, stop, 12: 1 each
    assert found(extraction, Kind.STEM) == {
        "mill": (0.3, 0.0, 4),
        "note": (0.3, 0.0, 2),
        "ground": (0.3, 0.0, 1),
        "sack": (0.3, 0.0, 1),
        "stop": (0.3, 0.0, 1),
    }
    assert found(extraction, Kind.TERM) == {"12": (0.0, 0.0, 1)}
    assert extraction.length == 10  # 2 * 2 + 6


def test_counts_agree_with_the_terms_of_the_lexical_leg() -> None:
    text = "Grain prices rose in 1846; Peel's friends doubted the prices."
    extraction = extract(text)
    counts = {k: n for k, n in zip(extraction.keys, extraction.counts, strict=True) if n}
    expected: dict[int, int] = {}
    for term in terms(text):
        expected[term_key(term)] = expected.get(term_key(term), 0) + 1
    assert counts == expected
    assert extraction.length == len(terms(text))


def test_bigrams_are_neighbours_once_stop_words_and_numbers_are_gone() -> None:
    extraction = extract("price of corn in 1846 fell")
    assert found(extraction, Kind.BIGRAM) == {"price corn": (0.6, 0.0, 0), "corn fell": (0.6, 0.0, 0)}


def test_a_number_makes_a_bigram_with_the_word_it_directly_follows() -> None:
    assert set(found(extract("open port 8080 today"), Kind.BIGRAM)) == {"open port", "port 8080", "port today"}


def test_bigrams_do_not_cross_from_the_title_into_the_text() -> None:
    assert set(found(extract("corn", "mill"), Kind.BIGRAM)) == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("we met Mary Shelley, Lord Byron", {"Mary Shelley", "Lord Byron"}),
        ("at the University of the Arts today", {"University of the Arts"}),
        ("by Vincent van der Meer", {"Vincent van der Meer"}),
        ("from Rome of the de Sica", {"Rome", "Sica"}),  # three connectors are too many
        ("The Hague fell. However, Leiden held.", {"Hague", "Leiden"}),
        ("They left. It rained.", set()),
        ("I told Ada and I went", {"Ada"}),
        ("seen by Dr. A. Finch and read", {"Dr. A. Finch"}),
        ("by J.R.R. Hartley", {"J.R.R. Hartley"}),
        ("he met Will Byron", {"Will Byron"}),
        ("Will Byron come?", {"Byron"}),
        ("Byron's daughter", {"Byron"}),
        ("fixed INC-211 after KES-917", {"INC-211", "KES-917"}),
        ("told Ada Low and Charles Day", {"Ada Low and Charles Day", "Ada Low", "Charles Day"}),
        ("read Ada Low\u2019s Notes", {"Ada Low\u2019s Notes", "Ada Low", "Notes"}),
        ("saw Rome in the Spring", {"Rome in the Spring", "Rome", "Spring"}),
        ("an X-ray of SHARED_MATRIX", {"X-ray of SHARED_MATRIX"}),
        ("Paris. Rome", {"Paris", "Rome"}),
        ("Paris\nRome", {"Paris", "Rome"}),
        ("Marks & Spencer", {"Marks & Spencer"}),
        ("use sharedMatrix here", {"sharedMatrix"}),
        ("WE SELL NEW AND OLD BOOKS MAPS PRINTS COINS STAMPS TOYS LAMPS DESKS CHAIRS", set()),  # a shout is no name
        ("all lower case", set()),
    ],
)
def test_capitalised_spans(text: str, names: set[str]) -> None:
    assert spans(text) == names


def test_a_name_weighs_one_and_its_key_ignores_form() -> None:
    extraction = extract("We saw ZO\u00cb  Low\u2019s boat")
    assert found(extraction, Kind.NAME) == {"ZO\u00cb Low": (1.0, 0.0, 0)}
    assert name_key("zoe", "low") in extraction.keys


def test_a_title_gives_its_aliases_with_their_weights() -> None:
    aliases = subject_aliases("Mercury Seven orbits.", "Mercury, the Planet (astronomy)")
    assert aliases == [
        (("mercury", "the", "planet", "astronomy"), "Mercury, the Planet (astronomy)", 1.0),
        (("mercury", "the", "planet"), "Mercury, the Planet", 0.9),
        (("mercury", "seven"), "Mercury Seven", 0.8),
        (("mercury",), "Mercury", 0.6),
    ]


def test_subject_keys_are_the_subjects_of_the_extraction() -> None:
    extraction = extract("Mercury Seven orbits.", "Mercury, the Planet")
    subjects = {k for k, b in zip(extraction.keys, extraction.subjects, strict=True) if b}
    assert subject_keys("Mercury Seven orbits.", "Mercury, the Planet") == subjects
    assert len(subjects) == 3


def test_the_opening_span_must_share_a_word_with_the_title() -> None:
    assert [a for a, _, _ in subject_aliases("Lord Peel spoke.", "Corn laws")] == [("corn", "laws")]


def test_a_single_word_that_opens_a_text_is_no_subject() -> None:
    assert subject_aliases("Mercury orbits.", "Mercury (planet)") == [
        (("mercury", "planet"), "Mercury (planet)", 1.0),
        (("mercury",), "Mercury (planet)".removesuffix(" (planet)"), 0.9),
    ]


def test_an_untitled_text_is_about_the_name_it_opens_with() -> None:
    assert found(extract("The Corn Mill was sold to Peel."), Kind.NAME) == {
        "Corn Mill": (1.0, 0.8, 0),
        "Peel": (1.0, 0.0, 0),
    }
    assert subject_aliases("We sold the Corn Mill.") == []


def test_a_subject_that_is_also_mentioned_carries_both_weights() -> None:
    extraction = extract("She wrote to Babbage.", "Ada Lovelace")
    assert found(extraction, Kind.NAME)["Ada Lovelace"] == (1.0, 1.0, 0)


def test_a_title_in_lower_case_is_a_subject_and_no_mention() -> None:
    assert found(extract("Prices fell.", "corn laws"), Kind.NAME)["corn laws"] == (0.0, 1.0, 0)


def named(text: str, *known: int, title: str | None = None) -> list[int]:
    """Return the keys that are the longest known names at their places in a title and a text."""
    return [at for at, _ in longest(extract(text, title).candidates, known)]


def test_the_longest_known_name_at_a_place_is_found_in_the_candidates() -> None:
    text = "they sang Let It Be in Red Lion yard number 9"
    known = (name_key("let"), name_key("let", "it", "be"), name_key("red", "lion", "yard"), name_key("yard"))
    assert named(text, *known) == [name_key("let", "it", "be"), name_key("red", "lion", "yard")]
    assert named(text, name_key("lion"), title="Red Lion") == [name_key("lion"), name_key("lion")]


def test_a_known_name_must_begin_with_a_capital() -> None:
    assert named("the red lion Yard", name_key("red", "lion"), name_key("yard")) == [name_key("yard")]


def test_candidates_are_runs_that_begin_with_a_capital_and_their_places() -> None:
    wanted = [(("peel",), 0), (("lord",), 24), (("lord", "of", "ash"), 26), (("ash",), 40), (("ash", "run"), 41)]
    found = extract("we saw Lord of Ash run", "Peel").candidates
    assert found == tuple((name_key(*parts), at) for parts, at in wanted)
    assert past_of(26) == 6  # the three tokens from the fourth on, which is the third of the text


def test_a_stop_word_begins_a_candidate_only_before_another_capital() -> None:
    assert name_key("the", "who") in dict(extract("They heard The Who.").candidates)
    assert name_key("the", "band") not in dict(extract("They left. The band played.").candidates)


def test_candidates_stay_within_a_sentence() -> None:
    assert name_key("ash", "peel") not in dict(extract("by Ash. Peel ran").candidates)
    assert name_key("maurice", "prince", "of", "orange") in dict(extract("by Maurice, Prince of Orange").candidates)


def test_candidates_beyond_the_last_place_that_can_be_written_are_left_out() -> None:
    late = extract("so " * 8_191 + "Ada met Bob").candidates
    assert late == ((name_key("ada"), 65_528),)


def test_a_memory_mentions_the_name_that_it_is_about_itself() -> None:
    assert found(extract("The Kelmar orogeny ended.", "Kelmar orogeny"), Kind.NAME)["Kelmar orogeny"] == (1.0, 1.0, 0)


@pytest.mark.parametrize(
    ("title", "is_name"),
    [
        ("Ada Lovelace", True),
        ("Battle of the Somme", True),
        ("Mercury (planet)", True),
        ("Apollo 11", True),
        ("History of radio", False),
        ("1843", False),
        ("", False),
    ],
)
def test_a_title_is_a_name_if_its_content_words_have_capitals(title: str, is_name: bool) -> None:
    assert title_is_name(title) is is_name


def test_a_question_gives_its_spans_without_question_words() -> None:
    read = question("Who is the mother of Ada Lovelace and where did The Byron Club meet?")
    assert [(s.label, s.tokens) for s in read.spans] == [
        ("Ada Lovelace", ("ada", "lovelace")),
        ("Byron Club", ("byron", "club")),
    ]


def test_a_question_gives_concepts_of_every_kind_with_weights() -> None:
    read = question("Where did Ada live in 1843?")
    concepts = {
        label: (kind, weight) for label, kind, weight in zip(read.labels, read.kinds, read.weights, strict=True)
    }
    assert concepts == {
        "Ada": (Kind.NAME, 1.0),
        "ada": (Kind.STEM, 0.3),
        "live": (Kind.STEM, 0.3),
        "ada live": (Kind.BIGRAM, 0.6),
    }
    assert list(read.keys) == sorted(read.keys)


def test_a_question_gives_every_run_that_may_name_a_subject_longest_first() -> None:
    read = question("did ada love")
    assert [n.tokens for n in read.names] == [
        ("did", "ada", "love"),
        ("did", "ada"),
        ("ada", "love"),
        ("ada",),
        ("love",),
    ]
    assert not any(n.capitalised or n.span for n in read.names)
    assert read.names[2].key == name_key("ada", "love")
    assert (read.names[2].start, read.names[2].end, read.names[2].size) == (4, 12, 2)


def test_a_run_of_a_question_knows_whether_it_has_capitals() -> None:
    by_tokens = {n.tokens: n for n in question("was Ada of Kent king").names}
    assert by_tokens["ada", "of", "kent"].capitalised
    assert by_tokens["ada", "of", "kent"].span
    assert by_tokens["kent",].capitalised
    assert not by_tokens["kent",].span
    assert not by_tokens["kent", "king"].capitalised


def test_runs_have_eight_tokens_at_most_and_long_questions_a_bounded_number() -> None:
    read = question("pad " * 5_000)
    assert max(n.size for n in read.names) == 8
    assert len(read.names) == 8 * 128 - 28  # 128 starts, less the 7 + 6 + ... + 1 that would run past the end


def test_the_same_text_gives_the_same_extraction_in_any_order() -> None:
    texts = [f"Unit {i} of Ada Lovelace met Byron{i}, port {i}." for i in range(50)]
    forward = {text: extract(text, "Log") for text in texts}
    random.Random(7).shuffle(texts)
    assert {text: extract(text, "Log") for text in texts} == forward


def test_rules_is_an_extractor_in_a_language() -> None:
    rules = Rules()
    assert (rules.name, rules.version) == ("rules", "3")
    assert rules.extract("Ada ran", "Log") == extract("Ada ran", "Log")
    assert found(Rules("french").extract("chevaux"), Kind.STEM).keys() == {"cheval"}
    with pytest.raises(InvalidInput, match="english"):
        Rules("klingon")


def test_nothing_in_gives_nothing_out() -> None:
    assert extract("", "") == Extraction((), (), (), (), (), (), 0)
    assert extract("...", "!!!").keys == ()
    assert question("").names == ()


@given(PROSE | ANY, st.none() | ANY | PROSE)
def test_any_text_gives_a_well_formed_extraction(text: str, title: str | None) -> None:
    extraction = extract(text, title)
    places = [place for _, place in extraction.candidates]
    assert places == sorted(places)
    assert extraction.keys == tuple(sorted(set(extraction.keys)))
    columns = (
        extraction.kinds,
        extraction.names,
        extraction.mentions,
        extraction.subjects,
        extraction.counts,
    )
    assert {len(c) for c in columns} == {len(extraction.keys)}
    assert all(name and "\x00" not in name and len(name) <= 200 for name in extraction.names)
    assert all(0 <= a <= 1 and 0 <= b <= 1 for a, b in zip(extraction.mentions, extraction.subjects, strict=True))
    counted = [kind in (Kind.TERM, Kind.STEM) for kind in extraction.kinds]
    assert [count > 0 for count in extraction.counts] == counted
    assert sum(extraction.counts) == extraction.length
    read = question(text)
    assert {s.key for s in read.spans} <= set(read.keys)
    assert all(text[n.start : n.end] for n in read.names)


def test_the_acronym_that_a_text_explains_is_a_name_of_its_subject() -> None:
    found = subject_aliases("The World Meteorological Organization (WMO) met.", "World Meteorological Organization")
    assert [(parts, weight) for parts, _, weight in found[:2]] == [
        (("world", "meteorological", "organization"), 1.0),
        (("wmo",), 0.7),
    ]
    # explained, but not of what this memory is about; and one that every "Who" would be taken for
    assert [p for p, _, _ in subject_aliases("It joined the Bank of England (BoE).", "Threadneedle Street")] == [
        ("threadneedle", "street")
    ]
    health = subject_aliases("World Health Organization (WHO)", "World Health Organization")
    assert ("who",) not in [parts for parts, _, _ in health]


def test_the_initials_of_a_title_are_kept_and_are_no_name_that_a_text_can_mention() -> None:
    assert title_initials("North Atlantic Treaty Organization (alliance)") == {"nato"}
    assert title_initials("The Bank of England") == {"boe"}  # with its connector; "be" is too short
    assert title_initials("Notes on the north side") == set()  # a description
    titled = extract("x", "North Atlantic Treaty Organization")
    assert (0.0, 0.0) in {
        (a, b)
        for k, a, b in zip(titled.keys, titled.mentions, titled.subjects, strict=True)
        if k == initials_key("nato")
    }
    told = extract("NATO met. Nato met.")
    assert initials_key("nato") not in {*told.keys, *dict(told.candidates)}


def test_what_is_kept_of_texts_is_bounded_by_their_characters() -> None:
    for work in (reading,):
        read = names._Cached(work, most=1_000)
        whole = [read(f"Ada met Bob {n} " * 10) for n in range(100)]
        assert 800 < read.chars <= 1_000
        assert read("Ada met Bob 99 " * 10) is whole[99]
        assert read("Ada met Bob 1 " * 10) is not whole[1]
        assert read("Ada met Bob 1 " * 10) == whole[1]
        before = read.chars
        assert read("Ada " * 1_000) == work("Ada " * 1_000, "english")  # longer than all may be together
        assert read.chars == before
    assert names.read.most == 2_000_000


def test_the_garbage_collector_does_not_visit_what_a_batch_keeps_of_its_texts() -> None:
    found = extract("Ada Lovelace met Bob Ash in room 7. Über den Wolken.", "Ada")
    one, other = reading("Ada met Bob."), reading("Über den Wolken.")
    numbers = tuple(range(2))
    gc.collect()
    gc.collect()  # first the tuples in a tuple, then it
    if gc.is_tracked(numbers):
        pytest.skip("this Python visits tuples of numbers")
    columns = (found.keys, found.kinds, found.names, found.mentions, found.subjects, found.counts, found.candidates)
    assert all(columns)
    assert not any(map(gc.is_tracked, columns))
    assert not any(gc.is_tracked(column) for read in (one, other) for column in read[1:])
