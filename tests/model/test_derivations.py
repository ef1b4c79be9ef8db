"""What made the parts, concepts and keys of memories: versions compared, marks of spans of row ids."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.model.exchange import DerivationVersion
from semmem.model.store.derivations import MOST_MARKS, Span, derivation_of, made_again, marked, spans, stale

NOW = DerivationVersion(2, 3, "rules", "2.10")
ALL = frozenset(("splitter", "likeness", "extractor"))


@pytest.mark.parametrize(
    ("derivation", "what"),
    [
        (NOW, ()),
        (DerivationVersion(1, 3, "rules", "2.10"), ("splitter",)),
        (DerivationVersion(2, 2, "rules", "2.9"), ("likeness", "extractor")),
        (DerivationVersion(3, 4, "rules", "10"), ()),
        (DerivationVersion(2, 3, "llm", "1"), ()),
        (DerivationVersion(2, 3, "rules", "of June"), ()),
        (DerivationVersion(2, 3, "rules", ""), ()),
        (DerivationVersion(), ALL),
    ],
)
def test_what_is_stale_is_of_an_older_version_and_not_of_another_extractor(
    derivation: DerivationVersion, what: tuple[str, ...]
) -> None:
    assert stale(derivation, NOW) == frozenset(what)
    assert stale(made_again(derivation, NOW), NOW) == frozenset()


def test_a_maker_comes_back_from_its_text_and_any_other_text_is_of_nobody_known() -> None:
    assert NOW.text == "2 3 2.10 rules"
    for derivation in (
        NOW,
        DerivationVersion(1, 1, "a name of words", "of_June"),
        DerivationVersion(1, 2, "rules", ""),
    ):
        assert derivation_of(derivation.text) == derivation
    assert [derivation_of(text) for text in ("", "rules", "1 x 2 rules")] == [DerivationVersion()] * 3
    assert made_again(DerivationVersion(1, 4, "llm", "7"), NOW) == DerivationVersion(2, 4, "llm", "7")


def test_what_is_before_the_first_mark_counts_to_it_and_what_is_behind_the_last_row_id_to_nobody() -> None:
    marks = [(5, NOW.text), (9, "1 1 2 rules"), (20, NOW.text)]
    assert spans(marks, 12) == [Span(0, 8, NOW), Span(8, 12, DerivationVersion(1, 1, "rules", "2"))]
    assert spans([], 12) == spans(marks, 0) == []


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12), st.integers(1, 4)), max_size=12),
    st.integers(1, 14),
)
def test_marks_say_of_each_row_id_what_was_recorded_last(given: list[tuple[int, int, int]], last: int) -> None:
    derivations = [DerivationVersion(1, 1, "rules", str(n)) for n in range(5)]
    marks = [(1, derivations[0].text)]
    known = dict.fromkeys(range(1, 40), derivations[0])
    for after, size, which in given:
        upto = min(after + size, last)
        if after < upto:
            marks = marked(marks, Span(after, upto, derivations[which]), last)
            known |= dict.fromkeys(range(after + 1, upto + 1), derivations[which])
            firsts = [first for first, _ in marks]
            assert firsts == sorted(set(firsts))
            assert all(one[1] != other[1] for one, other in pairwise(marks))
    found = {row_id: span.derivation for span in spans(marks, last) for row_id in range(span.after + 1, span.upto + 1)}
    assert found == {row_id: known[row_id] for row_id in range(1, last + 1)}


def test_of_too_many_marks_the_last_one_stays_and_all_before_it_are_of_nobody_known() -> None:
    marks = [(1 + n, DerivationVersion(n % 2, 1, "rules", "2").text) for n in range(MOST_MARKS)]
    full = marked(marks, Span(40, 41, NOW), 41)
    assert full == [(1, ""), (41, NOW.text)]
