"""Clients of OpenAI and Anthropic with a memory, against a local server that speaks their APIs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import semmem
from tests.docs.pages import blocks

FACT = "The ferry to Heron Island leaves at nine."
QUESTION = "When does the ferry to Heron Island leave?"
REPLY = "It leaves at nine."


def chat(asked: dict[str, Any], words: list[str]) -> tuple[dict[str, Any], list[tuple[str | None, dict[str, Any]]]]:
    """Return a reply of OpenAI's chat completions, whole and as events."""
    head = {"id": "c1", "created": 1, "model": asked["model"]}
    message = {"role": "assistant", "content": "".join(words)}
    whole = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }
    deltas = [{"index": 0, "delta": {"content": word}, "finish_reason": None} for word in words]
    deltas.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return whole, [(None, {**head, "object": "chat.completion.chunk", "choices": [one]}) for one in deltas]


def responses(
    asked: dict[str, Any], words: list[str]
) -> tuple[dict[str, Any], list[tuple[str | None, dict[str, Any]]]]:
    """Return a reply of OpenAI's responses, whole and as events."""
    text = {"type": "output_text", "text": "".join(words), "annotations": []}
    message = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    whole = {
        "id": "r1", "object": "response", "created_at": 1, "model": asked["model"], "output": [message],
        "status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    place = {"item_id": "m1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", "delta": word, **place, "logprobs": [], "sequence_number": number}
        for number, word in enumerate(words)
    ]
    events.append({"type": "response.completed", "response": whole, "sequence_number": len(words)})
    return whole, [(event["type"], event) for event in events]


def messages(asked: dict[str, Any], words: list[str]) -> tuple[dict[str, Any], list[tuple[str | None, dict[str, Any]]]]:
    """Return a reply of Anthropic's messages, whole and as events."""
    head = {"id": "m1", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
    usage = {"input_tokens": 1, "output_tokens": 1}
    content = [{"type": "text", "text": "".join(words)}]
    whole = {**head, "content": content, "stop_reason": "end_turn", "usage": usage}
    start = {**head, "content": [], "stop_reason": None, "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return whole, [(event["type"], event) for event in events]


APIS = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append(asked)
        if self.server.status != 200:
            self.answer(b'{"error": {"message": "no", "type": "invalid_request_error"}}', "application/json")
            return
        whole, events = APIS[self.path.partition("?")[0]](asked, self.server.words)
        if not asked.get("stream"):
            self.answer(json.dumps(whole).encode(), "application/json")
            return
        lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(event)}\n\n" for name, event in events] + [
            "data: [DONE]\n\n"
        ] * ("completions" in self.path)
        self.answer("".join(lines).encode(), "text/event-stream")

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(self.server.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[dict[str, Any]] = []
        self.words = ["It leaves ", "at nine."]
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:") as opened:
        opened.remember(FACT, id="fact", namespace="ana")
        yield opened


def of_openai(server: Server, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0, **options)


def of_anthropic(server: Server) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0)


def turns(mem: semmem.Semmem) -> list[tuple[str | None, str, str | None]]:
    """Return the stored turns, oldest first: author, text, source type."""
    found = mem.list(namespace="ana", filters={"tags": ["transcript"]})
    return [(one.author, one.text, one.source_type) for one in sorted(found, key=lambda one: one.position or 0)]


