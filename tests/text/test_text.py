"""What text becomes before any leg sees it."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.model.errors import InvalidInput
from semmem.model.exchange import Kind
from semmem.text import passages as t
from semmem.text import tokens

ANY = st.text(max_size=300)
PROSE = st.text(alphabet="ab cd.?!\n\n'\u00e9\u6771", max_size=400)


@pytest.mark.parametrize(
    ("token", "folded"),
    [
        ("Caf\u00e9", "cafe"),
        ("Ada's", "ada"),
        ("Ada\u2019s", "ada"),
        ("U.S.", "us"),
        ("don't", "dont"),
        ("STRASSE", "strasse"),
        ("Stra\u00dfe", "strasse"),
        ("v2.3.1", "v2.3.1"),
        ("1,000", "1000"),
        ("\ud55c\uad6d\uc5b4", "\ud55c\uad6d\uc5b4"),
        ("\u304c", "\u304c"),
        ("", ""),
        ("...", ""),
    ],
)
def test_a_token_is_folded(token: str, folded: str) -> None:
    assert tokens.fold(token) == folded


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("INC-211 and KES-917", ["inc", "211", "and", "kes", "917"]),
        ("shared_matrix in crates/planner", ["shared", "matrix", "in", "crates", "planner"]),
        ("geo-resolver v2.3.1 costs 2.5", ["geo", "resolver", "v2.3.1", "costs", "2.5"]),
        ("1,000 or 1,2", ["1000", "or", "1", "2"]),
        ("the U.S. and J.R.R. Tolkien", ["the", "us", "and", "jrr", "tolkien"]),
        ("AT&T a&b", ["att", "a", "b"]),
        ("e\u0301te\u0301", ["ete"]),
        ("end.Start", ["end", "start"]),
        ("\u6771\u4eac\u30bf\u30ef\u30fc cat", ["\u6771\u4eac", "\u4eac\u30bf", "\u30bf\u30ef", "\u30ef\u30fc", "cat"]),
        ("\u732b", ["\u732b"]),
        ("a\x00b", ["a", "b"]),
        ("\U0001f642 '' & | ! ()", []),
    ],
)
def test_text_is_read_as_words(written: str, read: list[str]) -> None:
    assert [word for word, _, _ in tokens.words(written)] == read


def test_words_know_where_they_stand() -> None:
    assert tokens.words("Ada's  INC-211") == [("ada", 0, 5), ("inc", 7, 10), ("211", 11, 14)]


def test_terms_are_stemmed_without_stop_words_and_keep_numbers() -> None:
    assert t.terms("The engines were running in 1843, weren't they?") == ["engin", "run", "1843"]


def test_question_words_and_contractions_are_stop_words() -> None:
    assert t.terms("Who said what, when and why? I'll ask; they won't, we're sure it's fine") == [
        "said",
        "ask",
        "sure",
        "fine",
    ]


def test_a_word_that_only_looks_like_a_contraction_is_kept() -> None:
    assert t.terms("she was ill near the shell") == ["ill", "near", "shell"]


def test_an_acronym_is_not_the_stop_word_it_is_spelled_like() -> None:
    assert t.terms("us and the US and the U.S.") == ["us", "us"]


def test_another_language_has_its_own_stemmer_and_keeps_its_accents_until_then() -> None:
    assert t.terms("H\u00e4user", "german") == ["haus"]
    assert t.terms("the houses", "german")[0] == "the"  # no English stop words elsewhere


def test_an_unknown_language_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(InvalidInput, match="english"):
        t.terms("x", "klingon")


def test_stop_words_are_written_as_they_are_compared() -> None:
    english = tokens.stop_words("english")
    assert 150 <= len(english) <= 190
    assert all(tokens.fold(word) == word for word in english)


def test_a_key_depends_on_kind_and_on_where_tokens_part() -> None:
    keys = {tokens.key(kind, parts) for kind in Kind for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"))}
    assert len(keys) == 16
    assert all(-(2**63) <= k < 2**63 for k in keys)


def test_a_key_never_changes_since_stores_hold_it() -> None:
    assert tokens.key(Kind.STEM, ("engin",)) == KEY_OF_ENGIN
    assert t.term_key("engin") == KEY_OF_ENGIN
    assert t.term_key("1843") == tokens.key(Kind.TERM, ("1843",))


KEY_OF_ENGIN = -6192924931102531194  # blake2b("1\x1fengin", 8 bytes), little-endian, signed


def test_what_terms_and_words_say_of_a_token_agrees() -> None:
    for word, _, _ in tokens.tokens("Engines ran 2.5 miles to Z\u00fcrich"):
        assert word.key == t.term_key(word.stem)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello  World", " hello\nworld "),
        ("It rains.", "it rains"),
        ("\uff21\uff22", "ab"),
        ("Stra\u00dfe!", "STRASSE"),
    ],
)
def test_texts_that_differ_in_form_only_have_one_content_key(one: str, other: str) -> None:
    assert t.content_key(one) == t.content_key(other)
    assert len(t.content_key(one)) == 16


@pytest.mark.parametrize(("one", "other"), [("a b", "ab"), ("2.5", "25"), ("!", "?"), ("caf\u00e9", "cafe")])
def test_texts_that_differ_in_content_have_two_content_keys(one: str, other: str) -> None:
    assert t.content_key(one) != t.content_key(other)


def test_quoted_phrases_are_taken_out_of_a_query() -> None:
    assert t.phrases('who said "red  herring" to \u201cMr Fox\u201d?') == (["red herring", "Mr Fox"], "who said to ?")


def test_an_unpaired_or_empty_quote_is_no_phrase() -> None:
    assert t.phrases('5" pipe') == ([], '5" pipe')
    assert t.phrases('""') == ([], "")


def test_sentences_end_at_stops_and_lines_but_not_after_abbreviations() -> None:
    written = 'Dr. Low met J. Day, e.g. twice. Why? "So." It cost 2.5.\nNew line \u4eca\u65e5\u3002\u660e\u65e5'
    assert t.sentences(written) == [
        "Dr. Low met J. Day, e.g. twice.",
        "Why?",
        '"So."',
        "It cost 2.5.",
        "New line \u4eca\u65e5\u3002",
        "\u660e\u65e5",
    ]


def test_the_snippet_is_the_sentence_with_most_distinct_query_terms() -> None:
    written = "A hen, a hen, a hen. The red hen sat. Red hens ran."
    assert t.snippet(written, t.terms("red hen")) == ("The red hen sat.", ((4, 7), (8, 11)))


@given(st.lists(st.sampled_from(["hens", "Hen", "the", "red", "na\u00efve", "sat", "."]), max_size=12))
def test_the_places_of_stems_are_those_of_the_tokens_that_have_them(words: list[str]) -> None:
    text, wanted = " ".join(words), {"hen", "naiv", "the"}
    whole = [(w.stem, start, end) for w, start, end in tokens.tokens(text) if not w.stop and w.stem in wanted]
    assert tokens.places(text, wanted) == whole


@pytest.mark.parametrize("language", sorted(tokens._SAME_FIRST_LETTER))
@given(text=st.text(alphabet="ABIYSTaeiouylstdingskr'.&,19 ", max_size=60))
def test_an_english_stem_begins_with_the_letter_of_its_word(language: str, text: str) -> None:
    found = [word for word, _, _ in tokens.tokens(text, language)]
    assert [word.stem[0] for word in found] == [word.surface[0].lower() for word in found]


def test_a_sentence_behind_the_last_match_is_not_the_snippet() -> None:
    assert t.snippet("None here. A red hen. Nothing more. At all.", ["hen"]) == ("A red hen.", ((6, 9),))


def test_without_a_match_the_snippet_is_the_first_sentence() -> None:
    assert t.snippet("One. Two.", ["zebra"]) == ("One.", ())


def test_a_long_sentence_is_cut_around_its_match() -> None:
    shown, matches = t.snippet("pad " * 200 + "zebra" + " pad" * 200, ["zebra"])
    assert len(shown) <= 300
    assert [shown[start:end] for start, end in matches] == ["zebra"]


def test_a_text_within_the_limits_is_returned_as_it_is() -> None:
    assert t.split("  one \n") == ["  one \n"]
    assert t.split("one two", max_tokens=2, count_tokens=lambda s: len(s.split())) == ["one two"]


def test_parts_end_at_paragraphs_then_sentences_then_words() -> None:
    assert t.split("One two.\n\nThree four.", max_chars=12) == ["One two.", "Three four."]
    assert t.split("One two. Three four.", max_chars=12) == ["One two.", "Three four."]
    assert t.split("alpha beta gamma", max_chars=12) == ["alpha beta", "gamma"]
    assert t.split("abcdefgh", max_chars=3) == ["abc", "def", "gh"]


def test_parts_keep_the_token_limit_too() -> None:
    parts = t.split("a b c d e f g", max_tokens=3, count_tokens=lambda s: len(s.split()))
    assert " ".join(parts) == "a b c d e f g"
    assert max(len(p.split()) for p in parts) <= 3


def test_a_counter_that_is_never_satisfied_ends_in_single_characters() -> None:
    assert t.split("abc", max_tokens=1, count_tokens=lambda s: 9) == ["a", "b", "c"]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match="raise the limit"):
        t.split("x", max_chars=0)


@given(PROSE | ANY, st.integers(1, 60), st.integers(1, 9))
def test_splitting_loses_no_text_and_keeps_both_limits(written: str, chars: int, most: int) -> None:
    def count(part: str) -> int:
        return len(re.findall(r"\S{1,4}", part))

    parts = t.split(written, max_chars=chars, max_tokens=most, count_tokens=count)
    assert "".join("".join(parts).split()) == "".join(written.split())
    assert all(len(p) <= chars and count(p) <= most for p in parts if p.strip())


@given(ANY)
def test_any_text_is_safe(written: str) -> None:
    spans = [(start, end) for _, start, end in tokens.words(written)]
    assert all(0 <= start < end <= len(written) for start, end in spans)
    assert spans == sorted(spans)
    assert all(term and "\x00" not in term for term in t.terms(written))
    assert tokens.vocabulary(written) == [word for word, _, _ in tokens.tokens(written)]
    t.phrases(written)
    shown, matches = t.snippet(written, t.terms(written)[:3], max_chars=20)
    assert shown in written
    assert all(0 <= start < end <= len(shown) for start, end in matches)
    assert t.content_key(t.normalise(written)) == t.content_key(written)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=200))
def test_ascii_is_read_the_same_beside_other_scripts(written: str) -> None:
    assert tokens.words(written) == tokens.words(written + " \u00e9")[:-1]


@given(ANY)
def test_folding_twice_changes_nothing(written: str) -> None:
    for word, _, _ in tokens.words(written):
        assert tokens.fold(word) == word


def test_a_lone_surrogate_is_safe() -> None:
    assert t.terms("a\ud800 fox") == ["fox"]
    assert len(t.content_key("\ud800")) == 16


def test_a_very_long_word_and_many_quotes_are_safe() -> None:
    assert len(t.terms("x" * 10_000)[0]) <= 100
    assert t.phrases('"' * 10_001) == ([], '"')


def test_threads_get_the_same_stems() -> None:
    written = " ".join(f"running{i} engines{i}ing" for i in range(300))
    expected = [tokens.stem(w) for w in written.split()]
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(t.terms(written))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


@given(PROSE | ANY | st.text(alphabet="aB1 .,'&-\n", max_size=80))
def test_tokens_and_what_is_between_them_stand_in_the_text_one_behind_the_other(text: str) -> None:
    found = tokens.reading(text)
    at = 0
    for word, start, end, gap in zip(*found, strict=True):
        assert text[at:start] == gap
        assert text[start:end] == word.surface
        assert start < end
        at = end


def test_where_tokens_stand_is_known_in_plain_and_in_other_texts() -> None:
    plain = [(word.surface, start, end) for word, start, end in tokens.tokens("U.S. law, 2.5 to Ada's")]
    assert plain == [
        ("U.S", 0, 3), ("law", 5, 8), ("2.5", 10, 13), ("to", 14, 16), ("Ada's", 17, 22),
    ]  # fmt: skip
    other = tokens.reading("Caf\u00e9 \u6771\u4eac\u90fd, 7")
    assert [word.surface for word in other.words] == ["Caf\u00e9", "\u6771\u4eac", "\u4eac\u90fd", "7"]
    assert (other.starts, other.ends) == ((0, 5, 6, 10), (4, 7, 8, 11))
    assert other.gaps == ("", " ", "", ", ")
