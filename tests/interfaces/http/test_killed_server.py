"""A server that is killed at any moment of a write: sent again with its Idempotency-Key, the write is done once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem

MOMENTS = int(os.environ.get("SEMMEM_TEST_KILLS", "6"))
"""Kills a store; the moments are spread over the time that a write takes."""

BODY = {"session": "s", "messages": [{"role": "user", "content": f"Line {n} of a chat."} for n in range(40)]}


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("store_url"))


@contextmanager
def server(url: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a server in a process of its own, and its URL."""
    program = [sys.executable, "-m", "semmem", "--url", url, "serve", "--port", "0", "--json"]
    program += ["--keys", str(folder / "none.json")]
    settings = {**os.environ, "SEMMEM_EMBEDDER": "hashing"}
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=settings)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["url"]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def ask(place: str, verb: str, once: str) -> httpx.Response:
    headers = {"idempotency-key": once}
    with httpx.Client(base_url=place, timeout=60, trust_env=False) as client:
        if verb == "messages":
            return client.post("/v1/messages", json={**BODY, "session": once}, headers=headers)
        if verb == "update":
            return client.patch("/v1/memories/counter", json={"text": f"Counted {once}."}, headers=headers)
        return client.post("/v1/forget", json={"filters": {"sessions": ["old " + once]}}, headers=headers)


def effect(mem: Semmem, verb: str, once: str) -> Any:
    """Return what a write has left: turns of its session, versions, or memories that are still there."""
    if verb == "messages":
        return len(mem.list(filters={"sessions": [once]}, limit=1000).memories)
    if verb == "update":
        return sum(version.memory.text == f"Counted {once}." for version in mem.history("counter"))
    return len(mem.list(filters={"sessions": ["old " + once]}, limit=1000).memories)


@pytest.mark.slow
def test_a_write_is_done_once_wherever_the_server_is_killed(url: str, tmp_path: Path) -> None:
    answered = {"messages": ("remembered", 40), "update": ("version", None), "forget": ("forgotten", 3)}
    with semmem.connect(url, embedder="hashing") as mem, ExitStack() as running:
        mem.remember("Counted nothing.", id="counter")
        took = dict.fromkeys(answered, 0.1)
        servers = [running.enter_context(server(url, tmp_path)) for _ in range(2)]
        for n in range(MOMENTS):
            verb = list(answered)[n % 3]
            once = f"{verb} {n}"
            mem.remember_messages(BODY["messages"][:3], session="old " + once)  # type: ignore[arg-type,index]
            process, place = servers.pop(0)
            ask(place, verb, "first " + once)  # the model and the connections are there
            moment = took[verb] * (n // 3 + 0.5) / (MOMENTS / 3)
            killer = threading.Timer(moment, process.send_signal, [signal.SIGKILL])
            begun = time.monotonic()
            killer.start()
            try:
                ask(place, verb, once)
                took[verb] = max(0.01, time.monotonic() - begun)
            except httpx.TransportError:
                took[verb] *= 1.2
            killer.join()
            servers.append(running.enter_context(server(url, tmp_path)))
            (_, beside), (_, later) = servers
            answers = [ask(place, verb, once) for place in (later, beside, later)]
            assert {one.status_code for one in answers} == {200}, answers[0].text
            assert len({one.content for one in answers}) == 1
            name, value = answered[verb]
            assert value is None or answers[0].json()[name] == value
            assert effect(mem, verb, once) == {"messages": 40, "update": 1, "forget": 0}[verb]