def in_prompt(asked: dict[str, Any]) -> str:
    """Return the text that the model got in the user's message."""
    given = asked.get("input", asked.get("messages"))
    content = given if isinstance(given, str) else given[-1]["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


ASKED = [{"role": "user", "content": QUESTION}]
STORED = [("assistant", f"{QUESTION}\n\n{REPLY}", "agent")]
"""A question stands before the reply to it, in one turn."""


def by_chat(client: Any) -> str:
    return client.chat.completions.create(model="m", messages=ASKED).choices[0].message.content


def by_responses(client: Any) -> str:
    return client.responses.create(model="m", input=QUESTION).output_text


def by_parts(client: Any) -> str:
    content = [{"type": "input_text", "text": QUESTION}]
    return client.responses.create(model="m", input=[{"role": "user", "content": content}]).output_text


def by_messages(client: Any) -> str:
    return client.messages.create(model="m", max_tokens=9, messages=ASKED).content[0].text


def by_chat_stream(client: Any) -> str:
    chunks = client.chat.completions.create(model="m", messages=ASKED, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def by_chat_helper(client: Any) -> str:
    with client.chat.completions.stream(model="m", messages=ASKED) as stream:
        return "".join(event.delta for event in stream if event.type == "content.delta")


def by_responses_stream(client: Any) -> str:
    events = client.responses.create(model="m", input=QUESTION, stream=True)
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def by_messages_stream(client: Any) -> str:
    events = client.messages.create(model="m", max_tokens=9, messages=ASKED, stream=True)
    return "".join(event.delta.text for event in events if event.type == "content_block_delta")


def by_messages_helper(client: Any) -> str:
    with client.messages.stream(model="m", max_tokens=9, messages=ASKED) as stream:
        return "".join(stream.text_stream)


CALLS = [
    by_chat, by_responses, by_parts, by_messages, by_chat_stream, by_chat_helper, by_responses_stream,
    by_messages_stream, by_messages_helper,
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gets_what_answers_the_message_and_its_turn_is_stored(
    server: Server, mem: semmem.Semmem, call: Any
) -> None:
    made = of_anthropic(server) if "messages" in call.__name__ else of_openai(server)
    with semmem.wrap(made, memory=mem, namespace="ana") as client:  # type: ignore[attr-defined]
        assert call(client) == REPLY
        (asked,) = server.received
        prompt = in_prompt(asked)
        assert prompt.startswith("<semmem-memories>")
        assert FACT in prompt
        assert prompt.endswith(QUESTION)
        assert turns(mem) == STORED
        assert call(client) == REPLY
        assert prompt == in_prompt(server.received[1])  # its own turns are not brought back
    assert mem.recall(FACT, namespace="ana")  # an open memory stays open


def test_the_clients_for_asyncio_do_the_same(server: Server, mem: semmem.Semmem) -> None:
    async def run() -> None:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{server.url}/v1") as first:
            client = semmem.wrap(first, memory=mem, namespace="ana")
            whole = await client.chat.completions.create(model="m", messages=ASKED)  # type: ignore[arg-type]
            assert whole.choices[0].message.content == REPLY
            chunks = await client.chat.completions.create(model="m", messages=ASKED, stream=True)  # type: ignore[call-overload]
            assert "".join([chunk.choices[0].delta.content or "" async for chunk in chunks]) == REPLY
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.url) as second:
            other = semmem.wrap(second, memory=mem, namespace="ana")
            async with other.messages.stream(model="m", max_tokens=9, messages=ASKED) as stream:  # type: ignore[arg-type]
                assert "".join([text async for text in stream.text_stream]) == REPLY

    asyncio.run(run())
    assert len(server.received) == 3
    assert all(FACT in in_prompt(asked) for asked in server.received)
    assert {text for _, text, _ in turns(mem)} == {f"{QUESTION}\n\n{REPLY}"}


def test_turns_of_calls_side_by_side_have_a_place_each_in_the_session(
    server: Server, mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = semmem.Semmem.list

    def slow(self: semmem.Semmem, **options: Any) -> Any:
        page = read(self, **options)
        time.sleep(0.2)  # so that every call reads the session before one has stored its turns
        return page

    monkeypatch.setattr(semmem.Semmem, "list", slow)
    client = semmem.wrap(of_openai(server), memory=mem, namespace="ana")

    def call(number: int) -> None:
        said = [{"role": "user", "content": f"Boat {number} lies in the harbour."}]
        client.chat.completions.create(model="m", messages=said)  # type: ignore[arg-type]

    with ThreadPoolExecutor(4) as callers:
        list(callers.map(call, range(4)))
    stored = mem.list(namespace="ana", filters={"tags": ["transcript"]})
    assert sorted(one.position or 0 for one in stored) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_message_of_the_user_is_stored_once_though_tools_are_called_in_between(
    server: Server, mem: semmem.Semmem
) -> None:
    client = semmem.wrap(of_openai(server), memory=mem, namespace="ana", session="trip")
    call = {"id": "t1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    asked: list[Any] = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "I take the ferry to Heron Island tomorrow."},
    ]
    server.words = ["Noted, and ", "checked."]
    client.chat.completions.create(model="m", messages=asked)
    asked += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "10:00"},
    ]
    server.words = ["It is ten o'clock, so you have time."]
    client.chat.completions.create(model="m", messages=asked)
    given = server.received[1]["messages"]
    assert [one["role"] for one in given] == ["system", "user", "assistant", "tool"]
    assert FACT in given[1]["content"]
    assert [author for author, *_ in turns(mem)] == ["user", "assistant", "assistant"]
    assert {one.session for one in mem.list(namespace="ana", filters={"tags": ["transcript"]})} == {"trip"}


def test_a_stream_that_is_not_read_to_its_end_and_a_call_that_fails_store_nothing(
    server: Server, mem: semmem.Semmem
) -> None:
    client = semmem.wrap(of_openai(server), memory=mem, namespace="ana")
    with client.chat.completions.create(model="m", messages=ASKED, stream=True) as chunks:  # type: ignore[call-overload]
        assert next(chunks).choices[0].delta.content == "It leaves "
    server.status = 400
    with pytest.raises(openai.BadRequestError):
        by_chat(client)
    assert turns(mem) == []


def test_nothing_is_stored_or_recalled_beyond_what_is_asked_for(server: Server, mem: semmem.Semmem) -> None:
    silent = semmem.wrap(of_openai(server), memory=mem, namespace="ana", remember=False)
    assert by_chat(silent) == REPLY
    assert turns(mem) == []
    elsewhere = semmem.wrap(of_openai(server), memory=mem, namespace="bob")
    assert by_chat(elsewhere) == REPLY
    assert server.received[1]["messages"] == ASKED
    narrow = semmem.wrap(of_openai(server), memory=mem, namespace="ana", token_budget=60)
    assert by_chat(narrow) == REPLY
    assert server.received[2]["messages"] == ASKED  # the block alone has more
    assert silent.models is not None


def test_a_credential_in_a_turn_is_not_stored(server: Server, mem: semmem.Semmem) -> None:
    client = semmem.wrap(of_openai(server), memory=mem, namespace="ana")
    key = "ghp_" + "a1B2" * 9
    said: Any = [{"role": "user", "content": f"My key for the forge is {key}, keep it."}]
    client.chat.completions.create(model="m", messages=said)
    assert key in server.received[0]["messages"][0]["content"]
    assert turns(mem)[0][1] == "My key for the forge is ghp_…[removed], keep it."


def test_a_memory_that_fails_warns_once_and_breaks_no_call(server: Server, mem: semmem.Semmem) -> None:
    client = semmem.wrap(of_openai(server), memory=mem, namespace="ana")
    mem.close()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [by_chat(client), by_chat_stream(client)] == [REPLY, REPLY]
    (only,) = (one for one in said if one.category is UserWarning)  # and none that Python gives of an earlier test
    assert str(only.message).startswith("The memory of this client failed, and calls go on without it: ")
    assert "closed" in str(only.message)
    assert server.received[0]["messages"] == ASKED


def test_a_memory_that_is_late_holds_up_no_call_and_is_used_again_when_it_has_answered(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes.db"
    with semmem.connect(f"sqlite://{file}", embedder="hashing") as mem:
        client = semmem.wrap(openai.OpenAI(base_url=f"{server.url}/v1", api_key="none"), memory=mem)
        mem.remember(FACT)
        monkeypatch.setattr("semmem.interfaces.wrap._PATIENCE", 0.05)
        blocking = sqlite3.connect(file, isolation_level=None)
        blocking.execute("BEGIN EXCLUSIVE")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": QUESTION}])
                assert reply.choices[0].message.content == REPLY
        (only,) = (one for one in said if one.category is UserWarning)
        assert str(only.message).endswith("It has not answered within 0.05 seconds.")
        blocking.rollback()
        blocking.close()
        late = client._semmem_chat._late  # type: ignore[attr-defined]
        late.join(60)
        monkeypatch.setattr("semmem.interfaces.wrap._PATIENCE", 60)
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": QUESTION}])
        assert FACT in server.received[-1]["messages"][0]["content"]
        assert any(memory.text.endswith(REPLY) for memory in mem.list())


def test_a_copy_of_the_client_keeps_the_memory_and_closing_it_closes_what_it_opened(
    server: Server, tmp_path: Any
) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url) as mem:
        mem.remember(FACT, namespace="ana")
    client = semmem.wrap(of_openai(server), namespace="ana", url=url)
    assert by_chat(client.with_options(timeout=60)) == REPLY
    assert FACT in in_prompt(server.received[0])
    client.close()
    with semmem.connect(url) as mem:
        assert turns(mem) == STORED


def test_the_two_lines_of_the_page_do_so(
    server: Server, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_URL", f"sqlite:{tmp_path}/notes.db")
    (code,) = [block.code for block in blocks("docs/wrap.md", "python") if "http://" in block.code]
    used: dict[str, Any] = {}
    exec(compile(code.replace("http://localhost:11434", server.url), "docs/wrap.md", "exec"), used)
    used["client"].close()
    assert capsys.readouterr().out == f"{REPLY}\n"
    with semmem.connect() as mem:
        assert turns(mem) == [("assistant", f"When does the ferry leave?\n\n{REPLY}", "agent")]


@pytest.mark.parametrize(
    ("client", "sentence"),
    [
        (object(), "wrap takes a client of the packages openai or anthropic, not object; for another, put"),
        (openai.OpenAI, r"wrap takes an open client, such as OpenAI\(\), not the class"),
    ],
)
def test_what_is_no_client_is_refused_in_one_sentence(client: Any, sentence: str) -> None:
    with pytest.raises(semmem.InvalidInput, match=sentence):
        semmem.wrap(client)


def test_what_cannot_be_used_is_refused_before_a_store_is_opened(server: Server, mem: semmem.Semmem) -> None:
    client = of_openai(server)
    with pytest.raises(semmem.InvalidInput, match="An open memory has its settings already; leave url out"):
        semmem.wrap(client, memory=mem, url="sqlite::memory:")
    with pytest.raises(semmem.InvalidInput, match="token_budget must be a whole number of tokens"):
        semmem.wrap(client, memory=mem, token_budget=0)
    with pytest.raises(semmem.InvalidInput, match="namespace must be a name"):
        semmem.wrap(client, memory=mem, namespace="")
    with pytest.raises(semmem.InvalidInput, match="has a memory already"):
        semmem.wrap(semmem.wrap(client, memory=mem), memory=mem)
