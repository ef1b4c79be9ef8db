"""The strings of memories as bytes: what is put in comes out, and nothing is kept of what is left out."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semmem.stores.resident.turns import Strings

VALUES = st.lists(st.none() | st.sampled_from(["", "a", "ä", "东京", "a\0b"]) | st.text(max_size=3), max_size=12)


def test_three_memories_with_one_session_keep_its_bytes_once() -> None:
    strings = Strings.of(["Süd", None, "Süd", "", "Süd"])
    assert strings.raw.tobytes() == b"S\xc3\xbcd"
    assert (strings.which.tolist(), strings.starts.tolist()) == ([0, -1, 0, 1, 0], [0, 4, 4])
    assert strings.places() == {"Süd": [0, 2, 4], "": [3]}
    assert (strings[0], strings[1], strings[3]) == ("Süd", None, "")


@given(st.lists(VALUES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_strings_that_are_joined_and_chosen_from_are_those_of_a_list(
    parts: list[list[str | None]], chance: random.Random
) -> None:
    joined, values = Strings.joined([Strings.of(part) for part in parts]), [value for part in parts for value in part]
    assert joined.each() == [joined[place] for place in range(len(values))] == values
    which = np.array([place for place in range(len(values)) if chance.random() < 0.5], dtype=np.int64)
    chosen, kept = joined.select(which[::-1]), [values[place] for place in which[::-1]]
    assert chosen.each() == kept
    assert chosen.places() == {text: [n for n, v in enumerate(kept) if v == text] for text in kept if text is not None}
    assert set(chosen._texts()) == {text for text in kept if text is not None}
