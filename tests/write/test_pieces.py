"""The rows that are stored of a memory: one, or the whole with its numbered parts."""

from __future__ import annotations

from semmem.write.items import UNINDEXED, drafted, pieces_of

LONG = " ".join(f"The harbour of Norrbeck has pier number {number}." for number in range(200))


def test_a_long_memory_is_stored_whole_with_parts_that_are_numbered_from_one() -> None:
    (_, whole, number, count), *parts = pieces_of([drafted(0, {"id": "a", "text": LONG}, "n")], None)
    assert (whole.id, whole.text, number) == ("a", LONG, 0)
    assert count == len(parts) > 1
    assert [(part.id, part.parent_id, number) for _, part, number, _ in parts[:2]] == [("a#1", "a", 1), ("a#2", "a", 2)]
    assert all(part.text in LONG for _, part, _, _ in parts)


def test_a_memory_of_one_piece_has_no_part_and_a_sensitive_one_is_never_cut() -> None:
    short, secret = {"id": "a", "text": "Short."}, {"id": "b", "text": LONG, "sensitive": True}
    pieces = pieces_of([drafted(index, item, "n") for index, item in enumerate((short, secret))], None)
    assert [(memory.id, number, count) for _, memory, number, count in pieces] == [("a", 0, 0), ("b", 0, UNINDEXED)]
