"""Arrays: records chosen and joined as bytes, membership, runs, groups by id."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semmem.model.arrays import Groups, chosen, concatenated, groups_without, held, lookup, merged_groups, runs, sums

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


NUMBERS = st.sets(st.integers(-5, 20), max_size=12).map(lambda numbers: np.array(sorted(numbers), dtype=np.int64))


@given(NUMBERS, st.lists(st.integers(-6, 21), max_size=12))
def test_a_number_is_held_where_it_is_among_the_ascending_ones_and_found_at_its_place(
    ascending: np.ndarray, numbers: list[int]
) -> None:
    asked = np.array(numbers, dtype=np.int64)
    here, places = lookup(ascending, asked)
    assert here.tolist() == [number in ascending.tolist() for number in numbers]
    assert ascending[places[here]].tolist() == asked[here].tolist()
    assert held(ascending, asked).tolist() == here.tolist()


def test_runs_count_on_from_each_start() -> None:
    assert runs(np.array([7, 0, 3]), np.array([2, 0, 3])).tolist() == [7, 8, 3, 4, 5]
    assert runs(np.array([7]), np.array([0])).tolist() == []


def groups(by_id: dict[int, list[int]]) -> Groups:
    made = np.zeros(sum(map(len, by_id.values())), KIND)
    made["key"] = [number for numbers in by_id.values() for number in numbers]
    return np.array(list(by_id), np.int64), np.array([len(numbers) for numbers in by_id.values()], np.int64), made


def by_id(of: Groups) -> list[tuple[int, list[int]]]:
    ids, sizes, made = of
    assert len(made) == sizes.sum()
    ends = sizes.cumsum()
    return [(int(one), made["key"][end - n : end].tolist()) for one, n, end in zip(ids, sizes, ends, strict=True)]


def test_groups_of_two_are_one_with_ids_ascending_and_records_in_their_order() -> None:
    one, other = groups({2: [5, 4], 9: [1]}), groups({-3: [8, 9, 7], 4: []})
    assert by_id(merged_groups(one, other)) == [(-3, [8, 9, 7]), (2, [5, 4]), (4, []), (9, [1])]
    assert by_id(merged_groups(groups({}), one)) == by_id(one)


def test_groups_without_some_ids_keep_the_records_of_the_others() -> None:
    made = groups({2: [5, 4], 4: [], 9: [1]})
    assert by_id(groups_without(made, np.array([2, 3]))) == [(4, []), (9, [1])]
    assert by_id(groups_without(made, np.array([], np.int64))) == by_id(made)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), max_size=30),
    st.sampled_from([1, 40]),
    st.sampled_from([1, 1_000_003]),
)
def test_sums_by_row_id_are_added_in_the_order_given(pairs: list[tuple[int, float]], times: int, apart: int) -> None:
    added: dict[int, float] = {}
    for row_id, value in pairs * times:
        added[row_id * apart] = added.get(row_id * apart, 0.0) + value
    row_ids = np.array([row_id * apart for row_id, _ in pairs * times], dtype=np.int64)
    where, summed, counts = sums(row_ids, np.array([value for _, value in pairs * times]))
    assert where.tolist() == sorted(added)
    assert summed.tolist() == [added[row_id] for row_id in sorted(added)]
    assert counts.tolist() == [sum(one * apart == row_id for one, _ in pairs * times) for row_id in sorted(added)]
