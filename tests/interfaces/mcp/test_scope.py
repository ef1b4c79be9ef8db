"""Whose memories a client of the MCP server reads and writes: its roots, one namespace alone, its agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

import semmem
from tests.interfaces.mcp.clients import BOTH, ask, in_memory, refusal
from tests.model.test_project import repository

pytestmark = pytest.mark.anyio


async def test_agents_may_be_kept_to_one_namespace(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        for name in ("mine", "personal"):
            mem.remember("The ferry leaves at nine.", id="ferry", namespace=name)
    async with in_memory(url, named="mine", only=True) as client:
        found = await ask(client, "memory_recall", query="ferry")
        assert [(hit["namespace"], found["scope"]["recalled"]) for hit in found["hits"]] == [("mine", ["mine"])]
        error = await refusal(client, "memory_get", id="ferry", namespace="personal")
        assert error["message"] == "Only the namespace 'mine' may be used here; leave namespace out."
        assert (await refusal(client, "memory_recall", query="x", namespace=[["personal"]]))["class"] == "AccessDenied"
        error = await refusal(client, "memory_forget", id="ferry", hard=True)
        assert error["message"] == "Only the namespace 'mine' may be used here, and this call is for the whole store."
        assert (await refusal(client, "fetch", id="semmem://memory/personal/ferry"))["class"] == "AccessDenied"
        with pytest.raises(MCPError, match="Only the namespace 'mine'"):
            await client.read_resource("semmem://memory/personal/ferry")
        (counts,) = (await client.read_resource("semmem://stats")).contents
        assert json.loads(counts.text)["store"] is None  # type: ignore[union-attr]  # it is text


@BOTH
async def test_the_namespace_is_that_of_the_clients_root_and_recall_reads_the_personal_one_too(
    tmp_path: Path, url: str, mode: str
) -> None:
    mine = repository(tmp_path / "mine", {"origin": "https://example.org/ada/mine"}).as_uri()
    other = repository(tmp_path / "other", {"origin": "https://example.org/ada/other"}).as_uri()
    async with in_memory(url, mode=mode, roots=[mine]) as client:
        told = await ask(client, "memory_remember", text="The build needs make.", id="build")
        assert told["memory"]["namespace"] == "example.org/ada/mine"
        assert told["scope"] == {
            "namespace": "example.org/ada/mine",
            "recalled": ["example.org/ada/mine", "personal"],
            "from": "a root of the client: the remote of the git repository mine",
        }
        await ask(client, "memory_remember", text="Ada likes short builds.", id="taste", namespace="personal")
        found = await ask(client, "memory_recall", query="build builds")
        assert {hit["id"] for hit in found["hits"]} == {"build", "taste"}
        assert (await ask(client, "memory_get", id="taste"))["memory"]["namespace"] == "personal"
    async with in_memory(url, mode=mode, roots=[other]) as client:
        found = await ask(client, "memory_recall", query="build builds")
        assert [hit["id"] for hit in found["hits"]] == ["taste"]
        await refusal(client, "memory_get", id="build")
    async with in_memory(url, mode=mode, roots=[other, mine]) as client:
        found = await ask(client, "memory_recall", query="build builds")
        assert {hit["id"] for hit in found["hits"]} == {"build", "taste"}
        assert found["scope"]["namespace"] == "example.org/ada/other"


async def test_without_roots_it_is_the_repository_of_the_folder_and_without_one_the_default(
    tmp_path: Path, url: str
) -> None:
    inside = repository(tmp_path / "inside", {"origin": "https://example.org/ada/inside"})
    async with in_memory(url, folder=inside) as client:
        assert (await ask(client, "memory_list"))["scope"]["namespace"] == "example.org/ada/inside"
    (tmp_path / "outside").mkdir()
    async with in_memory(url, folder=tmp_path / "outside", personal=None) as client:
        scope = (await ask(client, "memory_list"))["scope"]
        assert (scope["namespace"], scope["recalled"]) == ("default", ["default"])
    async with in_memory(url, folder=inside, roots=[inside.as_uri()], named="team") as client:
        assert (await ask(client, "memory_list"))["scope"]["recalled"] == ["team", "personal"]


async def test_roots_that_are_no_folders_of_this_machine_are_passed_over(url: str) -> None:
    async with in_memory(url, mode="legacy", roots=["file://elsewhere/srv/x"]) as client:
        assert (await ask(client, "memory_list"))["scope"]["namespace"] == "default"


async def test_every_answer_names_the_agent_and_a_memory_the_one_that_wrote_it(url: str) -> None:
    async with in_memory(url, agent="first") as client:
        told = await ask(client, "memory_remember", text="Tests run with make.", id="tests", metadata={"a": 1})
        assert told["agent"] == {"name": "first", "version": "1.2"}
        assert told["memory"]["metadata"] == {"a": 1, "agent": "first"}
    async with in_memory(url, agent="second") as client:
        again = await ask(client, "memory_remember", text="Tests run with make.", id="tests", metadata={"a": 1})
        assert again["agent"]["name"] == "second"
        assert (again["memory"]["metadata"]["agent"], again["memory"]["version"]) == ("first", 1)
        changed = await ask(client, "memory_update", id="tests", metadata={"a": 2})
        assert changed["memory"]["metadata"] == {"a": 2, "agent": "second"}
        assert (await refusal(client, "memory_remember", text="Other.", id="tests"))["class"] == "Conflict"
