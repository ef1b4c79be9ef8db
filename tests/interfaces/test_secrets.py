"""The text of a sensitive memory in no answer, error, log or warning of any door. No secret here was ever valid."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.interfaces.cli.app import run
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.tools import run_call
from semmem.model.types import MASK, MASK_OF_TOOLS
from semmem.write.screening import CredentialWarning
from tests.interfaces.mcp.clients import ask, in_memory, refusal
from tests.serving import serving

SECRET = "zqx7kolibri opens the safe"
WIFI = "The wifi password is heron-blue-42."


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a sensitive memory and an open one."""
    where = f"sqlite://{tmp_path / 'notes.db'}"
    with semmem.connect(where, embedder="hashing") as mem:
        mem.remember(SECRET, id="w", title="Safe", tags=["keys"], session="s", sensitive=True)
        mem.remember("Tea at four.", id="t", session="s")
    return where


@pytest.fixture
def spoken(url: str, tmp_path: Path) -> Iterator[tuple[httpx.Client, dict[str, dict[str, str]]]]:
    """A client of a server of that store, and the headers of two keys: one that may read, one that may write."""
    keys = Keys(tmp_path / "keys.json")
    headers = {right: {"authorization": f"Bearer {keys.add(right, right=right)[1]}"} for right in ("read", "write")}
    with (
        semmem.connect(url, embedder="hashing") as mem,
        serving(mem, keys=keys) as where,
        httpx.Client(base_url=where, timeout=60) as client,
    ):
        yield client, headers


