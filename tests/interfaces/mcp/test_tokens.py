"""What a model pays for a memory, in tokens of a real vocabulary: no tool, answer or context may cost more again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import semmem
from eval.tokens import BUDGET, FACTS, PARAGRAPH, QUESTION, counter, tool_tokens
from semmem.interfaces.mcp.table import chosen
from semmem.model.errors import NotFound
from tests.interfaces.mcp.clients import ROOT, in_memory

pytestmark = pytest.mark.anyio
count = counter()


async def said(client: Client, tool: str, **arguments: Any) -> str:
    """Return what a model is shown of an answer: one text, with no second form beside a text that is no JSON."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    (content,) = result.content
    text = str(content.text)  # type: ignore[union-attr]  # it is text
    assert result.structured_content in (None, json.loads(text) if text.startswith("{") else None)
    return text


def in_docs() -> dict[str, int]:
    """Return the tokens of tools in the table of docs/mcp.md."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    return {
        name: int(number) for name, number in re.findall(r"^\| `(memory_\w+|search|fetch)` \| (\d+) \|", page, re.M)
    }


async def test_the_default_tools_cost_what_the_page_says_and_less_than_their_budget(url: str) -> None:
    async with in_memory(url, tools=chosen(["core"])) as client:
        core = await tool_tokens(client, count)
    assert list(core) == ["memory_remember", "memory_recall", "memory_get", "memory_update", "memory_forget"]
    assert sum(core.values()) <= BUDGET["tools"] == 1_200
    assert in_docs() == core


async def test_five_facts_are_remembered_and_recalled_within_their_budget(store_url: str) -> None:
    async with in_memory(store_url) as client:
        for fact in FACTS:
            stored = await said(client, "memory_remember", text=fact)
            assert count(stored) <= BUDGET["remember"] == 40
            assert [*json.loads(stored)] == ["id"]
        found = await said(client, "memory_recall", query=QUESTION, limit=5, min_confidence=0)
        assert count(found) <= BUDGET["recall of five facts"] == 250
        values = json.loads(found)
        assert [*values][:2] == ["confidence", "hits"]
        assert {hit["text"] for hit in values["hits"]} == set(FACTS)
        for hit in values["hits"]:
            assert [*hit] == ["id", "score", "text", "created_at"]
            assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}", hit["id"])
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", hit["created_at"])
            assert hit["score"] == round(hit["score"], 3)
            got = json.loads(await said(client, "memory_get", id=hit["id"]))
            assert got == {"id": hit["id"], "text": hit["text"], "created_at": hit["created_at"]}
        whole = json.loads(await said(client, "memory_recall", query=QUESTION, verbose=True, min_confidence=0))
        assert len(whole["hits"][0]["id"]) == 36
        assert {"components", "version", "uri", "metadata"} <= set(whole["hits"][0])
        assert {"scope", "agent", "recipe", "total"} <= set(whole)


async def test_older_memories_are_named_with_an_id_and_a_few_words_where_some_are_near(store_url: str) -> None:
    async with in_memory(store_url) as client:
        for day in ("Fridays", "Thursdays"):
            await said(client, "memory_remember", text=f"The deploy of the harbour office runs on {day} at nine. " * 3)
        stored = await said(client, "memory_remember", text="The deploy of the harbour office runs on Mondays at nine.")
        assert 40 < count(stored) <= BUDGET["remember beside two older ones"] == 100
        values = json.loads(stored)
        assert [*values] in (["id", "older"], ["id", "contradicts", "older"])
        for older in values["older"]:
            assert [*older] == ["id", "text"]
            assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}", older["id"])
            assert older["text"].startswith("The deploy of the harbour office runs on")
            assert older["text"].endswith("…")
            assert len(older["text"]) <= 64
        assert len(values["older"]) == 2
        unlike = json.loads(await said(client, "memory_remember", text="Zinc boils at 907 degrees."))
        assert [*unlike] == ["id"]


async def test_what_is_not_as_usual_stands_in_a_brief_answer(url: str) -> None:
    async with in_memory(url) as client:
        given = {
            "text": "Ada wants short answers.",
            "title": "Ada",
            "importance": 0.9,
            "source_type": "user",
            "id": "ada",
        }
        more = {"tags": ["taste"], "metadata": {"a": 1, "agent": "tester"}, "namespace": "personal", "pinned": True}
        stored = json.loads(await said(client, "memory_remember", **given, **more))
        assert stored == {"id": "ada"}  # in the namespace that the call named
        assert json.loads(await said(client, "memory_update", id="ada", title=None)) == {
            "id": "ada", "version": 2, "namespace": "personal",
        }  # fmt: skip
        got = json.loads(await said(client, "memory_get", id="ada"))
        assert {name: value for name, value in got.items() if not name.endswith("_at")} == {
            "id": "ada", "namespace": "personal", "text": "Ada wants short answers.", "tags": ["taste"],
            "metadata": {"a": 1}, "importance": 0.9, "version": 2, "pinned": True, "source_type": "user",
        }  # fmt: skip
        nothing = json.loads(await said(client, "memory_recall", query="zebras"))
        assert nothing["hits"] == []
        assert nothing["nothing"].startswith("Nothing stored seems to answer this")
        assert json.loads(await said(client, "memory_list")) == {"memories": []}


async def test_a_context_costs_little_more_than_its_texts(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [PARAGRAPH.format(n=n) for n in range(1, 9)]
    ids = (f"019abe6b-5f{n}a-7c3d-9e41-b2d8f07a6c5{n}" for n in range(1, 9))  # other ones are a few tokens more or less
    monkeypatch.setattr("semmem.write.items.uuid7", lambda: next(ids))
    with semmem.connect(store_url, embedder="hashing") as mem:
        for text in texts:
            mem.remember(text)
        block = mem.context("the timetable of the ferry", token_budget=4_000)
    assert len(block.hits) == 8
    assert count(block.text) <= BUDGET["context / its texts"] * sum(map(count, texts))
    async with in_memory(store_url) as client:
        told = await said(client, "memory_context", query="the timetable of the ferry", token_budget=4_000)
    assert told.startswith(f"confidence {block.confidence:.3f}".rstrip("0"))
    assert told.endswith(block.text.rstrip("\n"))


def test_tools_are_chosen_by_name_and_a_wrong_name_is_told() -> None:
    assert [tool.name for tool in chosen(["recall", " memory_list"])] == ["memory_recall", "memory_list"]
    assert len(chosen(["all"])) == 13
    assert [tool.name for tool in chosen(["core", "search", "fetch"])][-2:] == ["search", "fetch"]
    with pytest.raises(NotFound, match=r"There is no tool 'recal'; choose core, all, or some of remember, recall, "):
        chosen(["recal"])


async def test_a_tool_that_is_not_offered_is_told_apart_from_one_that_there_is_not(url: str) -> None:
    async with in_memory(url, tools=chosen(["recall"])) as client:
        for tool, more in (("memory_list", True), ("memory_dance", False)):
            with pytest.raises(Exception, match=f"There is no tool '{tool}' here; choose one of memory_recall") as told:
                await client.call_tool(tool, {})
            assert ("can offer more of them with --tools" in str(told.value)) is more


def test_the_page_has_the_budget() -> None:
    page = Path(ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    for number in ("1,200", "250", "40", "100", "1.15"):
        assert f"| {number} |" in page
