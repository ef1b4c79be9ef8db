"""The agents of ``examples/`` run: against a store of the test, and a stand-in for an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import semmem
from tests.interfaces.mcp.clients import environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

Model = Callable[[list[dict[str, Any]]], dict[str, Any]]


@contextmanager
def endpoint(model: Model) -> Iterator[str]:
    """Serve Chat Completions whose messages are those of ``model``, and yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.path == "/v1/chat/completions"
            body = json.dumps({"choices": [{"message": model(asked["messages"])}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join(60)


def process(
    name: str, *arguments: str, folder: Path, given: str = "", **surroundings: str
) -> subprocess.CompletedProcess[str]:
    """Run an example in ``folder`` to its end."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=folder,
        env={**os.environ, **environment(f"sqlite:{folder}/notes.db"), "XDG_STATE_HOME": str(folder), **surroundings},
        input=given,
        capture_output=True,
        text=True,
    )


def run(name: str, *arguments: str, folder: Path, given: str = "", **surroundings: str) -> str:
    """Run an example in ``folder`` and return what it prints."""
    done = process(name, *arguments, folder=folder, given=given, **surroundings)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_a_chat_remembers_in_one_run_and_recalls_in_the_next(tmp_path: Path) -> None:
    def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        last = messages[-1]
        if last["role"] == "tool":
            hits = json.loads(last["content"]).get("hits")
            return {"role": "assistant", "content": hits[0]["text"] if hits else "I will remember that."}
        asks = last["content"].endswith("?")
        name, argument = ("memory_recall", "query") if asks else ("memory_remember", "text")
        function = {"name": name, "arguments": json.dumps({argument: last["content"]})}
        calls = [{"id": "1", "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    with endpoint(model) as url:
        told = run("chat_loop", folder=tmp_path, given="The ferry leaves at nine.\n", OPENAI_BASE_URL=url)
        asked = run("chat_loop", folder=tmp_path, given="\nWhen does the ferry leave?\n", OPENAI_BASE_URL=url)
    assert (told, asked) == ("I will remember that.\n", "The ferry leaves at nine.\n")
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        assert [(one.text, dict(one.metadata)) for one in mem.list(namespace="chat")] == [
            ("The ferry leaves at nine.", {"agent": "chat"})
        ]


@pytest.mark.slow
def test_a_graph_keeps_what_each_user_said(tmp_path: Path) -> None:
    pytest.importorskip("langgraph.graph")

    def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        return {"role": "assistant", "content": messages[0]["content"].partition("\n")[2]}

    with endpoint(model) as url:
        surroundings = {"folder": tmp_path, "OPENAI_BASE_URL": url}
        assert run("langgraph_agent", "ada", "I live in Porto.", **surroundings) == "- nothing\n"  # type: ignore[arg-type]
        asked = [run("langgraph_agent", who, "Where do I live?", **surroundings) for who in ("ada", "bob")]  # type: ignore[arg-type]
    assert asked == ["- I live in Porto.\n", "- nothing\n"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments"), [("chat_loop", ()), ("langgraph_agent", ("ada", "I live in Porto."))])
def test_an_example_without_a_model_says_which_settings_name_one(
    tmp_path: Path, name: str, arguments: tuple[str, ...]
) -> None:
    if name == "langgraph_agent":
        pytest.importorskip("langgraph.graph")
    nowhere = "http://127.0.0.1:9/v1"  # the port that discards, where nothing listens
    done = process(name, *arguments, folder=tmp_path, given="hello\n", OPENAI_BASE_URL=nowhere)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("No model answers (")
    assert "set OPENAI_BASE_URL" in done.stderr


@pytest.mark.slow
def test_a_client_of_mcp_learns_in_one_process_and_recalls_in_another(tmp_path: Path) -> None:
    lines = run("mcp_client", folder=tmp_path).splitlines()
    assert lines[0].startswith("tools: memory_remember, memory_recall, ")
    assert lines[1:] == [
        "learned in default",
        "recalled: The tests are run with make check, because pytest alone misses the gears.",
        "changed to: The tests are run with nox.",
        "forgotten: 1",
    ]


def test_the_hooks_of_a_coding_agent_give_tuesday_what_was_said_on_monday(tmp_path: Path) -> None:
    first, *block = run("coding_agent_hooks", str(tmp_path), folder=tmp_path).splitlines()
    assert first == "monday's turns are stored"
    assert (block[0], block[-1]) == ("<semmem-memories>", "</semmem-memories>")
    assert "With make check" in "".join(block)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_an_example_is_short(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 120
