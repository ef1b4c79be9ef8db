"""The program as a process of its own: its streams, Ctrl-C, a reader that goes away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.cli.app import run
from tests.interfaces.cli.program import in_process

PROGRAM = [sys.executable, "-m", "semmem"]


@pytest.fixture
def environment(store_url: str) -> dict[str, str]:
    """The environment of a process that works on an empty store with the hashing embedder."""
    return {**os.environ, "SEMMEM_URL": store_url, "SEMMEM_EMBEDDER": "hashing"}


def hears_ctrl_c() -> None:
    """Let a child take Ctrl-C: what a script starts in its background is born deaf to it, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_only_json_is_on_standard_output(environment: dict[str, str]) -> None:
    done = subprocess.run([*PROGRAM, "doctor", "--json"], env=environment, capture_output=True, text=True, check=True)
    json.loads(done.stdout)
    assert done.stderr == ""


@pytest.mark.slow
def test_ctrl_c_leaves_what_was_acknowledged_and_nothing_else(
    environment: dict[str, str], store_url: str, tmp_path: Path
) -> None:
    # Two batches of 50 are written to a pipe that stays open: the program has stored both and waits for more.
    pipe = tmp_path / "notes.jsonl"
    os.mkfifo(pipe)
    command = [*PROGRAM, "remember", "--file", str(pipe), "--batch-size", "50", "--json"]
    program = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_ctrl_c
    )
    with pipe.open("w") as lines:
        for number in range(120):  # the last 20 are read and belong to no batch yet
            lines.write(json.dumps({"id": str(number), "text": f"Note number {number}."}) + "\n")
        lines.flush()
        until = time.monotonic() + 60
        with semmem.connect(store_url, embedder="hashing") as mem:
            while mem.stats().memories < 100 and time.monotonic() < until:
                time.sleep(0.05)
            program.send_signal(signal.SIGINT)
            out, err = program.communicate(timeout=50)
            assert mem.stats().memories == 100
    assert (program.returncode, out) == (130, "")
    assert err.startswith("Stopped.")
    assert err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(environment: dict[str, str], store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("The key is red.")
    program = subprocess.Popen(
        [*PROGRAM, "recall", "key"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.close()
    assert program.wait(timeout=100) == 0
    assert program.stderr.read() == ""
    program.stderr.close()


def test_an_error_shows_its_traceback_only_under_debug(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    call, url = in_process(capfd), f"sqlite:{tmp_path}/notes.db"
    assert call("remember", "The key is red.", "--url", url)[0] == 0
    code, _, short = call("get", "nobody", "--url", url)
    assert (code, short.count("\n")) == (4, 1)
    code, _, long = call("get", "nobody", "--url", url, "--debug")
    assert code == 4
    assert "Traceback" in long
    assert "NotFound" in long


def test_help_is_given_for_every_command(environment: dict[str, str]) -> None:
    done = subprocess.run([*PROGRAM, "--help"], env=environment, capture_output=True, text=True, check=True)
    for name in (
        "demo",
        "remember",
        "recall",
        "explain",
        "get",
        "list",
        "forget",
        "stats",
        "reach",
        "doctor",
        "server",
    ):
        assert f" {name} " in done.stdout, name


@pytest.mark.parametrize(
    "module", ["typer", "semmem.interfaces.cli.demo", "semmem.interfaces.cli.commands.whole_store"]
)
def test_ctrl_c_before_the_program_is_loaded_is_one_sentence(module: str) -> None:
    start = f"""
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["semmem", "--version"]
from semmem.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=False, preexec_fn=hears_ctrl_c
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_ctrl_c_speaks_of_stored_memories_only_where_some_may_be_stored(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    url = f"sqlite://{tmp_path}/notes.db"
    assert run(["remember", "An owl.", "--url", url]) == 0
    capfd.readouterr()
    for verb in ("recall", "remember"):
        monkeypatch.setattr(Semmem, verb, interrupted)
    assert run(["recall", "owl", "--url", url]) == 130
    assert capfd.readouterr().err == "Stopped.\n"
    assert run(["remember", "A hawk.", "--url", url]) == 130
    assert capfd.readouterr().err == (
        "Stopped. Every memory that was acknowledged is stored, and none is stored in part.\n"
    )
