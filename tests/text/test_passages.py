"""Where the parts of a split text stand in it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.model.types import Passage
from semmem.text.passages import passage_of, sentences, split

PIECES = st.sampled_from([" ", "\n", "\n \n", "\t", "\u3000", "\x1c", ". ", "a", "bb.", "ü", "🦊", "word ", "word "])


@given(st.lists(PIECES, max_size=80).map("".join), st.integers(1, 12))
def test_every_part_is_found_where_it_stands_and_only_white_space_lies_between(text: str, most: int) -> None:
    parts = split(text, max_chars=most)
    if len(parts) < 2:
        return
    lengths = [len(part) for part in parts]
    found = []
    for number, part in enumerate(parts, 1):
        passage = passage_of(text, part, number, lengths)
        assert passage is not None
        assert text[passage.start : passage.end] == passage.text == part
        found.append(passage)
    assert not text[: found[0].start].strip()
    assert not text[found[-1].end :].strip()
    assert all(one.end <= other.start and not text[one.end : other.start].strip() for one, other in pairwise(found))


def test_of_two_parts_that_read_the_same_each_is_found_at_its_own_place() -> None:
    parts = split("tide. tide. tide.", max_chars=6)
    assert parts == ["tide.", "tide.", "tide."]
    places = [passage_of("tide. tide. tide.", "tide.", number, [5, 5, 5]) for number in (1, 2, 3)]
    assert places == [Passage("tide.", 0, 5), Passage("tide.", 6, 11), Passage("tide.", 12, 17)]


def test_a_part_of_a_text_that_was_changed_meanwhile_is_looked_for_or_left_out() -> None:
    assert passage_of("New. tide. sail.", "sail.", 2, [5, 5]) == Passage("sail.", 11, 16)
    assert passage_of("New text.", "sail.", 2, [5, 5]) is None


def test_a_hit_of_a_long_memory_is_whole_in_a_sqlite_store_too() -> None:
    text = "The crew waits for the tide. " * 60 + "\n\nThe zeppelin landed on the pier."
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        given = mem.remember(text, id="3")
        (hit,) = mem.recall("zeppelin")
        assert (hit.id, hit.part, hit.memory) == ("3", 2, given)
        assert text[hit.passage.start : hit.passage.end] == hit.passage.text
        assert hit.passage.text.endswith("The zeppelin landed on the pier.")
        assert mem.recall("zeppelin", exclude=["3"]).total == 0


_STOPS, _FULL = ".!?\u2026", "\u3002\uff01\uff1f"


def _ends(text: str) -> list[int]:
    """Return where sentences end by the rules alone, character by character; nothing here is an abbreviation."""
    ends, at = [], 0
    while at < len(text):
        past = at + 1
        if text[at] == "\n":
            ends.append(past)
        elif text[at] in _FULL:
            while past < len(text) and text[past] in _FULL:
                past += 1
            while past < len(text) and text[past] in "\u300d\u300f":
                past += 1
            ends.append(past)
        elif text[at] in _STOPS and text[at - 1 : at] not in tuple(_STOPS):
            while past < len(text) and text[past] in _STOPS:
                past += 1
            while past < len(text) and text[past] in "\"'\u201d\u2019)]":
                past += 1
            if past < len(text) and text[past].isspace():
                ends.append(past)
            else:
                past = at + 1
        at = past
    return ends


@given(st.lists(st.sampled_from(["7", "words", ".", "!", "\u2026", "\u3002", "\u300d", ")", " ", "\n"])).map("".join))
def test_a_sentence_ends_at_a_run_of_stops_before_white_space_and_at_each_line(text: str) -> None:
    cuts = [0, *_ends(text), len(text)]
    pieces = [text[start:end].strip() for start, end in pairwise(cuts)]
    assert sentences(text) == [piece for piece in pieces if piece]
