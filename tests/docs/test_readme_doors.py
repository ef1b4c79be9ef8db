"""What the README shows of MCP, of coding agents and of frameworks can be typed: its configuration starts a server, and
the code in its table runs."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import semmem
from semmem.doors.cli.app import run
from tests.doors.mcp.clients import environment

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return README[README.index(f"## {title}\n") :].split("\n## ")[0]


@pytest.mark.slow
def test_the_configuration_of_a_client_starts_a_server(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```json\n(.*?)^```", section("MCP"), re.DOTALL | re.MULTILINE)
    entry = json.loads(shown)["mcpServers"]["semmem"]
    assert entry["command"] == "semmem"
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "semmem", *entry["args"]], env=environment(f"sqlite:{tmp_path}/notes.db"),
        cwd=tmp_path,
    )  # fmt: skip

    async def names() -> set[str]:
        async with Client(started) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert "memory_recall" in asyncio.run(names())


def test_the_commands_for_a_coding_agent_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    typed = [line for line in README.splitlines() if re.match(r"semmem (un)?install \S", line)]
    assert typed
    for line in typed:
        assert run(shlex.split(line.partition("#")[0])[1:]) == 0, line
        capsys.readouterr()


TABLE = {
    'mem.remember_messages(messages, session="chat-7")': "",
    'SemmemSession("chat-7", mem)': "from semmem.doors.openai_session import SemmemSession",
    "tools=[memory_tool(mem)]": "from semmem.doors.claude_memory import memory_tool",
    "MemoryFiles(mem).run(call)": "from semmem.doors.claude_memory import MemoryFiles",
    'tools=tool_schemas("anthropic")': "from semmem.doors.tools import tool_schemas",
    "run_call(mem, name, arguments)": "from semmem.doors.tools import run_call",
    "from semmem.doors.mem0 import Memory": "",
    'SemmemStore.from_conn_string(url, index={"fields": ["text"]})': "from semmem.doors.langgraph import SemmemStore",
    'SemmemRetriever(mem, namespace="notes", limit=5)': "from semmem.doors.langchain import SemmemRetriever",
}
"""The code in the table of frameworks, and the import that the table names for it."""


@pytest.mark.parametrize("code", TABLE)
def test_the_code_for_a_framework_runs(code: str) -> None:
    shown = section("In a framework")
    assert code in shown
    assert TABLE[code].removeprefix("from ").partition(" ")[0] in shown
    with semmem.connect("sqlite::memory:") as mem:
        given: dict[str, Any] = {"mem": mem, "url": "sqlite::memory:"}
        given["messages"] = [{"role": "user", "content": "The ferry leaves at nine."}]
        given["call"] = {"command": "view", "path": "/memories"}
        given |= {"name": "memory_recall", "arguments": '{"query": "ferry"}'}
        exec(compile(f"{TABLE[code]}\n{code}", "README.md", "exec"), given)  # the code is ours


def test_the_table_of_frameworks_shows_no_code_that_is_not_run() -> None:
    rows = [row for row in section("In a framework").splitlines() if row.startswith("| ") and "(" in row]
    calls = {call for row in rows for call in re.findall(r"\b([A-Za-z_]+)\(", "".join(re.findall(r"`[^`]*`", row)))}
    run_here = {call for code in TABLE for call in re.findall(r"\b([A-Za-z_]+)\(", code)}
    theirs = {"compile"}  # what a framework does with ours: graph.compile, Runner.run
    assert calls - run_here - theirs <= {"Memory"}  # Memory(extract=…): tests/doors/test_mem0.py
