"""What the harness's README lets a reader paste runs in a fresh clone, and its report says how to read it."""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from eval import coverage, erasure, joined, robustness, scale_model, scale_nodes, titled
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
    "eval.scale_model": scale_model,
    "eval.scale_nodes": scale_nodes,
    "eval.titled": titled,
}
OF_YOURS = "eval/data/private/"


def parsed(command: Any, name: str | None, args: list[str]) -> None:
    """Parse the arguments of a command, and of the commands below it."""
    context = command.make_context(name, list(args))
    below = [*context._protected_args, *context.args]
    if below:
        name, command, rest = command.resolve_command(context, below)
        parsed(command, name, rest)


def test_every_command_of_the_readme_is_one_and_its_data_are_in_the_clone() -> None:
    command = typer.main.get_command(app)
    for _, _, module, *args in COMMANDS:
        if module == "eval":
            parsed(command, "eval", args)  # raises for an option that is none
        else:
            assert hasattr(OTHERS[module], "main"), module
        for flag, value in pairwise(args):
            if flag in ("--data", "--foreign"):
                assert value.startswith(OF_YOURS) or (ROOT / value).is_dir(), value


@pytest.mark.parametrize(
    ("module", "args", "words"),
    [
        ("eval.robustness", ["--data", "no-such-set"], "There is no data set at no-such-set"),
        ("eval.erasure", ["--memories", "0"], "--memories is 1 or more"),
        ("eval.joined", ["--data", "no-such-set"], "There is no data set at no-such-set"),
    ],
)
def test_a_benchmark_says_in_a_sentence_what_it_cannot_use(module: str, args: list[str], words: str) -> None:
    with pytest.raises(SystemExit, match=words):
        OTHERS[module].main(args)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["scale", "--data", "eval/data/toy", "--sizes", "a,b"], "--sizes must be whole numbers above 0"),
        (["scale", "--data", "no-such-set", "--sizes", "5"], "There is no data set at no-such-set"),
        (["scale", "--data", "eval/data/toy", "--sizes", "9,5"], "Give sizes in rising order"),
        (["second-day", "--memories", "0"], "Invalid value for '--memories'"),
        (["reads", "--memories", "99"], "Invalid value for '--memories'"),
        (["--sizes", "0"], "--sizes must be whole numbers above 0"),
    ],
)
def test_a_case_of_the_benchmark_says_what_it_cannot_use(args: list[str], words: str) -> None:
    from typer.testing import CliRunner

    told = CliRunner().invoke(app, ["bench", *args])
    assert told.exit_code == 2
    assert words in " ".join(told.output.split())


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
