"""The MCP server at an address: a real client over HTTP, who may speak to the server, and what a key allows."""

from __future__ import annotations

import http.client
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

import semmem
from semmem.interfaces.http.guard import Guard
from semmem.interfaces.http.keys import Keys, StoredKeys
from semmem.interfaces.http.limits import Limits
from semmem.interfaces.mcp.streamable_http import HttpServer
from semmem.model.errors import InvalidInput
from tests.interfaces.mcp.clients import ask, environment, refusal
from tests.interfaces.mcp.test_stdio import WRONG
from tests.model.test_project import repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys.json")


@contextmanager
def running(tmp_path: Path, keys: Keys, **more: Any) -> Iterator[HttpServer]:
    """Answer at a free port of this machine, from a store of its own."""
    more.setdefault("guard", Guard())
    more.setdefault("opener", lambda: semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="hashing"))
    server = HttpServer(**{"port": 0, "keys": keys, **more})
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive()


def posted(url: str, *, more: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
    """Return the status of an initialize request with these headers, and what the answer says if it is a problem."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}) + more
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    try:
        connection.request("POST", parts.path, body, usual | headers)
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if answer.status >= 400 else {}
    finally:
        connection.close()


@asynccontextmanager
async def with_key(url: str, key: str) -> AsyncIterator[Client]:
    """Connect a client that sends a key."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as carrier,
        Client(streamable_http_client(url, http_client=carrier)) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_works_over_http_in_the_project_of_its_root(tmp_path: Path, keys: Keys, mode: str) -> None:
    mine = repository(tmp_path / "mine", {"origin": "https://example.org/ada/mine"}).as_uri()

    async def roots(_: Any) -> Any:
        import mcp_types as types

        return types.ListRootsResult(roots=[types.Root(uri=mine)])

    with running(tmp_path, keys) as server:
        async with Client(server.url, mode=mode, list_roots_callback=roots) as client:
            stored = (await ask(client, "memory_remember", text="The Kestrel is our logger."))["memory"]
            assert stored["namespace"] == "example.org/ada/mine"
            (hit,) = (await ask(client, "memory_recall", query="what is the Kestrel?"))["hits"]
            assert hit["id"] == stored["id"]
        async with Client(server.url, mode=mode) as other:
            assert (await ask(other, "memory_list"))["scope"]["namespace"] == "default"


def test_a_page_under_another_name_and_of_another_origin_is_turned_away(tmp_path: Path, keys: Keys) -> None:
    with running(tmp_path, keys, guard=Guard.of(["notes.example"], ["https://app.example"])) as server:
        assert posted(server.url)[0] == 200
        assert posted(server.url, Host="notes.example", Origin="https://app.example")[0] == 200
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            status, problem = posted(server.url, **headers)
            assert (status, problem["class"]) == (403, "AccessDenied")


def test_where_there_is_a_key_every_request_needs_one(tmp_path: Path, keys: Keys) -> None:
    _, text = keys.add("ada", right="write")
    with running(tmp_path, keys) as server:
        assert posted(server.url)[1]["class"] == "KeyRequired"
        assert posted(server.url, Authorization="Bearer semmem_00000000_x")[0] == 401
        assert posted(server.url, Authorization=f"Bearer {text}")[0] == 200
        keys.remove("ada")
        assert posted(server.url)[1]["class"] == "KeyRequired"  # the last key gone opens the server to nobody


@pytest.mark.slow
def test_a_key_in_the_store_counts_as_at_the_http_api(tmp_path: Path, keys: Keys) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="hashing") as mem:
        assert mem.store.serving is not None
        stored = StoredKeys(mem.store.serving)
        with running(tmp_path, keys) as server:
            assert posted(server.url)[0] == 200
            _, text = stored.add("ada", right="write")
            time.sleep(1.1)
            assert posted(server.url)[1]["class"] == "KeyRequired"
            assert posted(server.url, Authorization=f"Bearer {text}")[0] == 200
            _, in_file = keys.add("file")
            assert posted(server.url, Authorization=f"Bearer {in_file}")[0] == 200
            stored.remove("ada")
            keys.remove("file")
            time.sleep(1.1)
            assert posted(server.url, Authorization=f"Bearer {text}")[1]["class"] == "KeyRequired"
        stored.add("ada")
        with running(tmp_path, keys) as server:
            stored.remove("ada")  # before the first request: a server that had a key is open to nobody
            assert posted(server.url)[1]["class"] == "KeyRequired"


