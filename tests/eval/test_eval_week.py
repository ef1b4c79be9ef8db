"""The week of a coding agent: its data are sound, and its scorer counts what a model was given."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import eval.datasets as datasets
from eval.week import Answer, Shown, markdown, played, report, shown_in, the_answer
from semmem.importers import transcript
from semmem.write.screening import redacted

WEEK = Path("eval/data/week")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (WEEK / name).read_text(encoding="utf-8").splitlines()]


def test_thirty_sessions_of_two_clones_and_two_clients_follow_each_other() -> None:
    week = rows("week.jsonl")
    assert len({one["session"] for one in week}) == 30
    assert {one["clone"] for one in week} == {"A", "B"}
    assert [one["client"] for one in week].count("codex") == 3
    assert all(before["until"] < after["at"] for before, after in pairwise(week))


def test_the_documents_are_what_the_importer_reads_of_the_transcripts_and_the_notes() -> None:
    read: dict[str, tuple[str, str]] = {}
    for session in rows("week.jsonl"):
        for turn in transcript.read(WEEK / session["transcript"]):
            read[str(turn["id"])] = redacted(str(turn["text"]))[0], str(turn["created_at"])
        read |= {note["id"]: (note["text"], session["until"]) for note in session["notes"]}
    assert {one["id"]: (one["text"], one["created_at"]) for one in rows("documents.jsonl")} == read


def test_two_hundred_prompts_have_gold_that_is_older_than_they_are_and_has_the_words_of_the_answer() -> None:
    begins = {one["id"]: one["at"] for one in rows("week.jsonl")}
    stored = {one["id"]: one for one in rows("documents.jsonl")}
    questions = rows("queries.jsonl")
    prompts = [one for one in questions if one["stratum"] != "session start"]
    assert (len(questions), len(prompts), sum(not one["gold_ids"] for one in prompts)) == (229, 200, 68)
    for one in questions:
        gold = [stored[id] for id in one["gold_ids"]]
        assert bool(gold) is bool(one.get("answer")), one["id"]
        named = [*gold, *(stored[id] for id in one.get("stale_ids", ()))]
        assert all(memory["created_at"] < begins[one["asked_in"]] for memory in named), one["id"]
        assert not gold or any(one["answer"].casefold() in memory["text"].casefold() for memory in gold), one["id"]


def test_the_harness_reads_it_as_every_other_set() -> None:
    corpus = datasets.load(str(WEEK))
    assert (len(corpus.memories), len(corpus.queries)) == (196, 229)


@pytest.mark.parametrize(
    ("memories", "gold", "answered", "outdated"),
    [
        ((("new", "Port 5440."),), True, True, False),
        ((("new", "The other port …"),), True, False, False),
        ((("old", "Port 6543."), ("new", "Port 5440.")), True, True, True),
        ((("new", "Port 5440."), ("old", "Port 6543.")), True, True, False),
        ((("old", "Port 6543."),), False, False, True),
        ((("else", "Port 5440."),), False, False, False),
        ((), False, False, False),
    ],
)
def test_an_answer_is_given_where_gold_is_shown_with_its_words(
    memories: tuple[tuple[str, str], ...], gold: bool, answered: bool, outdated: bool
) -> None:
    question = {"id": "q", "stratum": "changed fact", "gold_ids": ["new"], "stale_ids": ["old"], "answer": "5440"}
    one = the_answer(question, "prompt", Shown(memories, 7))
    assert (one.gold, one.answered, one.outdated) == (gold, answered, outdated)
    assert (one.shown, one.tokens) == (len(memories), 7)


def test_a_report_counts_shares_by_interface_and_stratum() -> None:
    def answer(stratum: str, shown: int, right: bool) -> dict[str, Any]:
        of = Answer("q", stratum, "prompt", shown, 10 * shown, right, right, outdated=False)
        return {name: getattr(of, name) for name in Answer.__slots__}

    answers = [answer("decision", 2, True), answer("decision", 4, False), answer("unrelated", 0, False)]
    remembered = [{"id": "a", "tokens": 7, "older": []}, {"id": "b", "tokens": 31, "older": ["a"]}]
    result = report({"answers": answers, "starts": [400, 500], "remembered": remembered})
    told = result["through"]["prompt"]
    assert told["answerable"] == {
        "questions": 2, "gold shown": 0.5, "answered": 0.5, "outdated first": 0.0, "silent": 0.0, "tokens, mean": 30,
    }  # fmt: skip
    assert told["unanswerable"]["silent"] == 1.0
    assert result["session start"] == {"tokens, mean": 450, "tokens, most": 500}
    assert result["remember"]["tokens where one is"] == 31
    assert "| prompt | decision | 2 | 0.5 | 0.5 | 0.0 | 0.0 | 30 |" in markdown(result)


def test_the_block_of_a_hook_is_read_line_by_line() -> None:
    block = '<semmem-memories>\nData.\n{"id":"a","text":"One."}\n{"id":"b","text":"Two."}\n</semmem-memories>\n'
    assert shown_in(block, len) == Shown((("a", "One."), ("b", "Two.")), len(block))
    assert shown_in("", len) == Shown((), 0)


@pytest.mark.slow
def test_two_sessions_are_played_through_the_hooks_and_the_mcp_server(tmp_path: Path) -> None:
    for name in ("week.jsonl", "queries.jsonl"):
        kept = [row for row in rows(name) if row.get("asked_in", row["id"]) in ("s01", "s02")]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    (tmp_path / "transcripts").mkdir()
    for name in ("s01", "s02"):
        source = WEEK / "transcripts" / f"{name}.jsonl"
        (tmp_path / "transcripts" / f"{name}.jsonl").write_bytes(source.read_bytes())
    told: list[str] = []
    result = played(tmp_path, "hashing", None, told.append)
    assert told == ["s01: 0 answers", f"s02: {len(result['answers'])} answers"]
    assert {one["through"] for one in result["answers"] if one["answered"]} >= {"prompt", "mcp"}
    assert {one["through"] for one in result["answers"] if one["id"] == "s02-start"} == {"session-start"}
    assert [one["id"] for one in result["remembered"]] == ["n-style"]
    assert result["starts"][0] == 0
    assert result["starts"][1] > 0
