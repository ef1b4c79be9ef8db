"""What made the parts, concepts and keys of memories: versions compared, marks of spans of ords."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.model.exchange import Maker
from semmem.model.store.makers import MOST_MARKS, Span, made_again, maker_of, marked, spans, stale

NOW = Maker(2, 3, "rules", "2.10")
ALL = frozenset(("splitter", "likeness", "extractor"))


@pytest.mark.parametrize(
    ("maker", "what"),
    [
        (NOW, ()),
        (Maker(1, 3, "rules", "2.10"), ("splitter",)),
        (Maker(2, 2, "rules", "2.9"), ("likeness", "extractor")),
        (Maker(3, 4, "rules", "10"), ()),
        (Maker(2, 3, "llm", "1"), ()),
        (Maker(2, 3, "rules", "of June"), ()),
        (Maker(2, 3, "rules", ""), ()),
        (Maker(), ALL),
    ],
)
def test_what_is_stale_is_of_an_older_version_and_not_of_another_extractor(maker: Maker, what: tuple[str, ...]) -> None:
    assert stale(maker, NOW) == frozenset(what)
    assert stale(made_again(maker, NOW), NOW) == frozenset()


def test_a_maker_comes_back_from_its_text_and_any_other_text_is_of_nobody_known() -> None:
    assert NOW.text == "2 3 2.10 rules"
    for maker in (NOW, Maker(1, 1, "a name of words", "of_June"), Maker(1, 2, "rules", "")):
        assert maker_of(maker.text) == maker
    assert [maker_of(text) for text in ("", "rules", "1 x 2 rules")] == [Maker()] * 3
    assert made_again(Maker(1, 4, "llm", "7"), NOW) == Maker(2, 4, "llm", "7")


def test_what_is_before_the_first_mark_counts_to_it_and_what_is_behind_the_last_ord_to_nobody() -> None:
    marks = [(5, NOW.text), (9, "1 1 2 rules"), (20, NOW.text)]
    assert spans(marks, 12) == [Span(0, 8, NOW), Span(8, 12, Maker(1, 1, "rules", "2"))]
    assert spans([], 12) == spans(marks, 0) == []


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12), st.integers(1, 4)), max_size=12),
    st.integers(1, 14),
)
def test_marks_say_of_each_ord_what_was_recorded_last(given: list[tuple[int, int, int]], last: int) -> None:
    makers = [Maker(1, 1, "rules", str(n)) for n in range(5)]
    marks = [(1, makers[0].text)]
    known = dict.fromkeys(range(1, 40), makers[0])
    for after, size, which in given:
        upto = min(after + size, last)
        if after < upto:
            marks = marked(marks, Span(after, upto, makers[which]), last)
            known |= dict.fromkeys(range(after + 1, upto + 1), makers[which])
            firsts = [first for first, _ in marks]
            assert firsts == sorted(set(firsts))
            assert all(one[1] != other[1] for one, other in pairwise(marks))
    found = {ord: span.maker for span in spans(marks, last) for ord in range(span.after + 1, span.upto + 1)}
    assert found == {ord: known[ord] for ord in range(1, last + 1)}


def test_of_too_many_marks_the_last_one_stays_and_all_before_it_are_of_nobody_known() -> None:
    marks = [(1 + n, Maker(n % 2, 1, "rules", "2").text) for n in range(MOST_MARKS)]
    full = marked(marks, Span(40, 41, NOW), 41)
    assert full == [(1, ""), (41, NOW.text)]
