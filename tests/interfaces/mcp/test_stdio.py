"""The MCP server as a real process: what it loads, what it writes on its output, and that nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

import semmem
from tests.interfaces.mcp.clients import ask, environment, over_stdio, refusal
from tests.model.test_project import repository
from tests.test_architecture import modules_after

pytestmark = pytest.mark.anyio

HEAVY = {
    *("torch", "sentence_transformers", "transformers", "onnxruntime", "tokenizers", "numpy", "psycopg", "networkx"),
    *("spacy", "sklearn", "scipy"),
}


def sent(method: str, number: int | None = None, **params: Any) -> str:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else {**message, "id": number}) + "\n"


OPENED = (
    sent(
        "initialize",
        1,
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "raw", "version": "1"},
    ),
    sent("notifications/initialized"),
)


class Raw:
    """A server process that is spoken to line by line."""

    def __init__(self, url: str, folder: Path, *arguments: str, **more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "semmem", "mcp", *arguments],
            cwd=folder,
            env=environment(url) | more,
            text=True,
            encoding="utf-8",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def say(self, lines: Sequence[str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(lines))
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def end(self) -> tuple[str, str]:
        """Close the input, and return what else the process wrote on its output and its error stream."""
        out, err = self.process.communicate(timeout=100)
        return out, err


@pytest.mark.slow
def test_initialize_and_the_lists_load_neither_model_nor_store() -> None:
    program = """
import anyio
from mcp import Client
import semmem.interfaces.cli.app, semmem.interfaces.mcp.stdio
from semmem.interfaces.mcp.opening import Opening
from semmem.interfaces.mcp.server import Handlers, server_of
from semmem.interfaces.mcp.table import TOOLS

async def main():
    server = server_of(Handlers(Opening(lambda: 1 / 0), prepare=False))
    for mode in ("legacy", "auto"):
        async with Client(server, mode=mode) as client:
            assert len((await client.list_tools()).tools) == len(TOOLS)
            await client.list_resources()
            await client.list_resource_templates()

