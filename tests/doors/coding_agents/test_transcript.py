"""The turns in a transcript: what a person and the model said, a line each."""

from __future__ import annotations

from typing import Any

import pytest

from semmem.doors.coding_agents.transcript import turns
from tests.doors.coding_agents.transcripts import CLAUDE, CODEX, written


@pytest.mark.parametrize("rows", [CLAUDE, CODEX], ids=["claude-code", "codex"])
def test_what_a_person_and_the_model_said_are_the_turns(rows: list[dict[str, Any]]) -> None:
    found, size = turns(written(rows), 1)
    assert [(one.author, one.text, one.position) for one in found] == [
        ("user", "How are the tests run?", 1),
        ("assistant", "With make check.", 2),
    ]
    assert size == len(written(rows))


def test_a_line_that_is_no_json_is_passed_over_and_one_that_is_being_written_waits() -> None:
    whole = b"\xff\n[1]\n{}\n" + written(CLAUDE[1:2])
    found, size = turns(whole + b'{"type": "user", "mess', 5)
    assert [one.position for one in found] == [5]
    assert size == len(whole)
    odd = {"type": "user", "timestamp": 3, "uuid": 4, "message": {"role": "user", "content": "a\x00b\ud800"}}
    (turn,), _ = turns(written([odd]), 1)
    assert (turn.text, turn.at, turn.id) == ("a\ufffdb?", None, None)
