"""Ctrl-C in the middle of a real run, and the same command again."""

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

ROOT = Path(__file__).resolve().parents[2]
# Four groups of lists, 160 questions to ask: nobody is so slow with a signal that the run is over before it comes.
RECIPES = "default,default~lexical,default~dense,graph"


def hears_ctrl_c() -> None:
    """Let a child take Ctrl-C: what a script starts in its background is born deaf to it, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(store_url: str, out: Path) -> list[str]:
    given = ["--data", "eval/data/toy", "--embedder", "hashing", "--store", store_url, "--metric", "R@10"]
    return [sys.executable, "-m", "eval", "run", *given, "--recipes", RECIPES, "--out", str(out)]


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


def stopped_midway(store_url: str, out: Path) -> tuple[int, bytes]:
    """Send Ctrl-C once five questions are asked; return the exit code and the standard error.

    On a busy machine the run may be over before the signal comes. Then it begins again, five times at most.
    """
    for _ in range(5):
        running = subprocess.Popen(
            command(store_url, out), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hears_ctrl_c
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


@pytest.mark.slow  # three processes, one after the other
@pytest.mark.timeout(700)  # three runs of a process, each with a time limit of its own
def test_a_run_stopped_by_ctrl_c_goes_on_and_ends_like_one_that_was_not(store_url: str, tmp_path: Path) -> None:
    out = tmp_path / "stopped"
    code, output = stopped_midway(store_url, out)
    assert code == 130
    assert b"Run the same command again to take up where it stopped" in output
    assert b"Traceback" not in output
    before = asked(out)
    assert 5 <= sum(len(ids) for ids in before.values()) < 160
    assert not (out / "result.json").exists()

    again = subprocess.run(command(store_url, out), cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert again.returncode == 0, again.stderr
    after = asked(out)
    for name, ids in before.items():
        assert after[name][: len(ids)] == ids  # what was asked stands as it stood
    assert len(after) == 4
    assert all(len(ids) == len(set(ids)) == 40 for ids in after.values()), "a question was asked twice, or never"

    whole = tmp_path / "whole"
    done = subprocess.run(command(store_url, whole), cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert measured(out) == measured(whole)
    file = "private/per-question.jsonl"
    assert (out / file).read_bytes() == (whole / file).read_bytes()
