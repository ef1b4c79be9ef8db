"""The servers on the pages can be started, and what is typed at them is answered."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

import semmem
from semmem.client.routes import ROUTES
from semmem.interfaces.cli.app import run
from semmem.interfaces.http.app import OPEN
from tests.docs.pages import blocks, lines, text
from tests.interfaces.mcp.clients import environment
from tests.serving import serving

HTTP, MCP = "docs/http.md", "docs/mcp.md"


def test_the_requests_run_in_the_order_in_which_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = [block.code for block in blocks(HTTP, "python") if "http://" in block.code]
    typed = [line for line in lines(HTTP, "sh") if line.startswith("curl ")]
    assert len(typed) >= 7
    with semmem.connect("sqlite::memory:", embedder="none") as mem, serving(mem) as url:
        exec(compile(shown.replace("http://127.0.0.1:8765", url), HTTP, "exec"), {})  # the example is ours
        assert "The key of Heron House" in capsys.readouterr().out
        if shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        for line in typed:
            words = [*shlex.split(line.replace("localhost:8765", url.removeprefix("http://"))), "--fail-with-body"]
            done = subprocess.run(words, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
            assert done.returncode == 0, done.stdout
            assert [json.loads(row) for row in done.stdout.splitlines()]
        assert mem.settings_of(namespace="docs") == {"weights.graph": 0}


def test_the_commands_of_the_keys_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SEMMEM_URL", f"sqlite:{tmp_path}/notes.db")
    typed = [line for line in lines(HTTP, "sh") if line.startswith("semmem keys")]
    assert len(typed) == 3
    for line in typed:
        assert run(shlex.split(line)[1:]) == 0


def test_every_path_is_described_and_no_other() -> None:
    table = text(HTTP).split("| path |")[1].split("\n\n")[0]
    described = set(re.findall(r"`(/[\w/{}.-]*)`", table))
    assert described == {route.path for route in ROUTES} | {
        "/metrics",
        "/session",
        "/runs",
        "/runs/{name}/{file}",
        *OPEN,
    }


def _started(line: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start a line of a page as a process of its own, in a home of its own, on a store of its own."""
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
    assert "semmem serve" in lines(HTTP, "sh")
    server = _started("semmem serve", tmp_path, "--json", "--port", "0")  # 8765 may be taken on this machine
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    assert httpx.get(f"{url}/readyz", timeout=60).json() == {"status": "ready"}
    assert httpx.get(f"{url}/v1/memories", timeout=60).json()["memories"] == []
    server.terminate()
    _, said = server.communicate(timeout=60)
    assert server.returncode == 0
    assert f"semmem answers at {url}, without a key and so to every user of this machine. Ctrl-C stops it." in said
    assert "Stopped." in said


@pytest.mark.slow
def test_semmem_mcp_answers_and_stops(tmp_path: Path) -> None:
    assert "semmem mcp" in lines(MCP, "sh")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "docs", "version": "1"}}
    server = _started("semmem mcp", tmp_path)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    out, _ = server.communicate(json.dumps(asked) + "\n", timeout=120)
    (answer,) = [json.loads(line) for line in out.splitlines()]
    assert answer["result"]["serverInfo"]["name"] == "semmem"
    assert server.returncode == 0


@pytest.mark.slow
def test_the_configuration_of_a_client_starts_a_server_with_the_tools_of_the_page(tmp_path: Path) -> None:
    (shown,) = [block.code for block in blocks(MCP, "json")]
    entry = json.loads(shown)["mcpServers"]["semmem"]
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "semmem", *entry["args"]], env=environment(f"sqlite:{tmp_path}/notes.db"),
        cwd=tmp_path,
    )  # fmt: skip

    async def names() -> set[str]:
        async with Client(started) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    table = text(MCP).split("| tool |")[1].split("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    assert asyncio.run(names()) == {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
