"""What a text says to have changed: pairs written by hand, and what is taken from a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.concepts.claims import change, claims

HERE = Path(__file__).parent


def pairs_of(file: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / file).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("file", "many"), [("changes.jsonl", 80), ("changes_by_others.jsonl", 70)])
def test_of_pairs_written_by_hand_nine_in_ten_reports_are_right_and_six_in_ten_changes_are_reported(
    file: str, many: int
) -> None:
    pairs = pairs_of(file)
    assert len(pairs) >= many
    reported = {
        (pair["older"], pair["newer"])
        for pair in pairs
        if change(pair["older"], pair["newer"], older_author="Kim", newer_author="Kim") is not None
    }
    changed = {(pair["older"], pair["newer"]) for pair in pairs if pair["kind"] == "changed"}
    assert len(reported & changed) >= 0.9 * len(reported)
    assert len(reported & changed) >= 0.6 * len(changed)
    assert {pair["kind"] for pair in pairs} == {"changed", "compatible", "duplicate", "unrelated"}


@pytest.mark.parametrize(
    ("older", "newer", "values"),
    [
        ("The port of the gateway is 5432.", "The gateway's port is now 6543.", ("5432", "6543", "value")),
        ("Ana lives in Lisbon.", "Ana moved to Porto.", ("lisbon", "porto", "name")),
        ("The cache uses Redis.", "Valkey replaced Redis in May.", ("Redis in May", "Valkey", "replacement")),
        ("The lease ends on 2026-06-30.", "The lease ends on 2026-12-31.", ("2026-06-30", "2026-12-31", "value")),
        ("Petra leads the platform team.", "Jonas leads the platform team now.", ("petra", "jona", "name")),
    ],
)  # fmt: skip
def test_a_change_says_what_was_and_what_is(older: str, newer: str, values: tuple[str, str, str]) -> None:
    found = change(older, newer)
    assert found is not None
    assert (found.old, found.new, found.rule) == values


def test_a_denial_names_both_sentences() -> None:
    found = change("It was warm. Ola eats fish.", "Ola no longer eats fish. She said so.")
    assert found is not None
    assert (found.older, found.newer, found.rule) == ("Ola eats fish.", "Ola no longer eats fish.", "denial")


def test_i_is_the_author() -> None:
    assert change("I live in Lisbon.", "I moved to Porto.", older_author="Ana", newer_author="Ana") is not None
    assert change("I live in Lisbon.", "I moved to Porto.", older_author="Ana", newer_author="Ben") is None
    assert change("Ana lives in Lisbon.", "I moved to Porto.", newer_author="Ana") is not None


def test_the_same_value_otherwise_written_is_no_change() -> None:
    assert change("The backup runs at 5 May.", "The backup runs on May 5th.") is None
    assert change("Version v2.3.1 of the app is live.", "Version 2.3.1 of the app is live now.") is None
    assert change("The limit is 1,000 rows.", "The limit is 1000 rows now.") is None
    assert change("The backup runs at 02:00.", "The backup runs at 2:00.") is None


def test_what_is_taken_from_a_sentence() -> None:
    (claim,) = claims("Room 12 no longer holds 8 people on Mondays.")
    assert {kind: [value.key for value in values] for kind, values in claim.values.items()} == {
        "number": ["8"], "day": ["monday"],
    }  # fmt: skip
    assert (claim.denies, claim.cue) == (True, True)
    assert {"room", "12"} <= claim.frame


@pytest.mark.parametrize(
    "text", ["", " ", "…", "a" * 5000, "1 " * 3000, "\x00", "Ünïcode 漢字 9:00", "is is is is", "from to from to"]
)
def test_any_text_can_be_read(text: str) -> None:
    claims(text)
    assert change(text, text) is None


@pytest.mark.parametrize("text", ["Note {}.", "Gulls and tides, page {}.", "Message {} about tea", "Chapter {}"])
def test_a_number_that_only_names_something_is_no_value(text: str) -> None:
    assert change(text.format(3), text.format(4)) is None
    assert change("The port is 3.", "The port is 4.") is not None
