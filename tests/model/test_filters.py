"""Which memories match filters, by the rules that every store has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from semmem.model.errors import InvalidInput
from semmem.model.filters import checked_filters, contains, filters_of, matches, within
from semmem.model.types import Filters, Memory

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)


def test_a_filter_that_is_false_narrows_and_one_that_is_not_given_does_not() -> None:
    assert filters_of({"sensitive": False}) == {"sensitive": False}
    assert filters_of({"tags": None}) == {}
    assert checked_filters(Filters(sensitive=False)) == Filters(sensitive=False)


def test_a_range_of_times_has_its_beginning_and_not_its_end() -> None:
    memory = Memory("a", "n", "text", created_at=NOON)
    assert matches(memory, within(Filters(created_after=NOON), ["n"]))
    assert not matches(memory, within(Filters(created_before=NOON), ["n"]))


def test_a_part_of_a_memory_that_is_left_out_does_not_match() -> None:
    part = Memory("a#1", "n", "text", parent_id="a")
    assert matches(part, within(Filters(), ["n"]))
    assert not matches(part, within(Filters(), ["n"], exclude=["a"]))


def test_true_in_metadata_is_not_the_number_one() -> None:
    assert contains({"done": True}, {"done": True})
    assert not contains({"done": 1}, {"done": True})
    assert not contains({"done": True}, {"done": 1})
    assert contains({"count": 1}, {"count": 1.0})


def test_a_value_whose_keys_are_only_partly_operators_is_matched_as_it_is() -> None:
    assert checked_filters({"metadata": {"size": {"gt": 3, "unit": "m"}}}).metadata == {"size": {"gt": 3, "unit": "m"}}
    with pytest.raises(InvalidInput, match="knows no operators such as gt"):
        checked_filters({"metadata": {"size": {"gt": 3, "lt": 5}}})