anyio.run(main)
"""
    assert modules_after(program).isdisjoint(HEAVY)


@pytest.mark.slow
def test_nothing_but_the_protocol_is_on_the_output(store_url: str, tmp_path: Path) -> None:
    server = Raw(store_url, tmp_path, "--recipe", "seed", PYTHONWARNINGS="always")
    texts = [f"Line {n}\nof the log: \u2028 \x1b[31m {{}}" for n in range(3)]
    calls = [sent("tools/call", n, name="memory_remember", arguments={"text": t}) for n, t in enumerate(texts, 10)]
    server.say([*OPENED, sent("tools/list", 2), *calls, "this is no JSON\n", sent("no/such/method", 90)])
    out, err = server.end()
    answers = [json.loads(line) for line in out.split("\n") if line]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert {answer["id"] for answer in answers} == {1, 2, 10, 11, 12, None, 90}
    assert "cannot bring in a memory of its own" in err
    with semmem.connect(store_url, embedder="hashing") as mem:
        assert sorted(memory.text for memory in mem.list()) == texts


def test_the_process_ends_when_its_client_has_gone(tmp_path: Path) -> None:
    server = Raw(f"sqlite:{tmp_path}/notes.db", tmp_path)
    server.say(OPENED)
    assert server.answer()["result"]["serverInfo"]["name"] == "semmem"
    assert server.end() == ("", "")
    assert server.process.returncode == 0


def test_an_option_that_is_wrong_is_told_before_the_protocol_begins(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "semmem", "mcp", "--namespace", ""],
        cwd=tmp_path,
        env=environment(f"sqlite:{tmp_path}/notes.db"),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is empty" in done.stderr


@pytest.mark.slow
async def test_a_day_of_a_coding_agent(store_url: str, tmp_path: Path) -> None:
    """It learns, is started again, recalls, changes its mind, forgets; what it learned stays in the project."""
    engine = repository(tmp_path / "engine", {"origin": "git@example.org:ada/engine.git"})
    (engine / "src").mkdir()
    other = repository(tmp_path / "other", {"origin": "git@example.org:ada/other.git"})

    async with over_stdio(store_url, engine, agent="coder") as morning:
        assert (await ask(morning, "memory_recall", query="how are the tests run?"))["hits"] == []
        learned = "The tests of the engine are run with make check, because pytest alone misses the gears."
        tests = (await ask(morning, "memory_remember", text=learned, title="Tests", tags=["build"]))["memory"]
        await ask(morning, "memory_remember", text="The deployment key lies in the vault of Petra.", title="Deployment")
        await ask(morning, "memory_remember", text="Ada prefers tabs to spaces.", namespace="personal")
        assert tests["namespace"] == "example.org/ada/engine"

    async with over_stdio(store_url, engine / "src", agent="coder", mode="auto") as noon:
        first = (await ask(noon, "memory_recall", query="how do I run the tests?"))["hits"][0]
        assert (first["id"], first["text"], first["metadata"]) == (tests["id"], learned, {"agent": "coder"})
        tastes = await ask(noon, "memory_recall", query="does Ada like tabs or spaces?")
        assert tastes["hits"][0]["namespace"] == "personal"
        changed = "The tests of the engine are run with nox, since July."
        now = await ask(noon, "memory_update", id=tests["id"], text=changed, expected_version=1)
        assert now["memory"]["version"] == 2
        late = await refusal(noon, "memory_update", id=tests["id"], text="Something else.", expected_version=1)
        assert late["class"] == "Conflict"

    async with over_stdio(store_url, engine, "--tools", "all", agent="reviewer") as evening:
        first = (await ask(evening, "memory_recall", query="how are the tests run?"))["hits"][0]
        assert (first["text"], first["version"]) == (changed, 2)
        why = await ask(evening, "memory_explain", id=tests["id"], query="how are the tests run?")
        assert why["explanation"]["returned"] is True
        assert (await ask(evening, "memory_forget", filters={"tags": ["build"]}, dry_run=True))["forgotten"] == 1
        assert (await ask(evening, "memory_forget", filters={"tags": ["build"]}))["forgotten"] == 1
        left = await ask(evening, "memory_recall", query="how are the tests run?")
        assert left["hits"] == []  # the deployment key answers no question about tests
        assert "nothing" in left

    async with over_stdio(store_url, other) as elsewhere:
        found = await ask(elsewhere, "memory_recall", query="where is the deployment key, and does Ada like tabs?")
        assert [hit["namespace"] for hit in found["hits"]] == ["personal"]


async def _writes(client: Client, who: int, count: int) -> None:
    for n in range(count):
        await ask(
            client, "memory_remember", text=f"Agent {who} wrote line {n}.", id=f"{who}-{n}", title=f"Gear {n % 3}"
        )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
async def test_six_processes_on_one_store_lose_no_write(store_url: str, tmp_path: Path, kind: str) -> None:
    url = store_url if kind == "postgresql" else f"sqlite:{tmp_path}/notes.db"

    async def agent(who: int) -> None:
        async with over_stdio(url, tmp_path, agent=f"agent-{who}") as client:
            await _writes(client, who, 20)

    async with anyio.create_task_group() as group:
        for who in range(6):
            group.start_soon(agent, who)
    with semmem.connect(url, embedder="hashing") as mem:
        stored = {memory.id: memory for memory in mem.list(limit=1_000)}
        assert set(stored) == {f"{who}-{n}" for who in range(6) for n in range(20)}
        assert {stored[f"{who}-7"].metadata["agent"] for who in range(6)} == {f"agent-{who}" for who in range(6)}
        assert len(mem.recall("which line did agent 3 write?", limit=200, recipe="lexical")) > 0


def test_the_server_says_how_to_install_what_it_needs(tmp_path: Path) -> None:
    hidden = (
        "import sys; sys.modules['mcp_types'] = None; from semmem.interfaces.cli.app import run; sys.exit(run(['mcp']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden],
        cwd=tmp_path,
        env=environment(f"sqlite:{tmp_path}/notes.db"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7
    assert "pip install 'semmem[mcp]'" in done.stderr


@pytest.mark.slow
def test_calls_that_were_read_are_answered_when_the_input_ends(store_url: str, tmp_path: Path) -> None:
    server = Raw(store_url, tmp_path)
    numbers = range(10, 40)
    calls = [sent("tools/call", n, name="memory_remember", arguments={"text": f"Note {n}."}) for n in numbers]
    server.say([*OPENED, *calls, sent("notifications/cancelled", requestId=11)])
    out, err = server.end()
    answers = {answer["id"]: answer for answer in map(json.loads, out.split("\n")[:-1])}
    assert (server.process.returncode, err) == (0, "")
    assert set(answers) | {11} == {1, *numbers}
    assert all(not answers[n]["result"].get("isError") for n in set(numbers) & set(answers))
    with semmem.connect(store_url, embedder="hashing") as mem:
        assert {f"Note {n}." for n in set(numbers) & set(answers)} <= {memory.text for memory in mem.list(limit=100)}


@pytest.mark.slow
def test_a_client_that_has_gone_ends_the_server_without_a_traceback(tmp_path: Path) -> None:
    server = Raw(f"sqlite:{tmp_path}/notes.db", tmp_path)
    server.say(OPENED)
    server.answer()
    assert server.process.stdout is not None
    server.process.stdout.close()
    server.say([sent("tools/call", 5, name="memory_list", arguments={})])
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(60) in (0, 1)
    assert server.process.stderr is not None
    with server.process.stderr as err:
        assert "Traceback" not in err.read()


UNREADABLE = "The JSON is nested too deeply, or holds half a surrogate pair or too long a number; correct it."
WRONG = [
    ("nope", None, -32700, "The JSON cannot be read: Expecting value."),
    ("[]", None, -32600, "Batches are not taken; send each message by itself."),
    ("5", None, -32600, "A message is a JSON object, not 5."),
    ('{"jsonrpc": "1.0", "id": 5, "method": "ping"}', 5, -32600, 'jsonrpc must be "2.0", not "1.0".'),
    ('{"jsonrpc": "2.0", "id": true, "method": "x"}', None, -32600, "id must be a string or a whole number, not true."),
    ('{"jsonrpc": "2.0", "id": null, "method": "x"}', None, -32600, "id must be a string or a whole number, not null."),
    ('{"jsonrpc": "2.0", "id": 5}', 5, -32600, "The message has no method; name the one that is called."),
    ('{"jsonrpc": "2.0", "id": 5, "method": 5}', 5, -32600, "method must be a string, not 5."),
    ('{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}', 5, -32600, "params must be an object, not [1]."),
    ('{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": "\\ud800"}}', 5, -32600, UNREADABLE),
    (
        '{"jsonrpc": "2.0", "id": 5, "method": "x/y"}', 5, -32601,
        'There is no method "x/y" here; tools/list names what can be called.',
    ),
    ('{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {}}', 5, -32602, "tools/call needs name."),
    (
        '{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 5}}', 5, -32602,
        "name of tools/call must be a string, not 5.",
    ),
    (
        '{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "fetch", "arguments": []}}', 5, -32602,
        "arguments of tools/call must be an object, not [].",
    ),
]  # fmt: skip
"""Messages, the id of the answer, its code and its sentence."""


@pytest.mark.slow
def test_a_message_that_is_wrong_is_answered_in_a_sentence_that_names_what_is_wrong(tmp_path: Path) -> None:
    server = Raw(f"sqlite:{tmp_path}/notes.db", tmp_path)
    server.say(OPENED)
    server.answer()
    for message, id, code, sentence in WRONG:
        server.say([message + "\n"])
        answer = server.answer()
        assert (answer["id"], answer["error"]["code"], answer["error"]["message"]) == (id, code, sentence), message
    assert server.end() == ("", "")


@pytest.mark.slow
def test_a_call_before_the_session_is_open_is_told_what_comes_first(tmp_path: Path) -> None:
    server = Raw(f"sqlite:{tmp_path}/notes.db", tmp_path)
    server.say([sent("tools/list", 1)])
    sentence = "tools/list comes before the session is open; send initialize first."
    assert server.answer()["error"] == {"code": -32602, "message": sentence}
    assert server.end() == ("", "")