async def test_a_key_in_the_store_allows_agents_what_it_was_made_for(tmp_path: Path, keys: Keys) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="hashing") as mem:
        assert mem.store.serving is not None
        _, text = StoredKeys(mem.store.serving).add("reader", namespaces=["team"])
    with running(tmp_path, keys) as server:
        async with with_key(server.url, text) as reader:
            listed = await ask(reader, "memory_list")
            assert listed["scope"] == {"namespace": "team", "recalled": ["team"], "from": "the key reader"}
            assert (await refusal(reader, "memory_remember", text="More."))["class"] == "AccessDenied"
            assert (await refusal(reader, "memory_list", namespace="lab"))["class"] == "AccessDenied"


def test_an_address_that_others_reach_needs_a_key(tmp_path: Path, keys: Keys) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with pytest.raises(InvalidInput, match=r"Others can reach 0\.0\.0\.0, and this server has no key; make one first"):
        HttpServer(lambda: semmem.connect(url), host="0.0.0.0", port=0, keys=keys, guard=Guard())


def test_a_store_that_cannot_be_opened_is_told_at_the_start(tmp_path: Path, keys: Keys) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(semmem.SemmemError, match="folder"):
        HttpServer(
            lambda: semmem.connect(f"sqlite:{tmp_path}/folder", embedder="none"), port=0, keys=keys, guard=Guard()
        )


def test_a_port_that_is_taken_is_told(tmp_path: Path, keys: Keys) -> None:
    with (
        running(tmp_path, keys) as server,
        pytest.raises(InvalidInput, match=("is not available: Address already in use")),
    ):
        HttpServer(lambda: pytest.fail("opened"), port=urlsplit(server.url).port or 0, keys=keys, guard=Guard())


async def test_a_key_works_in_its_namespaces_alone_and_only_reads_where_it_may_only_read(
    tmp_path: Path, keys: Keys
) -> None:
    _, reads = keys.add("reader", namespaces=["team"])
    _, writes = keys.add("writer", right="write", namespaces=["team", "lab"])
    with running(tmp_path, keys) as server:
        async with with_key(server.url, writes) as writer:
            stored = await ask(writer, "memory_remember", text="The Kestrel is our logger.", id="kestrel")
            assert stored["memory"]["namespace"] == "team"
            assert stored["scope"] == {"namespace": "team", "recalled": ["team"], "from": "the key writer"}
            await ask(writer, "memory_remember", text="The lab has two lamps.", id="lamps", namespace="lab")
            error = await refusal(writer, "memory_remember", text="Mine.", namespace="private")
            assert (error["class"], error["code"]) == ("AccessDenied", -32014)
        async with with_key(server.url, reads) as reader:
            assert [
                hit["id"]
                for hit in (await ask(reader, "memory_recall", query="What is the Kestrel, our logger?"))["hits"]
            ] == ["kestrel"]
            denied = {
                "memory_remember": {"text": "More."},
                "memory_update": {"id": "kestrel", "text": "More."},
                "memory_forget": {"id": "kestrel"},
                "memory_get": {"id": "lamps", "namespace": "lab"},
                "memory_list": {"namespace": "lab"},
                "memory_recall": {"query": "lamps", "namespace": ["team", "lab"]},
                "memory_context": {"query": "lamps", "namespace": "lab"},
                "memory_explain": {"query": "lamps", "id": "lamps", "namespace": "lab"},
                "fetch": {"id": "semmem://memory/lab/lamps"},
            }
            for tool, arguments in denied.items():
                assert (await refusal(reader, tool, **arguments))["class"] == "AccessDenied", tool
            with pytest.raises(MCPError, match="works only in these namespaces: team"):
                await reader.read_resource("semmem://memory/lab/lamps")
            counts = json.loads((await reader.read_resource("semmem://stats")).contents[0].text)  # type: ignore[union-attr]
            own = counts["namespace"]
            assert (counts["store"], own["memories"], own["bytes"]) == (None, 1, None)


