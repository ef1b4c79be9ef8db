"""What the README shows of the server can be typed too: its lines are run against a server on a free port."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import semmem
from semmem.client.routes import ROUTES
from semmem.doors.cli.app import run
from tests.serving import serving

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## Over HTTP") :].split("\n## ")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)


def test_the_lines_of_the_server_run_in_the_order_in_which_they_stand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (shown,) = [block for block in blocks("python") if "http://" in block]
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("curl ")]
    assert len(lines) >= 7
    with semmem.connect("sqlite::memory:") as mem, serving(mem) as url:
        exec(compile(shown.replace("http://127.0.0.1:8765", url), "README.md", "exec"), {})  # the example is ours
        assert "The key of Heron House" in capsys.readouterr().out
        if shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        for line in lines:
            typed = [*shlex.split(line.replace("localhost:8765", url.removeprefix("http://"))), "--fail-with-body"]
            done = subprocess.run(typed, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
            assert done.returncode == 0, done.stdout
            assert [json.loads(row) for row in done.stdout.splitlines()]
        assert mem.settings_of(namespace="readme") == {"weights.graph": 0}


def test_the_lines_of_the_keys_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("semmem serve key")]
    assert len(lines) == 3
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0


def test_every_path_is_described_and_no_other() -> None:
    table = SECTION[SECTION.index("| path |") :].split("\n\n")[0]
    described = set(re.findall(r"`(/[\w/{}.-]+)`", table))
    assert described == {route.path for route in ROUTES} | {"/healthz", "/readyz", "/metrics", "/openapi.json"}
