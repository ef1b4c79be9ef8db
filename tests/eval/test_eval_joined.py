"""Questions joined with their replies, as eval.joined stores them."""

from __future__ import annotations

from eval.joined import together


def test_a_question_stands_before_its_reply_and_the_reply_holds_both() -> None:
    rows = [
        ("1", "one", "ana", "Where should the boat go?"),
        ("2", "one", "ben", "To berth 12."),
        ("3", "one", "ana", "The tide is out."),
        ("4", "two", "ben", "It rains."),
    ]
    memories = [{"id": i, "session": s, "author": a, "text": t, "namespace": "n"} for i, s, a, t in rows]
    out, holder = together(memories)
    assert [(one["id"], one["text"]) for one in out] == [
        ("2", "Where should the boat go?\n\nTo berth 12."),
        ("3", "The tide is out."),
        ("4", "It rains."),
    ]
    assert holder == {"1": "2", "2": "2", "3": "3", "4": "4"}
