"""The tools and resources of the MCP server, through the SDK's own client, which checks every result by its schema."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import semmem
from semmem.embedders.hashing import Hashing
from semmem.interfaces.mcp import table
from semmem.interfaces.mcp.opening import Opening
from semmem.interfaces.mcp.server import Handlers, server_of
from semmem.interfaces.mcp.table import TOOLS
from tests.interfaces.mcp.clients import BOTH, ask, in_memory, refusal

pytestmark = pytest.mark.anyio


@BOTH
async def test_every_tool_says_what_it_takes_gives_and_does(url: str, mode: str) -> None:
    async with in_memory(url, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    hints = {}
    for name, tool in tools.items():
        assert tool.description
        assert all(tool.input_schema["properties"][one] for one in tool.input_schema.get("required", ()))
        assert (tool.output_schema is not None) == (name in ("search", "fetch"))
        told = tool.annotations
        assert told is not None
        assert told.title
        assert told.open_world_hint is False
        reads = bool(told.read_only_hint)  # what is not said is the protocol's own default
        hints[name] = (reads, not reads and told.destructive_hint is not False, reads or bool(told.idempotent_hint))
    reads = (True, False, True)
    assert hints == {
        "memory_remember": (False, False, False),
        "memory_recall": reads,
        "memory_context": reads,
        "memory_get": reads,
        "memory_history": reads,
        "memory_list": reads,
        "memory_update": (False, True, True),
        "memory_link": (False, True, True),
        "memory_forget": (False, True, True),
        "memory_feedback": (False, False, True),
        "memory_explain": reads,
        "search": reads,
        "fetch": reads,
    }


async def test_the_instructions_name_tools_that_there_are_and_the_personal_namespace(url: str) -> None:
    async with in_memory(url, mode="legacy") as client:
        told = client.instructions
    assert told is not None
    assert '"personal"' in told
    named = {word.strip(".,:") for word in told.split() if word.startswith("memory_")}
    assert named <= {tool.name for tool in TOOLS}
    assert named == {"memory_recall", "memory_remember", "memory_update", "memory_forget"}


@BOTH
async def test_a_memory_lives_through_every_tool(url: str, mode: str) -> None:
    async with in_memory(url, mode=mode) as client:
        stored = (await ask(client, "memory_remember", text="The Kestrel is our logger.", title="Kestrel"))["memory"]
        assert (stored["namespace"], stored["version"], stored["metadata"]) == ("default", 1, {"agent": "tester"})
        found = await ask(client, "memory_recall", query="what is the Kestrel?")
        (hit,) = found["hits"]
        assert (hit["id"], hit["text"], hit["rank"]) == (stored["id"], "The Kestrel is our logger.", 1)
        assert sum(hit["components"].values()) == pytest.approx(hit["score"], abs=1e-12)
        assert found["left_out"] == []
        packed = await ask(client, "memory_recall", query="what is the Kestrel?", token_budget=5)
        assert (packed["hits"], [one["id"] for one in packed["left_out"]]) == ([], [stored["id"]])
        got = (await ask(client, "memory_get", id=stored["id"]))["memory"]
        assert (got.pop("access_count"), got.pop("last_accessed") > stored["created_at"], got) == (1, True, stored)
        for order in ("accessed", "importance"):
            (listed,) = (await ask(client, "memory_list", sort_by=order))["memories"]
            assert (listed["id"], listed["access_count"]) == (stored["id"], 1)
        changed = await ask(client, "memory_update", id=stored["id"], text="The Kestrel was our logger.", title=None)
        assert (changed["memory"]["version"], "title" in changed["memory"]) == (2, False)
        before, now = (await ask(client, "memory_history", id=stored["id"]))["versions"]
        assert (await ask(client, "memory_history", id=stored["id"], offset=5))["versions"] == []
        assert (before["memory"], before["changed"], before["diff"]) == (stored, [], "")
        assert (now["memory"], now["changed"], now["changed_by"]) == (changed["memory"], ["text", "title"], "tester")
        assert now["diff"].startswith("title: 'Kestrel' -> None\n--- version 1\n+++ version 2")
        assert (await ask(client, "memory_get", id=stored["id"], as_of=now["changed_at"]))["memory"] == now["memory"]
        assert (await ask(client, "memory_get", id=stored["id"], as_of=stored["created_at"]))["memory"] == stored
        (listed,) = (await ask(client, "memory_list"))["memories"]
        assert {name: listed[name] for name in changed["memory"]} == changed["memory"]
        why = await ask(client, "memory_explain", id=stored["id"], query="what is the Kestrel?")
        assert why["explanation"]["returned"] is True
        assert why["in_words"].startswith(stored["id"])
        asked = {"id": stored["id"], "query": "what is the Kestrel?"}
        then = await ask(client, "memory_explain", **asked, as_of="2001-05-03")
        assert then["explanation"]["not_valid"].startswith("no version of it was valid on 3 May 2001")
        packed = await ask(client, "memory_explain", **asked, token_budget=2)
        assert "no room for it in a budget of 2 tokens" in packed["in_words"]
        newer = (await ask(client, "memory_remember", text="Our logger is the Heron now."))["memory"]
        linked = {"id": newer["id"], "type": "supersedes", "to": stored["id"]}
        made = await ask(client, "memory_link", **linked)
        assert (made["linked"], made["unlinked"]) == (True, False)
        (link,) = [one for one in made["links"] if one["type"] == "supersedes"]
        assert (link["from_id"], link["type"], link["to_id"]) == tuple(linked.values())
        assert link["made_by"] == "tester"
        hits = (await ask(client, "memory_recall", query="what is the Kestrel?"))["hits"]
        assert [(hit["id"], hit.get("superseded_by")) for hit in hits] == [
            (newer["id"], None), (stored["id"], newer["id"]),
        ]  # fmt: skip
        taken = await ask(client, "memory_link", **linked, remove=True)
        assert (taken["linked"], taken["unlinked"]) == (False, True)
        assert [one["type"] for one in taken["links"]] == ["contradicts"]
        await ask(client, "memory_forget", id=newer["id"])
        assert (await ask(client, "memory_forget", id=stored["id"], dry_run=True))["forgotten"] == 1
        assert (await ask(client, "memory_forget", id=stored["id"]))["forgotten"] == 1
        await ask(client, "memory_remember", text="The Osprey is a boat.")
        for whole in ({"dry_run": True}, {"hard": True}):
            assert (await ask(client, "memory_forget", everything=True, **whole))["forgotten"] == 1
        assert (await ask(client, "memory_list"))["memories"] == []
        assert (await ask(client, "memory_recall", query="what is the Kestrel?"))["hits"] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "code", "sentence"),
    [
        ("memory_recall", {"query": " "}, "InvalidInput", -32602, "The query is empty;"),
        ("memory_recall", {}, "InvalidInput", -32602, "memory_recall needs query; it takes query, namespace, limit"),
        ("memory_recall", {"query": "x", "top_k": 3}, "InvalidInput", -32602, "memory_recall has no argument 'top_k'"),
        ("memory_recall", {"query": "x", "limit": 1001}, "InvalidInput", -32602, "limit must be from 1 to 1000"),
        (
            "memory_recall",
            {"query": "x", "limit": "5"},
            "InvalidInput",
            -32602,
            'number from 1 to 1000, not "5".',
        ),
        ("memory_recall", {"query": 5}, "InvalidInput", -32602, "query must be a string, not 5."),
        (
            "memory_recall",
            {"query": "x", "namespace": 5},
            "InvalidInput",
            -32602,
            "a string or a list of strings, not 5.",
        ),
        (
            "memory_remember",
            {"text": True},
            "InvalidInput",
            -32602,
            "text must be a string, not true; nothing was",
        ),
        (
            "memory_remember",
            {"text": "x", "tags": ["a", 1]},
            "InvalidInput",
            -32602,
            "tags[1] must be a string, not 1;",
        ),
        (
            "memory_recall",
            {"query": "x", "filters": {"tags": {}}},
            "InvalidInput",
            -32602,
            "filters.tags must be a list of",
        ),
        ("memory_list", {"filters": 5}, "InvalidInput", -32602, "filters must be an object, not 5."),
        ("memory_recall", {"query": "x", "recipe": "no"}, "UnknownRecipe", -32602, "There is no recipe"),
        ("memory_recall", {"query": "x", "filters": {"a": 1}}, "InvalidInput", -32602, "'a' is not a filter; use"),
        ("memory_recall", {"query": "x", "namespace": []}, "InvalidInput", -32602, "namespace must be a name"),
        ("memory_context", {"query": " "}, "InvalidInput", -32602, "The query is empty;"),
        ("memory_context", {"query": "x", "token_budget": 0}, "InvalidInput", -32602, "token_budget must be a whole"),
        ("memory_list", {"limit": 1001}, "InvalidInput", -32602, "limit must be from 1 to 1000, not 1001;"),
        ("memory_list", {"cursor": "?"}, "InvalidInput", -32602, "cursor"),
        ("memory_remember", {"text": ""}, "InvalidInput", -32602, "The text is empty"),
        ("memory_remember", {"text": "x", "importance": 2}, "InvalidInput", -32602, "importance must be a number from"),
        ("memory_remember", {"text": "x", "metadata": 3}, "InvalidInput", -32602, "metadata must be an object, not 3;"),
        ("memory_remember", {"text": "other", "id": "known"}, "Conflict", -32009, "known"),
        (
            "memory_get",
            {"id": "nowhere"},
            "NotFound",
            -32002,
            "in namespace 'default' or 'personal'; memory_recall gives",
        ),
        ("memory_get", {"id": "nowhere", "namespace": "x"}, "NotFound", -32002, "in namespace 'x'"),
        ("memory_get", {"id": 3}, "InvalidInput", -32602, "id must be a string"),
        ("memory_update", {"id": "nowhere", "text": "x"}, "NotFound", -32002, "There is no memory 'nowhere'"),
        ("memory_update", {"id": "known", "text": "x", "expected_version": 9}, "Conflict", -32009, "version"),
        ("memory_link", {"id": "known", "type": "like", "to": "x"}, "InvalidInput", -32602, "There is no type of link"),
        ("memory_link", {"id": "known", "type": "see-also", "to": "x"}, "NotFound", -32002, "There is no memory 'x'"),
        ("memory_forget", {}, "InvalidInput", -32602, "Say what to forget"),
        ("memory_forget", {"everything": True}, "InvalidInput", -32602, "A whole namespace is forgotten for good"),
        ("memory_forget", {"id": "nowhere"}, "NotFound", -32002, "There is no memory 'nowhere'"),
        ("memory_get", {"id": "known", "as_of": "then"}, "InvalidInput", -32602, "as_of must be an ISO 8601 time"),
        ("memory_explain", {"id": "nowhere", "query": "x"}, "NotFound", -32002, "There is no memory 'nowhere'"),
        ("fetch", {"id": "semmem://memory/x"}, "InvalidInput", -32602, "A memory's resource is semmem://memory/"),
        ("fetch", {"id": "semmem://memory/x/y"}, "NotFound", -32002, "There is no memory 'y' in namespace 'x'"),
    ],
)
async def test_what_cannot_be_done_is_an_error_of_the_tool_that_says_what_to_do(
    url: str, tool: str, arguments: dict[str, Any], kind: str, code: int, sentence: str
) -> None:
    async with in_memory(url) as client:
        await ask(client, "memory_remember", text="The key hangs behind the radio.", id="known")
        error = await refusal(client, tool, **arguments)
        assert (error["class"], error["code"]) == (kind, code)
        assert sentence in error["message"]
        (left,) = (await ask(client, "memory_list"))["memories"]
        assert left["version"] == 1


async def test_a_context_has_what_is_pinned_and_what_answers_within_its_budget(url: str) -> None:
    async with in_memory(url) as client:
        await ask(
            client, "memory_remember", text="Ada wants short answers.", id="ada", namespace="personal", pinned=True
        )
        await ask(client, "memory_remember", text="The Kestrel is our logger.", id="kestrel")
        told = await ask(client, "memory_context", query="what is the Kestrel?")
        assert [(one["id"], one["namespace"], one["pinned"]) for one in told["shown"]] == [
            ("ada", "personal", True), ("kestrel", "default", False),
        ]  # fmt: skip
        assert told["text"].startswith("<semmem-memories>\n")
        assert "The Kestrel is our logger." in told["text"]
        assert told["tokens"] <= told["token_budget"] == 2000
        assert told["scope"]["recalled"] == ["default", "personal"]
        assert (await ask(client, "memory_get", id=told["shown"][0]["uri"].rpartition("/")[2]))["memory"]["id"] == "ada"
        less = await ask(client, "memory_context", query="what is the Kestrel?", token_budget=70)
        assert (less["text"], less["shown"], len(less["left_out"])) == ("", [], 2)
        alone = await ask(client, "memory_context", query="what is the Kestrel?", namespace="default")
        assert [one["id"] for one in alone["shown"]] == ["kestrel"]


@BOTH
async def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(url: str, mode: str) -> None:
    async with in_memory(url, mode=mode) as client:
        with pytest.raises(
            MCPError, match="There is no tool 'memory_recal' here; choose one of memory_remember, memory_recall"
        ):
            await client.call_tool("memory_recal", {"query": "x"})


async def test_a_store_that_cannot_be_opened_is_told_by_the_call_that_needs_it(tmp_path: Path) -> None:
    async with in_memory(f"sqlite:{tmp_path}/no/such/folder/notes.db") as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
        error = await refusal(client, "memory_recall", query="where is the key?")
        assert "folder" in error["message"]
        assert error["class"] in ("InvalidInput", "StoreUnavailable")


async def test_what_nobody_foresaw_is_an_error_of_the_tool_too(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the\ndisk is on fire")

    monkeypatch.setattr(semmem.Semmem, "list", broken)
    async with in_memory(url) as client:
        error = await refusal(client, "memory_list")
    assert error == {
        "class": "SemmemError",
        "code": -32603,
        "message": "The memory failed at this; the log of its server says why.",
    }
    assert "the\ndisk is on fire" in caplog.text


async def test_a_resource_that_fails_says_nothing_of_the_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(semmem.Semmem, "stats", broken)
    async with in_memory(url) as client:
        with pytest.raises(MCPError, match="The memory failed at this; the log of its server says why") as told:
            await client.read_resource("semmem://stats")
    assert "fire" not in str(told.value.error)


async def test_a_thousand_hits_are_returned_where_a_thousand_are_asked_for(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        mem.remember_many({"text": f"The logger wrote line {n}."} for n in range(1_010))
    async with in_memory(url) as client:
        found = await ask(client, "memory_recall", query="logger", limit=1_000)
        assert len(found["hits"]) == 1_000
        page = await ask(client, "memory_list", limit=1_000)
        assert len(page["memories"]) == 1_000
        rest = await ask(client, "memory_list", limit=1_000, cursor=page["cursor"])
        assert (len(rest["memories"]), rest["cursor"]) == (10, None)


async def test_a_hit_of_a_long_text_shows_the_passage_and_get_shows_it_all(url: str) -> None:
    whole = "\n\n".join([*["The sea was calm that day, and nothing else happened."] * 200, "The Kestrel sank at noon."])
    async with in_memory(url) as client:
        stored = (await ask(client, "memory_remember", text=whole))["memory"]
        (hit,) = (await ask(client, "memory_recall", query="when did the Kestrel sink?"))["hits"]
        assert hit["cut"] is True
        assert len(hit["text"]) <= 2_000
        assert "The Kestrel sank at noon." in hit["text"]
        assert (await ask(client, "memory_get", id=stored["id"]))["memory"]["text"] == whole


async def test_search_and_fetch_have_the_shape_of_a_connector(url: str) -> None:
    async with in_memory(url) as client:
        text, source = "The Kestrel is our logger.", "https://example.org/kestrel"
        await ask(client, "memory_remember", text=text, title="Kestrel", source=source, id="a/b", namespace="personal")
        found = await ask(client, "search", query="Kestrel")
        (result,) = found["results"]
        uri = "semmem://memory/personal/a%2Fb"
        assert list(found) == ["results"]
        assert result == {"id": uri, "title": "Kestrel", "text": text, "url": source}
        fetched = await ask(client, "fetch", id=uri)
        assert {key: fetched[key] for key in ("id", "title", "text", "url")} == result
        assert fetched["metadata"]["namespace"] == "personal"
        untitled = (await ask(client, "memory_remember", text="Gulls " * 50))["memory"]
        shown = await ask(client, "fetch", id=untitled["id"])
        assert (len(shown["title"]), shown["url"]) == (80, untitled["uri"])


@BOTH
async def test_a_memory_and_the_counts_are_resources(url: str, mode: str) -> None:
    async with in_memory(url, mode=mode) as client:
        stored = (await ask(client, "memory_remember", text="Grün ist die Heide.", id="é 1"))["memory"]
        stats, recalls = (await client.list_resources()).resources
        template, entry = (await client.list_resource_templates()).resource_templates
        assert (str(stats.uri), template.uri_template) == ("semmem://stats", "semmem://memory/{namespace}/{id}")
        assert (str(recalls.uri), entry.uri_template) == ("semmem://recalls", "semmem://recalls/{id}")
        (read,) = (await client.read_resource(stored["uri"])).contents
        assert json.loads(read.text) == stored  # type: ignore[union-attr]  # it is text
        (counts,) = (await client.read_resource("semmem://stats")).contents
        told = json.loads(counts.text)  # type: ignore[union-attr]
        assert (told["store"]["memories"], told["scope"]["namespace"]) == (1, "default")
        for uri, part in (("semmem://memory/default/no", "There is no memory 'no'"), ("semmem://x", "semmem://stats")):
            with pytest.raises(MCPError, match=part) as caught:
                await client.read_resource(uri)
            assert caught.value.error.code == -32002


async def test_nothing_is_opened_before_a_call_needs_it(url: str, tmp_path: Path) -> None:
    async with in_memory(url, prepare=False) as client:
        await client.list_tools()
        await client.list_resources()
        await client.list_resource_templates()
        assert not (tmp_path / "notes.db").exists()
        await ask(client, "memory_list")
        assert (tmp_path / "notes.db").exists()


async def test_behind_the_list_of_tools_the_store_is_opened_and_the_model_loaded(store_url: str) -> None:
    loaded = threading.Event()

    class Watched(Hashing):
        def embed(self, texts: Any) -> Any:
            loaded.set()
            return super().embed(texts)

    opening = Opening(lambda: semmem.connect(store_url, embedder=Watched(), pool_size=2))
    try:
        async with Client(server_of(Handlers(opening))) as client:
            assert not loaded.is_set()
            await client.list_tools()
            assert await anyio.to_thread.run_sync(loaded.wait, 60)
    finally:
        opening.close()


async def test_a_model_that_cannot_be_loaded_leaves_the_other_legs(store_url: str, tmp_path: Path) -> None:
    opening = Opening(lambda: semmem.connect(store_url, model=str(tmp_path / "no"), pool_size=4))
    try:
        async with Client(server_of(Handlers(opening))) as client:
            await client.list_tools()
            stored = await ask(client, "memory_remember", text="The key hangs behind the radio.")
            assert stored["memory"]["namespace"] == "default"
            assert len((await ask(client, "memory_recall", query="where is the key?"))["hits"]) == 1
    finally:
        opening.close()


def test_a_store_that_is_closed_is_not_opened_again() -> None:
    opening = Opening(lambda: pytest.fail("it was opened"))
    opening.close()
    with pytest.raises(semmem.StoreClosed, match="This server is stopping"):
        opening.memory()


def test_the_tools_are_rows_of_one_table() -> None:
    assert len({tool.name for tool in table.TOOLS}) == len(table.TOOLS)
    for tool in table.TOOLS:
        assert set(tool.required) <= set(tool.arguments)


async def test_a_recall_in_a_namespace_that_holds_nothing_says_so(url: str) -> None:
    async with in_memory(url) as client:
        await ask(client, "memory_remember", text="The ferry leaves at nine.", namespace="docs")
        found = await ask(client, "memory_recall", query="ferry", namespace="dosc")
        assert found["hits"] == []
        assert found["nothing"] == (
            "No memory of namespace 'dosc' matches: it is empty, or filters, exclude or as_of leave none."
        )
        assert "nothing" not in await ask(client, "memory_recall", query="ferry", namespace="docs")
