"""Every line of a shell that the README shows is run: here, or by the test that is named beside it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from semmem.doors.cli.app import run
from tests.doors.mcp.clients import environment

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|console)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
LINES = [line.strip() for kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if line.strip()]

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

ON_ONE_FILE = [line for line in LINES if "sqlite:notes.db" in line]
OF_A_PROMPT = ["semmem context", "semmem judgements"]
ELSEWHERE = {
    "semmem serve key": "tests/docs/test_readme_http.py",
    "curl": "tests/docs/test_readme_http.py",
    "make install": "CI, by make lint, installs this way",
    "semmem model get": "tests/embedders, and CI",
    "semmem copy": "wants a server: tests/stores",
    "semmem backup": "tests/doors/cli/test_cli_moving.py",
    "semmem restore": "tests/doors/cli/test_cli_moving.py",
    "semmem stats --verify": "tests/doors/cli/test_cli_moving.py",
}
"""How lines begin that are run elsewhere, or cannot be run in a test, and where or why."""

HERE = ("semmem mcp", "semmem serve", "pip install", *OF_A_PROMPT)


def test_every_line_of_a_shell_is_run_here_or_named_with_where_it_is() -> None:
    left = [line for line in LINES if line not in ON_ONE_FILE and not line.startswith((*HERE, *ELSEWHERE))]
    assert left == []
    assert [start for start in (*HERE, *ELSEWHERE) if not any(line.startswith(start) for line in LINES)] == []


def named_extras() -> set[str]:
    return {name for names in re.findall(r"semmem\[([\w,-]+)\]|clone\[([\w,-]+)\]", README) for name in names if name}


def test_every_extra_that_is_named_exists_and_what_it_asks_for_fits_what_is_installed() -> None:
    table = README[README.index("| what | how | extra |") :].split("\n\n")[0]
    named = named_extras() | set(re.findall(r"\| `([\w-]+)` \|$", table, re.MULTILINE))
    assert {"http", "mcp", "minilm", "markdown", "langgraph"} <= named
    assert named <= set(EXTRAS)
    for extra in named - {"local", "spacy"}:  # which bring torch, or a pipeline of yours
        for text in EXTRAS[extra]:
            wanted = Requirement(text)
            if wanted.name != "semmem" and (wanted.marker is None or wanted.marker.evaluate({"extra": extra})):
                assert wanted.specifier.contains(version(wanted.name), prereleases=True), text


@pytest.mark.parametrize(
    ("extra", "package"), [("http", "fastapi"), ("http", "httpx"), ("mcp", "mcp"), ("minilm", "onnxruntime")]
)
def test_an_extra_brings_what_the_readme_says_of_it(extra: str, package: str) -> None:
    assert package in {Requirement(text).name for text in EXTRAS[extra]}


def test_the_lines_of_one_file_run_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(ON_ONE_FILE) == 4
    for line in ON_ONE_FILE:
        assert run(shlex.split(line)[1:]) == 0, line
        assert capfd.readouterr().out, line
    assert (tmp_path / "notes.db").exists()


def test_the_lines_of_a_prompt_run_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_URL", f"sqlite:{tmp_path}/notes.db")
    run(["remember", "Petra Lindqvist designed the Kestrel.", "-n", "readme"])
    for start in OF_A_PROMPT:
        (line,) = [line for line in LINES if line.startswith(start)]
        capfd.readouterr()
        assert run(shlex.split(line)[1:]) == 0, line
        out = capfd.readouterr().out
        assert ("Petra Lindqvist" in out) is (start == "semmem context")


def _started(line: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start a line of the README as a process of its own, in a home of its own, on a store of its own."""
    typed = shlex.split(line)
    assert typed[0] == "semmem"
    own = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    return subprocess.Popen(
        [sys.executable, "-m", "semmem", *typed[1:], *more],
        env=environment(f"sqlite:{folder}/notes.db") | own, cwd=folder, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
def test_semmem_serve_answers_and_stops(tmp_path: Path) -> None:
    assert "semmem serve" in LINES
    server = _started("semmem serve", tmp_path, "--json", "--port", "0")  # 8765 may be taken on this machine
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    assert httpx.get(f"{url}/readyz", timeout=60).json() == {"status": "ready"}
    assert httpx.get(f"{url}/v1/memories", timeout=60).json()["memories"] == []
    server.terminate()
    _, said = server.communicate(timeout=60)
    assert server.returncode == 0
    assert f"semmem answers at {url}, without a key. Ctrl-C stops it." in said
    assert "Stopped." in said


@pytest.mark.slow
def test_semmem_mcp_answers_and_stops(tmp_path: Path) -> None:
    assert "semmem mcp" in LINES
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "readme", "version": "1"}}
    server = _started("semmem mcp", tmp_path)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    out, _ = server.communicate(json.dumps(asked) + "\n", timeout=120)
    (answer,) = [json.loads(line) for line in out.splitlines()]
    assert answer["result"]["serverInfo"]["name"] == "semmem"
    assert server.returncode == 0


@pytest.mark.parametrize(
    ("words", "need"),
    [
        ("In a prompt", ("In ten lines", "The life of a memory", "Secrets")),
        ("On the command line", ("In ten lines", "The life of a memory", "Secrets", "Namespaces")),
        ("MCP", ("The life of a memory", "In a prompt", "In a coding agent")),
        ("Over HTTP", ("Namespaces", "In a prompt")),
        ("Copy, back up, restore", ("One file, no server", "A server of your own", "Settings")),
    ],
)
def test_a_section_stands_behind_those_whose_words_it_needs(words: str, need: tuple[str, ...]) -> None:
    assert all(README.index(f"\n## {one}\n") < README.index(f"\n## {words}\n") for one in need)
