"""What goes wrong in a hook that its client no longer waits for: a log, and what the doctor says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from semmem.files import hook_errors, hook_log
from semmem.interfaces.cli.app import run
from semmem.interfaces.coding_agents.error_log import error_log
from tests.interfaces.mcp.clients import environment


def test_what_goes_wrong_behind_the_client_is_logged_and_the_doctor_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert hook_errors() == []
    given = json.dumps({"session_id": "s1", "transcript_path": str(tmp_path / "none.jsonl"), "cwd": str(tmp_path)})
    command = [sys.executable, "-m", "semmem", "hook", "stop", "--detach"]
    surroundings = environment(f"sqlite:{tmp_path}/notes.db") | {
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    done = subprocess.run(command, cwd=tmp_path, env=surroundings, input=given, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    until = time.monotonic() + 60
    while not hook_errors() and time.monotonic() < until:
        time.sleep(0.05)
    (line,) = hook_errors()
    assert line.partition(" ")[2].startswith("semmem: There is no transcript ")
    assert hook_log().stat().st_mode & 0o777 == 0o600
    assert run(["doctor", "--no-connect", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (finding,) = [one for one in told["findings"] if one["what"] == "hooks"]
    assert (finding["state"], finding["mend"]) == ("bad", f"rm {hook_log()}")
    assert finding["detail"].startswith(f"1 error in {hook_log()}; the last one: 20")


def test_a_line_that_continues_a_message_is_no_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    error_log().write("UserWarning: SEMMEM_NAMESPACE is not a setting\n  with connect(url) as memory:\n")
    assert [line.partition(" ")[2] for line in hook_errors()] == ["UserWarning: SEMMEM_NAMESPACE is not a setting"]


def test_a_log_that_is_large_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    error_log().write("old " * (1 << 19))
    error_log().write("new\n")
    assert [line.partition(" ")[2] for line in hook_errors()] == ["new"]


def test_a_pipe_or_a_link_in_the_place_of_the_log_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    hook_log().parent.mkdir(parents=True)
    os.mkfifo(hook_log())
    assert hook_errors() == []
    with pytest.raises(OSError, match="No such device or address"):
        error_log()
    hook_log().unlink()
    (tmp_path / "letter").write_text("Dear Ada\n", encoding="utf-8")
    hook_log().symlink_to(tmp_path / "letter")
    assert hook_errors() == []
    with pytest.raises(OSError, match="symbolic links"):
        error_log()
    assert (tmp_path / "letter").read_text(encoding="utf-8") == "Dear Ada\n"
