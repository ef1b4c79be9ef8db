"""Chats that agents keep: remember_messages, the Agents SDK's session, and the retrievers of two frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import semmem
from semmem.doors.openai_session import SemmemSession


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:") as opened:
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
        ([], " ", "session must be a name"),
    ],
)
def test_what_is_no_message_is_refused_and_nothing_is_stored(
    mem: semmem.Semmem, messages: object, session: str, sentence: str
) -> None:
    with pytest.raises(semmem.InvalidInput, match=sentence):
        mem.remember_messages(messages, session=session, position=0)  # type: ignore[arg-type]
    assert list(mem.list()) == []


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


def test_what_was_said_in_a_session_can_be_recalled(mem: semmem.Semmem) -> None:
    asyncio.run(SemmemSession("chat-7", mem).add_items(ITEMS))
    assert mem.recall("timetable Porto")[0].memory.text == 'timetable({"to": "Porto"})'
    assert mem.recall("ferry", filters={"sessions": ["chat-7"]})[0].memory.author == "user"


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
    with pytest.raises(semmem.InvalidInput, match="Item 0 is no JSON: "):
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
    from semmem.doors.langchain import SemmemRetriever

    mem.remember("The ferry leaves at nine.", id="a", title="Ferry", metadata={"page": 3}, tags=["boat"])
    mem.remember("The train leaves at ten.", id="b")
    retriever = SemmemRetriever(mem, limit=1, recipe="lexical")
    (document,) = retriever.invoke("ferry")
    assert (document.id, document.page_content) == ("a", "The ferry leaves at nine.")
    assert (document.metadata["page"], document.metadata["title"], document.metadata["tags"]) == (3, "Ferry", ["boat"])
    assert document.metadata["score"] == mem.recall("ferry", recipe="lexical")[0].score
    assert [one.id for one in asyncio.run(retriever.ainvoke("train"))] == ["b"]
    assert SemmemRetriever(mem, filters={"tags": ["none"]}).invoke("ferry") == []


def test_llama_index_retrieves_nodes(mem: semmem.Semmem) -> None:
    pytest.importorskip("llama_index.core")
    from semmem.doors.llama_index import SemmemRetriever

    mem.remember("The ferry leaves at nine.", id="a", title="Ferry", metadata={"page": 3})
    mem.remember("The train leaves at ten.", id="b")
    (found,) = SemmemRetriever(mem, limit=1, recipe="lexical").retrieve("ferry")
    assert (found.node.node_id, found.node.get_content()) == ("a", "The ferry leaves at nine.")
    assert found.node.metadata["page"] == 3
    assert found.score == mem.recall("ferry", recipe="lexical")[0].score
