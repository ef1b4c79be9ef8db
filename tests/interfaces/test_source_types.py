"""The source type of a memory at every interface: given, kept, shown, filtered by."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import semmem
from semmem.interfaces.claude_memory import MemoryFiles
from semmem.interfaces.cli.app import run
from semmem.interfaces.mem0 import Memory
from semmem.interfaces.openai_session import SemmemSession
from tests.interfaces.mcp.clients import ask, in_memory, refusal


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/notes.db"


def types(url: str, namespace: str = "default") -> dict[str, str | None]:
    with semmem.connect(url) as mem:
        return {memory.text: memory.source_type for memory in mem.list(namespace=namespace)}


@pytest.mark.slow
def test_the_command_line_takes_it_keeps_it_and_filters_by_it(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    there = ["--url", url]
    assert run(["remember", "The ferry leaves at nine.", "--id", "a", "--source-type", "user", *there]) == 0
    assert run(["remember", "The ferry costs four.", "--id", "b", *there]) == 0
    assert run(["update", "a", "The ferry leaves at ten.", *there]) == 0
    assert run(["update", "b", "--source-type", "tool", *there]) == 0
    assert types(url) == {"The ferry leaves at ten.": "user", "The ferry costs four.": "tool"}
    capsys.readouterr()
    for command in (["recall", "ferry"], ["list"]):
        assert run([*command, "--source-type", "tool", "--json", *there]) == 0
        assert "ten." not in (out := capsys.readouterr().out)
        assert "four." in out
    assert run(["recall", "ferry", "--source-type", "friend", *there]) == 2
    assert 'must be "user", "agent", "tool" or "imported"' in " ".join(capsys.readouterr().err.split())


@pytest.mark.anyio
async def test_what_an_agent_stores_by_mcp_is_of_an_agent_and_an_update_keeps_the_type(url: str) -> None:
    async with in_memory(url) as client:
        stored = (await ask(client, "memory_remember", text="The ferry leaves at nine.", id="a"))["memory"]
        assert stored["source_type"] == "agent"
        await ask(client, "memory_remember", text="The ferry costs four.", id="b", source_type="user")
        updated = (await ask(client, "memory_update", id="b", text="The ferry costs five."))["memory"]
        assert updated["source_type"] == "user"
        found = await ask(client, "memory_recall", query="ferry", filters={"source_types": ["user"]})
        assert [(hit["id"], hit["source_type"]) for hit in found["hits"]] == [("b", "user")]
        error = await refusal(client, "memory_remember", text="x", source_type="friend")
        assert "friend" in error["message"]


def test_other_interfaces_store_by_role(url: str, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Behind the radio."}]
    with semmem.connect(url) as mem:
        Memory(memory=mem).add(turns, user_id="ada", infer=False)
        assert {m.text: m.source_type for m in mem.list(namespace="mem0")} == {
            "Where is it?": "user", "Behind the radio.": "agent",
        }  # fmt: skip
        asyncio.run(SemmemSession("chat", mem, namespace="session").add_items(turns))
        assert {m.source_type for m in mem.list(namespace="session")} == {"user", "agent"}
        MemoryFiles(mem, namespace="files").create("/memories/a.md", "The ferry leaves.")
        assert [m.source_type for m in mem.list(namespace="files")] == ["agent"]


def test_an_export_keeps_it_and_a_link_changes_nothing_of_it(url: str, tmp_path: Path) -> None:
    with semmem.connect(url) as mem:
        mem.remember("Tea.", id="a", source_type="tool")
        mem.remember("Rum.", id="b")
        mem.link("b", "supersedes", "a")
    assert run(["export", str(tmp_path / "out.jsonl"), "--url", url]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["id"]: row.get("source_type") for row in rows} == {"a": "tool", "b": None}
    assert run(["import", "jsonl", str(tmp_path / "out.jsonl"), "--into", "copy", "--url", url]) == 0
    assert types(url, "copy") == {"Tea.": "tool", "Rum.": None}
