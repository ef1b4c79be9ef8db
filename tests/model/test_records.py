"""Records of structured arrays, chosen and joined as bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semmem.model.records import chosen, concatenated

KIND = np.dtype([("key", "<i8"), ("count", "<u2"), ("pad", "V3")])


def records(count: int) -> np.ndarray:
    made = np.zeros(count, KIND)
    made["key"], made["count"] = np.arange(count) - 2, np.arange(count) + 7
    return made


@given(st.integers(0, 9), st.data())
def test_records_are_chosen_by_places_a_mask_or_a_slice_as_by_an_index(count: int, data: st.DataObject) -> None:
    made = records(count)
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=12) if count else st.just([]))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=bool)
    for which in (np.array(places, np.int64), np.array(places, np.uint32), mask, slice(1, 4), slice(None)):
        assert chosen(made, which).tobytes() == made[which].tobytes()
        assert chosen(made, which).dtype == KIND


def test_arrays_of_records_are_one_after_the_other() -> None:
    made = records(5)
    joined = concatenated([made[3:], made[:0], made[:2]])
    assert joined.dtype == KIND
    assert joined["key"].tolist() == [1, 2, -2, -1]
    assert joined["count"].tolist() == [10, 11, 7, 8]
    joined["count"] = 0
    assert made["count"].tolist() == [7, 8, 9, 10, 11]
