"""Ctrl-C in the middle of a real run, and the same command again, with the first questions of the toy corpus."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.cli import app

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "eval" / "data" / "toy"
QUESTIONS = 20
# Four groups of lists, 80 questions to ask: nobody is so slow with a signal that the run is over before it comes.
RECIPES = "default,default~lexical,default~dense,graph"


def hears_ctrl_c() -> None:
    """Let a child take Ctrl-C: what a script starts in its background is born deaf to it, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "first of toy"
    folder.mkdir()
    shutil.copy(TOY / "documents.jsonl", folder)
    lines = (TOY / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "queries.jsonl").write_text("".join(lines[:QUESTIONS]), encoding="utf-8")
    return folder


def words(data: Path, store_url: str, out: Path) -> list[str]:
    given = ["--data", str(data), "--embedder", "hashing", "--store", store_url, "--metric", "R@10"]
    return ["run", *given, "--recipes", RECIPES, "--out", str(out)]


def asked(out: Path) -> dict[str, list[str]]:
    """Return the questions that are written down, by file of lists, in the order in which they were asked."""
    values = {}
    for path in sorted((out / "private").glob("lists-*.jsonl")):
        lines = path.read_text(encoding="utf-8").split("\n")
        assert lines.pop() == "", "the last line ends"
        values[path.name] = [json.loads(line)["asked"]["id"] for line in lines]
    return values


def measured(out: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return {name: value for name, value in result.items() if name not in ("cost", "environment")}


def lines_of(out: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (out / "private").glob("lists-*.jsonl"))


def stopped_midway(data: Path, store_url: str, out: Path) -> tuple[int, bytes]:
    """Send Ctrl-C once five questions are asked; return the exit code and the standard error.

    On a busy machine the run may be over before the signal comes. Then it begins again, five times at most.
    """
    for _ in range(5):
        running = subprocess.Popen(
            [sys.executable, "-m", "eval", *words(data, store_url, out)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=hears_ctrl_c,
        )
        try:
            until = time.monotonic() + 100
            while lines_of(out) < 5 and running.poll() is None and time.monotonic() < until:
                time.sleep(0.002)
            running.send_signal(signal.SIGINT)
            _, output = running.communicate(timeout=60)
        finally:
            running.kill()
        if running.returncode != 0:
            break
        shutil.rmtree(out)
    return running.returncode, output


@pytest.mark.slow
@pytest.mark.timeout(700)  # a process with a time limit of its own may begin five times
@pytest.mark.filterwarnings("ignore:The leg:UserWarning")
def test_a_run_stopped_by_ctrl_c_goes_on_and_ends_like_one_that_was_not(
    data: Path, store_url: str, tmp_path: Path
) -> None:
    out = tmp_path / "stopped"
    code, output = stopped_midway(data, store_url, out)
    assert code == 130
    assert b"Run the same command again to take up where it stopped" in output
    assert b"Traceback" not in output
    before = asked(out)
    assert 5 <= sum(len(ids) for ids in before.values()) < 4 * QUESTIONS
    assert not (out / "result.json").exists()

    again = CliRunner().invoke(app, words(data, store_url, out), catch_exceptions=False)
    assert again.exit_code == 0, again.output
    after = asked(out)
    for name, ids in before.items():
        assert after[name][: len(ids)] == ids  # what was asked stands as it stood
    assert len(after) == 4
    assert all(len(ids) == len(set(ids)) == QUESTIONS for ids in after.values()), "a question was asked twice, or never"

    whole = tmp_path / "whole"
    done = CliRunner().invoke(app, words(data, store_url, whole), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert measured(out) == measured(whole)
    file = "private/per-question.jsonl"
    assert (out / file).read_bytes() == (whole / file).read_bytes()
