"""What a memory mentions changes with the known names only where it is said that it may."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import event, given, settings

from semmem.concepts.mentions import may_change
from semmem.concepts.names import alias_candidates
from semmem.concepts.rules import extract
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key

WORDS = ("Ada", "ada", "Byron", "byron", "Hall", "hall", "of", "the", "The", "Ada's", "1842", "saw.", "and", "Byron,")
NAMES = st.sampled_from(
    [("ada",), ("byron",), ("hall",), ("ada", "byron"), ("ada", "hall"), ("byron", "hall"), ("hall", "of", "byron"),
     ("ada", "byron", "hall"), ("the", "hall"), ("ada", "1842"), ("byron", "ada"), ("ada", "and", "byron")]
)  # fmt: skip
ADA, HALL, ADA_HALL = ("ada",), ("hall",), ("ada", "hall")


def keyed(*names: tuple[str, ...]) -> dict[int, frozenset[str]]:
    """Return names as keys, with their words."""
    return {key(Kind.NAME, name): frozenset(name) for name in names}


def mentioned(extraction: Extraction) -> set[int]:
    rows = zip(extraction.keys, extraction.kinds, extraction.mentions, strict=True)
    return {at for at, kind, weight in rows if kind == Kind.NAME and weight > 0}


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join),
    st.none() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    st.lists(NAMES, max_size=4),
    st.lists(NAMES, max_size=3),
    st.lists(NAMES, max_size=1),
)
def test_names_that_may_change_nothing_change_nothing(
    text: str,
    title: str | None,
    staying: list[tuple[str, ...]],
    coming: list[tuple[str, ...]],
    going: list[tuple[str, ...]],
) -> None:
    came, gone = keyed(*coming), keyed(*going)
    before = keyed(*staying).keys() | gone.keys()
    now = (keyed(*staying).keys() - gone.keys()) | came.keys()
    waiting = came.keys() | gone.keys()
    stored, anew = extract(text, title, known=before), extract(text, title, known=now)
    held, spelled = mentioned(stored), alias_candidates(text, title)
    same = mentioned(anew) == held
    if spelled & waiting <= held and not may_change(held, keyed(*staying, *coming, *going), waiting, waiting - now):
        assert same
        event("left alone" if held & waiting else "names nothing")
    else:
        event("left alone in vain" if same else "changes")


def test_a_name_that_came_changes_nothing_where_it_is_mentioned_anyway() -> None:
    words = keyed(ADA, ("byron", "hall"))
    assert not may_change(list(words), words, keyed(ADA).keys(), ())


def test_a_name_that_shares_a_word_with_another_known_name_may_take_its_place() -> None:
    words = keyed(ADA, ADA_HALL)
    assert may_change(list(words), words, keyed(ADA_HALL).keys(), ())
    assert not may_change(list(words), keyed(ADA_HALL), keyed(ADA_HALL).keys(), ())  # the other one is not known
    assert not may_change(list(words), words, keyed(HALL).keys(), ())  # neither of them came


def test_a_name_that_went_may_be_mentioned_no_longer() -> None:
    words = keyed(ADA)
    assert may_change(list(words), words, list(words), list(words))


def test_a_name_that_is_not_known_whole_may_share_a_word_with_any_other() -> None:
    words = keyed(ADA, HALL)
    cut = {**words, key(Kind.NAME, HALL): frozenset[str]()}
    assert not may_change(list(words), words, keyed(ADA).keys(), ())
    assert may_change(list(words), cut, keyed(ADA).keys(), ())
    assert may_change(list(words), cut, keyed(HALL).keys(), ())