def test_the_filter_sensitive_means_behind_a_server_what_it_means_without_one_and_reveals_nothing(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as local, serving(local) as where, semmem.connect(where) as remote:
        for mem in (local, remote):
            assert [one.id for one in mem.list(filters={"sensitive": False})] == ["t"]
            assert [one.id for one in mem.list(filters={"sensitive": True})] == ["w"]
            assert [row["id"] for row in mem.export(filters={"sensitive": False})] == ["t"]
            assert [row["id"] for row in mem.export(filters={"sensitive": False}, sensitive=True)] == ["t"]
            assert [row["text"] for row in mem.export(filters={"sensitive": True}, sensitive=True)] == [SECRET]
            with pytest.raises(
                semmem.InvalidInput,
                match="leaves out sensitive memories, which this filter asks for; add sensitive=True",
            ):
                list(mem.export(filters={"sensitive": True}))


def test_over_http_it_is_revealed_only_to_a_key_that_may_write(spoken: Any) -> None:
    client, headers = spoken
    for path in ("/v1/memories/w", "/v1/memories", "/v1/memories/w/history"):
        for right in ("read", "write"):
            masked = client.get(path, headers=headers[right])
            assert (masked.status_code, SECRET in masked.text, MASK in masked.text) == (200, False, True)
        refused = client.get(f"{path}?reveal=true", headers=headers["read"])
        assert (refused.status_code, SECRET in refused.text) == (403, False)
        assert SECRET in client.get(f"{path}?reveal=true", headers=headers["write"]).text
    assert SECRET not in client.get("/v1/export", headers=headers["write"]).text
    assert client.get("/v1/export?sensitive=true", headers=headers["read"]).status_code == 403
    assert SECRET in client.get("/v1/export?sensitive=true", headers=headers["write"]).text
    tag = client.get("/v1/memories/w", headers=headers["write"]).headers["etag"]
    again = client.get("/v1/memories/w?reveal=true", headers={**headers["write"], "if-none-match": tag})
    assert SECRET in again.text


def test_over_http_no_answer_and_no_log_repeats_it(spoken: Any, caplog: pytest.LogCaptureFixture) -> None:
    client, headers = spoken
    caplog.set_level(logging.DEBUG)
    write = headers["write"]
    told = [
        client.post("/v1/memories", headers=write, json={"text": SECRET, "id": "x", "sensitive": True}),
        client.post("/v1/memories", headers=write, json={"text": f"{SECRET}!", "id": "x", "sensitive": True}),
        client.post("/v1/memories", headers=write, json={"text": SECRET, "sensitive": 1}),
        client.post("/v1/memories", headers=write, json={"text": SECRET, "sensitive": True, "vector": [1.0]}),
        client.post("/v1/memories", headers=write, json={"text": SECRET, "sensitive": True, "position": "x"}),
        client.post("/v1/memories", headers=write, content=f'{{"text": "{SECRET}', follow_redirects=False),
        client.patch("/v1/memories/w", headers={**write, "if-match": '"7"'}, json={"text": SECRET}),
        client.patch("/v1/memories/w", headers=write, json={"text": f"{SECRET}, still"}),
        client.post("/v1/recall", headers=write, json={"query": "what opens the safe?"}),
        client.post("/v1/memories/w/explain", headers=write, json={"query": "what opens the safe?"}),
        client.get("/v1/graph", headers=write),
        client.get("/v1/stats", headers=write),
        client.get("/metrics", headers=write),
    ]
    assert [answer.status_code for answer in told[:8]] == [201, 409, 422, 422, 422, 415, 412, 200]
    for answer in told:
        assert "zqx7" not in answer.text + str(answer.headers)
    ours = [line.getMessage() for line in caplog.records if not line.name.startswith(("httpx", "httpcore"))]
    assert "zqx7" not in "\n".join(ours)


def test_over_http_a_credential_is_warned_of_in_a_header_and_by_the_client(url: str, spoken: Any) -> None:
    client, headers = spoken
    answer = client.post("/v1/memories", headers=headers["write"], json={"text": WIFI, "id": "open"})
    assert answer.headers["semmem-warning"].startswith("A credential (password) seems to be in the memory 'open':")
    assert "heron" not in answer.headers["semmem-warning"]
    lines = {**headers["write"], "content-type": "application/x-ndjson"}
    told = client.post("/v1/memories", headers=lines, content=json.dumps({"text": f"{WIFI} Three.", "id": "line"}))
    assert told.headers["semmem-warning"].startswith("A credential (password) seems to be in the memory 'line':")
    key = headers["write"]["authorization"].split()[1]
    with semmem.connect(str(client.base_url), key=key) as remote:
        with pytest.warns(CredentialWarning, match="'remote'"):
            remote.remember(WIFI, id="remote")
        with pytest.warns(CredentialWarning, match="'many'"):
            remote.remember_many([{"text": f"{WIFI} One.", "id": "many"}])
        with pytest.warns(CredentialWarning, match="'reported'"):
            remote.remember_many([{"text": f"{WIFI} Two.", "id": "reported"}], progress=lambda report: None)
        assert remote.remember(SECRET, id="r", sensitive=True).text == MASK
        assert (remote.get("r").text, remote.get("r", reveal=True).text) == (MASK, SECRET)
        assert [one.memory.text for one in remote.history("r")] == [MASK]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_server_that_was_started_to_reveal_shows_it_to_its_client(url: str) -> None:
    async with in_memory(url, mode="legacy", reveal=True) as client:
        assert (await ask(client, "memory_get", id="w"))["memory"]["text"] == SECRET
        assert SECRET in str(await ask(client, "memory_list"))
        assert SECRET in str(await ask(client, "memory_history", id="w"))
        assert SECRET in str(await ask(client, "fetch", id="w"))
        assert SECRET not in str(await ask(client, "memory_recall", query="what opens the safe?"))


def test_over_http_no_server_of_mcp_reveals_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--http", "--reveal"]) == 2
    assert "--reveal works only for the client that started the server; leave out --http" in capfd.readouterr().err


@pytest.mark.anyio
async def test_who_may_not_see_it_cannot_guess_it(url: str) -> None:
    given: dict[str, Any] = {"id": "w", "title": "Safe", "tags": ["keys"], "session": "s", "sensitive": True}
    guesses = [{**given, "text": SECRET}, {**given, "text": f"{SECRET}?"}, {"id": "w", "text": SECRET}]
    with semmem.connect(url, embedder="hashing") as mem:
        by_tools = [run_call(mem, "memory_remember", guess) for guess in guesses]
        assert len({*by_tools}) == 1
        assert by_tools[0][1]
        assert mem.remember(SECRET, **given) == mem.get("w")  # who may see it is told, as ever
    async with in_memory(url, mode="legacy") as client:
        said = [await refusal(client, "memory_remember", **guess) for guess in guesses]
        assert said == [said[0]] * 3
        assert (said[0]["class"], said[0]["code"]) == ("Conflict", -32009)
        assert said[0]["message"].startswith("The id 'w' is that of a sensitive memory, and no text is compared")
        told = [await ask(client, "memory_update", id="w", text=text) for text in (SECRET, SECRET, f"{SECRET}?")]
        assert [one["memory"]["version"] for one in told] == [2, 3, 4]
        assert [one["changed"] for one in (await ask(client, "memory_history", id="w"))["versions"]] == [[]] * 4
    async with in_memory(url, mode="legacy", reveal=True) as client:
        both = [await ask(client, "memory_remember", **{**given, "id": "new", "text": SECRET}) for _ in range(2)]
        assert [one["memory"]["version"] for one in both] == [1, 1]


@pytest.mark.anyio
async def test_no_tool_of_mcp_shows_it_or_takes_it_back(url: str) -> None:
    async with in_memory(url, mode="legacy") as client:
        told: list[Any] = [
            await ask(client, "memory_get", id="w"),
            await ask(client, "memory_list"),
            await ask(client, "memory_list", filters={"titles": ["Safe"]}),
            await ask(client, "memory_history", id="w"),
            await ask(client, "memory_recall", query="what opens the safe?"),
            await ask(client, "search", query="what opens the safe?"),
            await ask(client, "fetch", id="w"),
            await ask(client, "memory_remember", text=f"{SECRET} 2", id="y", sensitive=True),
            await ask(client, "memory_update", id="w", text=f"{SECRET} 3"),
            await refusal(client, "memory_update", id="w", sensitive=False),
            await refusal(client, "memory_update", id="w", sensitive=None),
            await refusal(client, "memory_update", id="w", text=SECRET, expected_version=9),
            await refusal(client, "memory_remember", text=SECRET, id="w"),
            await refusal(client, "memory_get", id="w", reveal=True),
            await refusal(client, "memory_explain", id="w", query="what opens the safe?"),
            await refusal(client, "memory_remember", text=MASK_OF_TOOLS),
            await refusal(client, "memory_update", id="w", text=f"{MASK_OF_TOOLS} And more."),
            (await client.read_resource("semmem://memory/default/w")).contents[0],
        ]
        warned = await ask(client, "memory_remember", text=WIFI)
    assert "zqx7" not in str(told)
    assert "reveal=True" not in str(told)  # which no tool takes
    assert {told[0]["memory"]["text"], told[6]["text"], told[7]["memory"]["text"]} == {MASK_OF_TOOLS}
    assert "`semmem mcp --reveal`" in MASK_OF_TOOLS
    assert [one["memory"].get("sensitive") for one in (told[0], told[7], told[8])] == [True, True, True]
    assert len(told[2]["memories"]) == 1
    assert "stays sensitive here" in str(told[9])
    (sentence,) = warned["warnings"]
    assert sentence.startswith("A credential (password) seems to be in the memory ")


@pytest.mark.filterwarnings("default::semmem.write.screening.CredentialWarning")
def test_on_the_command_line_it_is_shown_where_it_is_to_be_revealed(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*given: str, code: int = 0) -> str:
        assert run([*given, "--url", url]) == code
        out = capsys.readouterr()
        return out.out + out.err

    quiet = [
        told("get", "w"), told("list"), told("list", "--title", "Safe"), told("history", "w", "--diff"),
        told("recall", "what opens the safe?"), told("explain", "w", "-q", "safe", code=2), told("stats"),
        told("remember", SECRET, "--id", "x", "--sensitive"), told("remember", SECRET, "--id", "w", code=5),
        told("remember", SECRET, "--sensitive", "--vector", "[1.0]", code=2),
        told("update", "w", "--session", "z"), told("update", "w", SECRET, "--expected-version", "9", code=5),
        told("export", str(tmp_path / "out.jsonl")), told("doctor"), told("forget", "--sensitive"),
    ]  # fmt: skip
    assert "zqx7" not in "".join(quiet)
    assert "zqx7" not in (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert "Left out: 2 sensitive; export them with --sensitive." in quiet[12]
    assert "Would forget 2 memories" in quiet[-1]
    assert SECRET in told("get", "w", "--reveal")
    assert SECRET in told("list", "--sensitive", "--reveal")
    assert "Left out" not in told("export", str(tmp_path / "all.jsonl"), "--sensitive")
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["id"]: row.get("sensitive", False) for row in rows} == {"w": True, "x": True, "t": False}
    assert "Warning: A credential (password) seems to be in the memory 'c'" in told("remember", WIFI, "--id", "c")
    assert "heron" not in told("update", "c", "--sensitive")
    assert WIFI in told("update", "c", "--not-sensitive") + told("recall", "wifi password")
