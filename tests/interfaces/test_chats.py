"""Chats that agents keep: remember_messages, the Agents SDK's session, and the retrievers of two frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

import semmem
from semmem.interfaces.claude_memory import MemoryFiles
from semmem.interfaces.mem0 import Memory
from semmem.interfaces.openai_session import SemmemSession
from semmem.interfaces.tools import run_call
from semmem.model.types import MASK


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as opened:
        yield opened


TALK = [
    {"role": "user", "content": "When does the ferry leave?"},
    {"role": "assistant", "content": [{"type": "text", "text": "At nine."}, {"type": "tool_use", "name": "clock"}]},
    {"role": "tool", "content": None},
    {"role": "user", "name": "ana", "content": "Yes."},
]


def turns(mem: semmem.Semmem, session: str) -> list[tuple[int | None, str | None, str]]:
    found = mem.list(filters={"sessions": [session]})
    return sorted((one.position, one.author, one.text) for one in found)


def test_messages_become_turns_behind_those_that_are_there(mem: semmem.Semmem) -> None:
    assert mem.remember_messages(TALK, session="chat").remembered == 3
    said = [(0, "user", "When does the ferry leave?"), (1, "assistant", "At nine."), (3, "ana", "Yes.")]
    assert turns(mem, "chat") == said
    assert mem.remember_messages([{"role": "user", "content": "Yes."}], session="chat").remembered == 1
    assert turns(mem, "chat") == [*said, (4, "user", "Yes.")]


def test_messages_follow_the_last_turn_however_many_newer_memories_its_session_has(mem: semmem.Semmem) -> None:
    mem.remember_messages(TALK, session="chat")
    mem.remember_many([{"text": f"Note {n}.", "session": "chat"} for n in range(1_001)])
    mem.remember_messages([{"role": "user", "content": "Later."}], session="chat")
    (later,) = (one for one in mem.list(filters={"sessions": ["chat"]}, limit=1))
    assert (later.text, later.position) == ("Later.", 4)


def test_a_whole_chat_given_again_stores_what_is_new(mem: semmem.Semmem) -> None:
    assert mem.remember_messages(TALK, session="chat", position=0).remembered == 3
    again = mem.remember_messages([*TALK, {"role": "assistant", "content": "Fine."}], session="chat", position=0)
    assert (again.remembered, again.unchanged) == (1, 3)
    assert [one.id for one in mem.list(filters={"authors": ["ana"]})] == ["chat:3"]
    with pytest.raises(semmem.Conflict):
        mem.remember_messages([{"role": "user", "content": "Something else."}], session="chat", position=0)


@pytest.mark.parametrize(
    ("messages", "session", "sentence"),
    [
        ("Hello.", "s", "messages must be a list of messages, not str"),
        ({"role": "user", "content": "x"}, "s", "messages must be a list of messages, not dict"),
        ([{"content": "x"}], "s", "Message 1 must be a mapping with 'role' and 'content'"),
        ([{"role": "user", "content": "x"}, "y"], "s", "Message 2 must be"),
        ([{"role": "user", "content": "x"}, {"role": "x"}], "s", "Message 2 has no content, only 'role'; write"),
        ([{"role": "user", "text": "x"}], "s", r"Message 1 has no content, only 'role', 'text'; write .* Nothing was"),
        ([{"role": "user", "content": None}], "s", "The content of message 1 is None; leave it out"),
        (
            [{"role": "user", "content": 5}],
            "s",
            "The content of message 1 must be a string or a list of parts, not int",
        ),
        ([{"role": "user", "content": [5]}], "s", "A part of the content of message 1 must be a string, or a mapping"),
        (
            [{"role": "user", "content": [{"type": "text"}]}],
            "s",
            "with the string 'text' or another 'type', not {'type'",
        ),
        ([], " ", "session must be a name"),
    ],
)
def test_what_is_no_message_is_refused_and_nothing_is_stored(
    mem: semmem.Semmem, messages: object, session: str, sentence: str
) -> None:
    with pytest.raises(semmem.InvalidInput, match=sentence):
        mem.remember_messages(messages, session=session, position=0)  # type: ignore[arg-type]
    assert list(mem.list()) == []


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "function_call": {"name": "clock", "arguments": "{}"}},
        {"role": "tool", "content": None},
        {"role": "user", "content": " "},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
        {"role": "user", "content": ({"type": "tool_result", "tool_use_id": "t1", "content": "09:00"},)},
    ],
)
def test_a_message_that_says_nothing_is_left_out_and_counts_as_a_position(
    mem: semmem.Semmem, message: dict[str, object]
) -> None:
    said = {"role": "user", "content": ("When?", {"type": "text", "text": "Today."})}
    assert mem.remember_messages([message, said], session="chat").remembered == 1
    assert turns(mem, "chat") == [(1, "user", "When?\n\nToday.")]


ITEMS = [
    {"role": "user", "content": "When does the ferry leave?"},
    {"type": "function_call", "call_id": "c1", "name": "timetable", "arguments": '{"to": "Porto"}', "id": "f1"},
    {"type": "function_call_output", "call_id": "c1", "output": "09:00"},
    {"type": "reasoning", "summary": [], "id": "r1"},
    {
        "role": "assistant",
        "type": "message",
        "content": [{"type": "output_text", "text": "At nine.", "annotations": []}],
    },
]


def test_a_session_of_the_agents_sdk_gives_back_what_it_was_given(mem: semmem.Semmem) -> None:
    async def talk() -> None:
        session, other = SemmemSession("chat-7", mem), SemmemSession("chat-8", mem)
        await session.add_items(ITEMS[:2])
        await session.add_items(ITEMS[2:])
        await session.add_items([])
        await other.add_items(ITEMS[:1])
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=2) == ITEMS[-2:]
        assert await session.get_items(limit=0) == []
        assert await session.pop_item() == ITEMS[-1]
        assert await session.get_items(limit=1) == ITEMS[3:4]
        await session.clear_session()
        assert (await session.get_items(), await session.pop_item()) == ([], None)
        assert await other.get_items() == ITEMS[:1]

    asyncio.run(talk())


def test_a_sensitive_item_is_masked_for_readers_in_metadata_too(mem: semmem.Semmem) -> None:
    session = SemmemSession("chat-7", mem)
    asyncio.run(session.add_items(ITEMS[:2]))
    (turn,) = (one for one in mem.list() if "timetable" in one.text)
    hidden = mem.update(turn.id, sensitive=True)
    shown = [hidden, mem.get(turn.id), *mem.list(), *(one.memory for one in mem.history(turn.id))]
    assert not any("Porto" in str(one) for one in shown)
    assert hidden.metadata == {"source": "openai-agents", "item": MASK}
    assert mem.get(turn.id).tag == mem.get(turn.id, reveal=True).tag
    assert asyncio.run(session.get_items()) == ITEMS[:1]  # as no list of turns has it
    with pytest.raises(semmem.InvalidInput, match="The new metadata holds the placeholder of the old text; get"):
        mem.update(turn.id, metadata={**hidden.metadata, "label": "x"})
    mem.update(turn.id, sensitive=False)
    assert asyncio.run(session.get_items()) == ITEMS[:2]


def test_metadata_of_ones_own_is_shown_of_a_sensitive_memory(mem: semmem.Semmem) -> None:
    mem.remember("The safe.", id="s", sensitive=True, metadata={"item": "a safe", "value": 3})
    assert mem.get("s").metadata == {"item": "a safe", "value": 3}


def test_what_was_said_in_a_session_can_be_recalled(mem: semmem.Semmem) -> None:
    asyncio.run(SemmemSession("chat-7", mem).add_items(ITEMS))
    assert mem.recall("timetable Porto", recipe="lexical")[0].memory.text == 'timetable({"to": "Porto"})'
    assert mem.recall("ferry", filters={"sessions": ["chat-7"]}, recipe="lexical")[0].memory.author == "user"


def test_the_agents_sdk_takes_the_session_as_one(mem: semmem.Semmem) -> None:
    agents = pytest.importorskip("agents")
    assert isinstance(SemmemSession("chat-7", mem), agents.memory.Session)


def test_a_session_keeps_a_nul_and_refuses_an_item_that_is_too_long(mem: semmem.Semmem) -> None:
    session = SemmemSession("chat-7", mem)
    odd = {"role": "user", "content": "left\x00right", "note": "Zoë"}
    asyncio.run(session.add_items([odd]))
    assert asyncio.run(session.get_items()) == [odd]
    assert [one.text for one in mem.list()] == ["left\ufffdright"]
    image = {"role": "user", "content": "x" * 1_000_000}
    with pytest.raises(semmem.InvalidInput, match=r"^Item 1 has 1,000,031 characters of JSON, .* Nothing was added\.$"):
        asyncio.run(session.add_items([ITEMS[0], image]))
    with pytest.raises(semmem.InvalidInput, match="Item 0 is not JSON: "):
        asyncio.run(session.add_items([{"role": object()}]))
    assert asyncio.run(session.get_items()) == [odd]


def test_a_session_refuses_what_is_no_item_whole(mem: semmem.Semmem) -> None:
    session = SemmemSession("chat-7", mem)
    with pytest.raises(semmem.InvalidInput, match="must be a mapping, not str"):
        asyncio.run(session.add_items([ITEMS[0], "x"]))
    assert asyncio.run(session.get_items()) == []
    with pytest.raises(semmem.InvalidInput, match="session_id must be a name"):
        SemmemSession(" ", mem)


def test_langchain_retrieves_documents(mem: semmem.Semmem) -> None:
    pytest.importorskip("langchain_core")
    from semmem.interfaces.langchain import SemmemRetriever

    mem.remember("The ferry leaves at nine.", id="a", title="Ferry", metadata={"page": 3}, tags=["boat"])
    mem.remember("The train leaves at ten.", id="b")
    retriever = SemmemRetriever(mem, limit=1, recipe="lexical")
    (document,) = retriever.invoke("ferry")
    assert (document.id, document.page_content) == ("a", "The ferry leaves at nine.")
    assert (document.metadata["page"], document.metadata["title"], document.metadata["tags"]) == (3, "Ferry", ["boat"])
    assert document.metadata["score"] == mem.recall("ferry", recipe="lexical")[0].score
    assert [one.id for one in asyncio.run(retriever.ainvoke("train"))] == ["b"]
    assert SemmemRetriever(mem, filters={"tags": ["none"]}).invoke("ferry") == []


def interfaces() -> dict[str, Callable[..., Any]]:
    """Return what opens each interface that takes an open memory, by name, less those whose package is missing."""
    found: dict[str, Callable[..., Any]] = {
        "session": lambda memory, **given: SemmemSession("chat-7", memory, **given),
        "claude": lambda memory, **given: MemoryFiles(memory, **given),
        "tools": lambda memory, **given: run_call(memory, "memory_list", {}, **given),
        "mem0": lambda memory, **given: Memory(memory=memory, **given),
    }
    for name, module, attribute in (
        ("langchain", "semmem.interfaces.langchain", "SemmemRetriever"),
        ("llama-index", "semmem.interfaces.llama_index", "SemmemRetriever"),
        ("langgraph", "semmem.interfaces.langgraph", "SemmemStore"),
    ):
        with suppress(semmem.MissingExtra):
            found[name] = getattr(import_module(module), attribute)
    return found


@pytest.mark.parametrize("name", ["session", "claude", "tools", "mem0", "langchain", "llama-index", "langgraph"])
def test_a_interface_refuses_what_is_no_memory_or_no_namespace_in_one_sentence(mem: semmem.Semmem, name: str) -> None:
    opens = interfaces().get(name) or pytest.skip(f"{name} is not installed")
    for wrong, kind in (("sqlite::memory:", "str"), (5, "int"), (semmem.Semmem, "Semmem"), (object(), "object")):
        with pytest.raises(semmem.InvalidInput) as refused:
            opens(wrong)
        assert str(refused.value) == f"memory must be an open Semmem, as semmem.connect() returns one, not {kind}."
    with pytest.raises(semmem.InvalidInput, match=r"this one is for asyncio; give the one behind it, mem\.semmem"):
        opens(semmem.AsyncSemmem(mem))
    for empty in (5, ""):
        with pytest.raises(semmem.InvalidInput, match=r"^namespace must be a (string|name)"):
            opens(mem, namespace=empty)


@pytest.mark.parametrize("name", ["langchain", "llama-index"])
def test_a_retriever_refuses_a_limit_and_filters_that_are_none(mem: semmem.Semmem, name: str) -> None:
    opens = interfaces().get(name) or pytest.skip(f"{name} is not installed")
    for limit in ("5", "x", 2.5, None, True):
        with pytest.raises(semmem.InvalidInput, match=rf"^limit must be a whole number, such as 10, not {limit!r}\.$"):
            opens(mem, limit=limit)
    with pytest.raises(semmem.InvalidInput, match=r"^'tag' is not a filter; use sessions"):
        opens(mem, filters={"tag": "x"})
    with pytest.raises(semmem.InvalidInput, match=r"^limit must be from 1 to 1000"):
        opens(mem, limit=0).invoke("ferry") if name == "langchain" else opens(mem, limit=0).retrieve("ferry")


def test_a_setting_that_langchains_retriever_has_not_is_named(mem: semmem.Semmem) -> None:
    opens = interfaces().get("langchain") or pytest.skip("langchain is not installed")
    with pytest.raises(
        semmem.InvalidInput, match=(r"^'k' is not a setting of the retriever; choose one of " r"namespace, limit")
    ):
        opens(mem, k=3)
    with pytest.raises(
        semmem.InvalidInput, match=r"^tags of the retriever cannot be 5: Input should be a valid list\.$"
    ):
        opens(mem, tags=5)


@pytest.mark.parametrize("limit", ["5", 2.5, True])
def test_a_session_refuses_a_limit_that_is_none_and_one_item_that_is_no_list(mem: semmem.Semmem, limit: Any) -> None:
    session = SemmemSession("chat-7", mem)
    with pytest.raises(semmem.InvalidInput, match=r"^limit must be a whole number, such as 10, or None for all, not"):
        asyncio.run(session.get_items(limit))
    for one in (ITEMS[0], "x", 5):
        with pytest.raises(
            semmem.InvalidInput, match=r"^add_items takes a list of items, not one (dict|str|int); noth"
        ):
            asyncio.run(session.add_items(one))  # type: ignore[arg-type]
    with pytest.raises(semmem.InvalidInput, match=r"^Item 1 has a key that is not a string, which JSON does not allow"):
        asyncio.run(session.add_items([ITEMS[0], {"role": "user", "content": [{1: 2}]}]))
    assert asyncio.run(session.get_items()) == []


@pytest.mark.parametrize("question", [5, None, ["ferry"]])
def test_llama_index_refuses_what_is_no_question(mem: semmem.Semmem, question: Any) -> None:
    opens = interfaces().get("llama-index") or pytest.skip("llama-index is not installed")
    for asked in (opens(mem).retrieve, lambda one: asyncio.run(opens(mem).aretrieve(one))):
        with pytest.raises(semmem.InvalidInput, match=r"^A question must be a string or a QueryBundle, not "):
            asked(question)


def test_llama_index_retrieves_nodes(mem: semmem.Semmem) -> None:
    pytest.importorskip("llama_index.core")
    from semmem.interfaces.llama_index import SemmemRetriever

    mem.remember("The ferry leaves at nine.", id="a", title="Ferry", metadata={"page": 3})
    mem.remember("The train leaves at ten.", id="b")
    (found,) = SemmemRetriever(mem, limit=1, recipe="lexical").retrieve("ferry")
    assert (found.node.node_id, found.node.get_content()) == ("a", "The ferry leaves at nine.")
    assert found.node.metadata["page"] == 3
    assert found.score == mem.recall("ferry", recipe="lexical")[0].score


def test_a_prompt_gets_of_a_llama_index_node_what_tells_a_model_something(mem: semmem.Semmem) -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    from semmem.interfaces.llama_index import SemmemRetriever

    mem.remember(
        "The ferry leaves at nine.", id="a", title="Ferry", author="Ada", tags=["sea"], metadata={"page": 3},
        created_at="2026-05-01", source_type="user", importance=0.7, session="s", source="log",
    )  # fmt: skip
    (found,) = SemmemRetriever(mem, recipe="lexical").retrieve("ferry")
    assert found.node.get_content(schema.MetadataMode.LLM).splitlines() == [
        "page: 3", "title: Ferry", "author: Ada", "created_at: 2026-05-01T00:00:00+00:00", "source_type: user", "",
        "The ferry leaves at nine.",
    ]  # fmt: skip
    assert {"id", "tags", "importance", "session", "source"} <= found.node.metadata.keys()
