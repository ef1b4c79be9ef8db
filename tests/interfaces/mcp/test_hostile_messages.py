"""Hostile messages: a real server answers or refuses each in the protocol, lives, and shows no other namespace.

``HOSTILE_MESSAGES=5000`` sends so many of them; a test run sends 600.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import semmem
from tests.interfaces.mcp.clients import environment
from tests.interfaces.mcp.test_stdio import OPENED, Raw

COUNT = int(os.environ.get("HOSTILE_MESSAGES", "600"))
SECRET = "TOPSECRET stands in another namespace."
SCOPE = ("--namespace", "mine", "--only-namespace")
TOOLS = (
    *("memory_remember", "memory_recall", "memory_get", "memory_list", "memory_update", "memory_forget"),
    *("memory_history", "memory_link", "memory_feedback", "memory_context", "memory_explain", "search", "fetch", "no"),
)
ARGUMENTS = (
    *("text", "query", "id", "namespace", "limit", "filters", "tags", "metadata", "dry_run", "cursor", "recipe"),
    *("as_of", "offset", "type", "to", "vector", "exclude"),
)
METHODS = (
    *("ping", "tools/list", "resources/read", "resources/list", "prompts/list", "no/such", "initialize"),
    *("notifications/cancelled", "completion/complete", "logging/setLevel"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, 5, -1, 1.5, 2**70, "x", "", "\x00", "é" * 50, "y" * 20_000, [], [1], {}, {"a": 1}, [[[[]]]]),
    *("secret", "other", ["other"], "semmem://memory/other/secret"),
)
NO_MESSAGES = (
    *("nope", "{", "[", "[]", '""', "NaN", "\x00", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', '{"a":' * 3_000),
    *("[" * 100_000 + "]" * 100_000, "9" * 5_000, '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}'),
)


def messages(count: int) -> Iterator[str]:
    """Yield messages, each with an id of its own where it has one that a request may have."""
    chance = random.Random(7)
    for n in range(100, 100 + count):
        kind = chance.randrange(10)
        if kind == 0:
            yield chance.choice(NO_MESSAGES)
            continue
        tool = {name: chance.choice(VALUES) for name in chance.sample(ARGUMENTS, chance.randrange(5))}
        other = {"uri": chance.choice(VALUES), "requestId": chance.randrange(n), "level": chance.choice(VALUES)}
        called = {"method": "tools/call", "params": {"name": chance.choice(TOOLS), "arguments": tool}}
        plain = {"method": chance.choice(METHODS), "params": other}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": n, **(called if chance.random() < 0.6 else plain)}
        if kind == 1:
            message[chance.choice(["jsonrpc", "id", "method", "params"])] = chance.choice(VALUES)
        if kind == 2:
            del message[chance.choice(list(message))]
        yield json.dumps(message)


def asked(message: str) -> int | None:
    """Return the id of a message that must have an answer of that id."""
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return None
    is_request = isinstance(value, dict) and "method" in value and isinstance(value.get("id"), int)
    return value["id"] if is_request and value["id"] >= 100 else None


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(place, embedder="hashing") as mem:
        mem.remember(SECRET, id="secret", namespace="other")
    return place


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_hostile_messages_on_standard_input_are_all_answered(url: str, tmp_path: Path) -> None:
    server = Raw(url, tmp_path, *SCOPE)
    server.say(OPENED)
    server.answer()
    lines: list[str] = []
    errors: list[str] = []
    assert server.process.stdin is not None
    assert server.process.stdout is not None
    assert server.process.stderr is not None
    readers = [
        threading.Thread(target=lines.extend, args=(server.process.stdout,)),
        threading.Thread(target=errors.extend, args=(server.process.stderr,)),
    ]
    for reader in readers:
        reader.start()
    sent = list(messages(COUNT))
    server.say([one + "\n" for one in sent])
    server.process.stdin.close()
    assert server.process.wait(300) == 0
    for reader in readers:
        reader.join(60)
    server.process.stdout.close()
    server.process.stderr.close()
    answers = [json.loads(line) for line in lines]
    cancelled = {
        str(json.loads(one)["params"]["requestId"])
        for one in sent
        if '"notifications/cancelled"' in one
        and isinstance(json.loads(one).get("params"), dict)
        and "requestId" in json.loads(one)["params"]
    }
    missing = {id for one in sent if (id := asked(one)) is not None} - {answer.get("id") for answer in answers}
    assert {id for id in missing if str(id) not in cancelled} == set()
    assert "TOPSECRET" not in "".join(lines)
    assert "failed at this" not in "".join(lines)
    assert "Traceback" not in "".join(errors)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_hostile_messages_over_http_are_all_answered(url: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "semmem",
        "--json",
        "mcp",
        "--http",
        "--port",
        "0",
        "--rate",
        "0",
        "--tools",
        "all",
        *SCOPE,
    ]
    more = {"XDG_CONFIG_HOME": str(tmp_path)}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=tmp_path, env=environment(url) | more, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert server.stdout is not None
    place = urlsplit(json.loads(server.stdout.readline())["url"])
    assert place.hostname is not None
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    statuses: set[int] = set()
    try:
        with closing(http.client.HTTPConnection(place.hostname, place.port, timeout=60)) as connection:
            connection.request("POST", place.path, OPENED[0], headers)
            opened = connection.getresponse()
            opened.read()
            headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
            for message in (OPENED[1], *messages(COUNT)):
                connection.request("POST", place.path, message.encode(), headers)
                answer = connection.getresponse()
                body = answer.read()
                statuses.add(answer.status)
                assert b"TOPSECRET" not in body
                assert b"failed at this" not in body, message[:500]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
        server.stdout.close()
    assert statuses <= {200, 202, 400}
    assert server.returncode == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