@contextmanager
def listening(url: str) -> Iterator[http.client.HTTPResponse]:
    """Open a session, and the stream on which the server may speak to its client; yield that stream."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening})
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with closing(connection):
        connection.request("POST", parts.path, body, usual)
        answer = connection.getresponse()
        answer.read()
        session = answer.headers["Mcp-Session-Id"]
        connection.request("GET", parts.path, headers={"Accept": "text/event-stream", "Mcp-Session-Id": session})
        with connection.getresponse() as stream:
            yield stream


def test_a_server_that_stops_ends_the_streams_on_which_clients_listen(
    tmp_path: Path, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as opened:
        with running(tmp_path, keys) as server:
            streams = [opened.enter_context(listening(server.url)) for _ in range(2)]
            assert [one.status for one in streams] == [200, 200]
        assert [one.read() for one in streams] == [b"", b""]  # whole, as the protocol has it
    assert [line.getMessage() for line in caplog.records if line.levelname in ("ERROR", "CRITICAL")] == []


def test_a_server_at_an_address_has_the_limits_of_serve(tmp_path: Path, keys: Keys) -> None:
    with running(tmp_path, keys, limits=Limits(seconds=0.5)) as server:
        status, problem = posted(server.url, **{"Content-Length": "999"})
        assert (status, problem["class"]) == (429, "LimitExceeded")  # the body does not come
        assert problem["detail"].startswith("The body was not whole after 0.5 seconds")
    with running(tmp_path, keys, limits=Limits(body_bytes=1_000, rate=0.01, burst=3)) as server:
        assert posted(server.url)[0] == 200
        status, problem = posted(server.url, more=" " * 1_000)
        assert (status, problem["detail"]) == (413, "The body has more than 1,000 bytes; send less at a time.")
        assert posted(server.url)[0] == 200
        status, problem = posted(server.url)
        assert (status, problem["class"]) == (429, "LimitExceeded")
        assert problem["detail"].startswith("More than 0.01 requests a second; wait ")


@pytest.mark.slow
async def test_a_call_that_takes_too_long_is_told_so(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, keys, limits=Limits(seconds=1.0)) as server:
        async with Client(server.url, mode="legacy") as client:
            with closing(sqlite3.connect(tmp_path / "notes.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # the write waits for this one
                error = await refusal(client, "memory_remember", text="The key is red.")
                other.execute("ROLLBACK")
            assert (error["code"], error["message"][:40]) == (-32015, "The answer took longer than 1 seconds; a")
            monkeypatch.setattr(server._workers, "_limits", Limits())  # a full machine may take a second for the next
            assert (await ask(client, "memory_list"))["scope"]["namespace"] == "default"


@pytest.mark.slow
def test_the_command_says_where_it_answers_and_ends_in_order(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "semmem", "--json", "mcp", "--http", "--port", "0", "--tools", "all"],
        cwd=tmp_path,
        env=environment(f"sqlite:{tmp_path}/notes.db") | {"XDG_CONFIG_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    assert posted(url)[0] == 200
    with listening(url) as stream:
        server.send_signal(signal.SIGTERM)
        assert stream.read() == b""
    out, err = server.communicate(timeout=60)
    assert (server.returncode, out) == (0, "")
    assert err.splitlines() == [f"The MCP server answers at {url}. Ctrl-C stops it.", "Stopped."]


def test_a_wrong_message_over_http_is_answered_as_on_standard_input(tmp_path: Path, keys: Keys) -> None:
    with running(tmp_path, keys) as server:
        for message, id, code, sentence in WRONG[:10]:
            parts = urlsplit(server.url)
            assert parts.hostname is not None
            with closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)) as connection:
                headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
                connection.request("POST", parts.path, message.encode(), headers)
                answer = connection.getresponse()
                error = json.loads(answer.read())
            assert (answer.status, error["id"], error["error"]["code"]) == (400, id, code)
            assert error["error"]["message"] == sentence


@pytest.mark.slow
async def test_a_call_at_work_is_answered_when_the_server_is_told_to_end(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    semmem.connect(f"sqlite:{file}", embedder="hashing").close()
    server = subprocess.Popen(
        [sys.executable, "-m", "semmem", "--json", "mcp", "--http", "--port", "0", "--tools", "all"],
        cwd=tmp_path,
        env=environment(f"sqlite:{file}") | {"XDG_CONFIG_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    try:
        async with Client(url, mode="legacy") as client:
            await ask(client, "memory_list")
            with closing(sqlite3.connect(file, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # the write waits for this one
                async with anyio.create_task_group() as group:
                    answers: list[dict[str, Any]] = []

                    async def remember() -> None:
                        answers.append(await ask(client, "memory_remember", text="The key is red."))

                    group.start_soon(remember)
                    await anyio.sleep(0.5)
                    server.send_signal(signal.SIGTERM)
                    await anyio.sleep(0.5)
                    assert answers == []
                    other.execute("ROLLBACK")
            assert answers[0]["memory"]["text"] == "The key is red."
    finally:
        server.wait(60)
        server.stdout.close()
    assert server.returncode == 0
