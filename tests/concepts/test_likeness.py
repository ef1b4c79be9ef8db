"""By what alike texts are found: keys of what is said of whom, and a sketch of the text."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.concepts.claims import change
from semmem.concepts.likeness import ALIKE, changed, claim_keys, may_be_alike, outlines, resemblance, sketches

HERE = Path(__file__).parent
PAIRS = [
    json.loads(line)
    for name in ("changes.jsonl", "changes_by_others.jsonl")
    for line in (HERE / name).read_text(encoding="utf-8").splitlines()
]
TEXT = "One two three four five six seven eight nine ten eleven twelve."


def test_every_change_is_found_by_a_key_and_the_quick_look_says_what_the_long_one_does() -> None:
    for pair in PAIRS:
        long = change(pair["older"], pair["newer"], older_author="Kim", newer_author="Kim")
        old, new = outlines(pair["older"], "Kim"), outlines(pair["newer"], "Kim")
        assert changed(old, new, older_author="Kim", newer_author="Kim") == long
        assert long is None or {*claim_keys(pair["older"], "Kim")} & {*claim_keys(pair["newer"], "Kim")}


def test_a_question_and_a_call_say_nothing() -> None:
    assert claim_keys("Does Ana live in Lisbon? Thanks, Ana!") == []


def test_the_keys_of_a_text_are_few_whatever_its_length() -> None:
    text = " ".join(f"The {a}ter of the {b}per is in the {a}{b} hall of Lisbon." for a in "abcdefg" for b in "mnopq")
    assert len(claim_keys(text)) == 16


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        (TEXT, TEXT.upper(), 1.0),
        (TEXT, TEXT.replace("twelve", "twenty"), 9 / 11),
        (TEXT, TEXT.replace("six", "sixty"), 7 / 13),
        ("One two three four.", "One two three four.", 0.0),
        (TEXT, "Nothing of all that is in here, truly.", 0.0),
    ],
)
def test_the_resemblance_of_two_texts_is_their_share_of_common_runs(one: str, other: str, share: float) -> None:
    assert resemblance(one, other) == pytest.approx(share)


def test_texts_that_are_alike_have_a_band_in_common_and_others_none() -> None:
    first, same, near, other = (
        set(keys) for keys in sketches([TEXT, TEXT.lower(), TEXT + " Thirteen.", "A b c d e f g h i j k l m."])
    )
    assert first == same
    assert resemblance(TEXT, TEXT + " Thirteen.") >= ALIKE
    assert first & near
    assert not first & other
    assert sketches(["Too short to tell.", ""]) == [[], []]


@pytest.mark.parametrize(
    ("other", "possible"),
    [
        (TEXT.upper(), True),
        (TEXT.replace("three", "3"), True),  # of ten runs three are missing, as many as .7 allows
        (TEXT.replace("three", "3").replace("nine", "9"), False),  # six are
        ("threesixnine", True),  # looked for within words, so this is no proof
    ],
)
def test_a_text_that_lacks_too_many_words_of_another_is_not_compared_run_by_run(other: str, possible: bool) -> None:
    assert may_be_alike(TEXT, other) is possible


_FEW_WORDS = st.lists(st.sampled_from(["ab", "abc", "c", "DE", "ß", "İ", "fin"]), max_size=14).map(" ".join)


@given(_FEW_WORDS, _FEW_WORDS, st.integers(0, 3))
def test_near_duplicates_are_always_compared_run_by_run(start: str, end: str, without: int) -> None:
    one, other = f"{start} {TEXT} {end}", f"{start} {TEXT[without:]} {end.swapcase()}"
    assert may_be_alike(one, other) or resemblance(one, other) < ALIKE
    assert may_be_alike(start, end) or resemblance(start, end) < ALIKE


@given(st.lists(st.text(max_size=80), max_size=5))
def test_any_texts_can_be_read(texts: list[str]) -> None:
    assert [len(keys) for keys in sketches(texts)] == [5 * bool(sketches([text])[0]) for text in texts]
    for text in texts:
        assert all(-(2**63) <= key < 2**63 for key in claim_keys(text, "Ana"))
        assert 0 <= resemblance(text, text) <= 1


def test_the_garbage_collector_does_not_visit_outlines() -> None:
    some = outlines("The build takes 9 minutes. Ana lives in Oslo.", "Ana")
    numbers = tuple(range(2))
    gc.collect()
    gc.collect()  # first the tuples in a tuple, then it
    if gc.is_tracked(numbers):
        pytest.skip("this Python visits tuples of numbers")
    assert len(some) == 2
    assert not any(map(gc.is_tracked, some))
