"""What the harness's README lets a reader paste runs in a fresh clone, and its report says how to read it."""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import typer

from eval import coverage, erasure, joined, robustness, scale, scale_model, second_day, second_day_reads, starts, titled
from eval.cli import app
from eval.reports.page import page

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "eval" / "README.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line, comments=True) for line in re.findall(r"(?m)^ {4}(python -m eval[ .].*)$", README)]
OTHERS = {
    "eval.erasure": erasure,
    "eval.coverage": coverage,
    "eval.joined": joined,
    "eval.robustness": robustness,
    "eval.scale": scale,
    "eval.scale_model": scale_model,
    "eval.second_day": second_day,
    "eval.second_day_reads": second_day_reads,
    "eval.starts": starts,
    "eval.titled": titled,
}
OF_YOURS = "eval/data/private/"


def test_every_command_of_the_readme_is_one_and_its_data_are_in_the_clone() -> None:
    command = typer.main.get_command(app)
    for _, _, module, *args in COMMANDS:
        if module == "eval":
            name, chosen, rest = command.resolve_command(command.make_context("eval", args), args)  # type: ignore[attr-defined]
            chosen.make_context(name, rest)  # raises for an option that is none
        else:
            assert hasattr(OTHERS[module], "main"), module
        for flag, value in pairwise(args):
            if flag in ("--data", "--foreign"):
                assert value.startswith(OF_YOURS) or (ROOT / value).is_dir(), value


@pytest.mark.parametrize(
    ("module", "args", "words"),
    [
        ("eval.robustness", ["--data", "no-such-set"], "There is no data set at no-such-set"),
        ("eval.scale", ["--data", "eval/data/toy", "--sizes", "a,b"], "--sizes are whole numbers, such as 6000,100000"),
        ("eval.erasure", ["--memories", "0"], "--memories is 1 or more"),
        ("eval.joined", ["--data", "no-such-set"], "There is no data set at no-such-set"),
        ("eval.second_day", ["--memories", "0"], "--memories and --dimensions are 1 or more"),
        ("eval.second_day_reads", ["--memories", "99"], "--memories is 100 or more"),
    ],
)
def test_a_benchmark_says_in_a_sentence_what_it_cannot_use(module: str, args: list[str], words: str) -> None:
    with pytest.raises(SystemExit, match=words):
        OTHERS[module].main(args)


def test_the_readme_shows_the_commands_and_how_to_judge_ones_own_notes() -> None:
    assert len(COMMANDS) >= 15
    assert any(words[3:4] == ["make"] for words in COMMANDS)
    assert "You have to bring every other set yourself" in README


@pytest.mark.slow
def test_a_report_says_how_to_read_it_behind_the_verdict_and_before_the_numbers() -> None:
    result = json.loads((ROOT / "eval" / "results" / "locomo3-graph.json").read_text(encoding="utf-8"))
    shown = page(result)
    assert shown.count("How to read this") == 1
    places = [shown.index(text) for text in ('<p class="verdict', "How to read this", "Differences in R@10", "<table>")]
    assert places == sorted(places)
    for word in (
        "Not separated, so many questions needed for .05",
        "95 times in 100",
        "boost-only",
        "AllGold@10",
        "private/moved.md",
    ):
        assert word in shown
