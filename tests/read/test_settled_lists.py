"""The list of a leg as fusion takes it: best first, ties by id, whatever order the memories were written in."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from semmem.model.exchange import CandidateMetadata, Ranking
from semmem.read.candidates import settle

scores = st.one_of(st.sampled_from([0.0, 1.0, 1.0 + 1e-13, 1.0 - 1e-11, 1.0 - 3e-11, -0.5, 2.5]), st.floats(-1, 30))


def head(row_id: int) -> CandidateMetadata:
    return CandidateMetadata(row_id, "n", f"m{97 - row_id:02}", 0, 0.5, b"", 0.0, 0.0)


@given(st.lists(scores, max_size=12))
def test_scores_that_are_equal_to_12_digits_stand_by_id_and_all_others_by_score(given_: list[float]) -> None:
    falling = sorted(given_, reverse=True)
    metadata = {row_id: head(row_id) for row_id in range(len(falling))}
    rows = sorted(enumerate(falling), key=lambda row: (-float(f"{row[1]:.12g}"), metadata[row[0]].id))
    found = settle(Ranking(tuple(range(len(falling))), tuple(falling), len(falling)), metadata, 100)
    assert list(zip(found.row_ids, found.scores, strict=True)) == rows


def test_a_tie_is_broken_by_id_and_a_difference_in_the_11th_digit_is_no_tie() -> None:
    metadata = {row_id: head(row_id) for row_id in range(3)}
    assert settle(Ranking((0, 1, 2), (2.0, 1.0, 1.0 - 1e-13), 3), metadata, 3).row_ids == (0, 2, 1)
    assert settle(Ranking((0, 1, 2), (2.0, 1.0, 1.0 - 1e-10), 3), metadata, 2).row_ids == (0, 1)


def test_a_row_that_a_leg_names_twice_stands_once_at_its_better_place_and_takes_no_other_rows_rank() -> None:
    metadata = {row_id: head(row_id) for row_id in range(4)}
    found = settle(Ranking((2, 0, 2, 0, 1, 3), (3.0, 2.0, 2.0, 1.5, 1.0, 0.5), 6), metadata, 3)
    assert (found.row_ids, found.scores) == ((2, 0, 1), (3.0, 2.0, 1.0))
    assert settle(Ranking((1, 1, 1), (0.5, 0.5, 0.5), 3), metadata, 3).row_ids == (1,)


@given(
    st.lists(st.sampled_from([2.0, 1.0, 1.0 - 1e-13, 1.0 - 2e-13, 1.0 - 1e-10, 0.5, 0.0, -1.0]), max_size=30),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_list_is_as_if_all_of_it_were_sorted(scores: list[float], falls: bool, chance: Any) -> None:
    scores = sorted(scores, reverse=True) if falls else scores
    ids = chance.sample([f"m{at:02}" for at in range(len(scores))], len(scores))
    metadata = {at: CandidateMetadata(at, "n", id, 0, 0.5, b"", 0.0, 0.0) for at, id in enumerate(ids)}
    found = settle(Ranking(tuple(metadata), tuple(scores), len(scores)), metadata, 20)
    whole = sorted(metadata, key=lambda at: (-float(f"{scores[at]:.12g}"), ids[at]))
    assert list(found.row_ids) == whole[:20]
