"""The log of recalls through every interface: who it names, who may read it, and what is said where it has no entry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import Keys
from tests.interfaces.cli.program import Call, in_process, loaded
from tests.interfaces.coding_agents.test_hook import Client as HookClient
from tests.interfaces.mcp.clients import ask, in_memory
from tests.serving import running, serving


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with two memories of a ferry, which is that of the settings, and which logs recalls."""
    where = f"sqlite:{tmp_path}/notes.db"
    for name, value in (("URL", where), ("EMBEDDER", "none"), ("RECALL_LOG", "true"), ("HOOK_PROCESS_S", "0")):
        monkeypatch.setenv(f"SEMMEM_{name}", value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with semmem.connect() as mem:
        mem.remember("The ferry leaves at nine.", id="nine")
        mem.remember("The ferry costs two crowns.", id="crowns")
    return where


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    with semmem.connect() as mem:
        yield mem


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], url: str) -> Call:
    return in_process(capfd)


def test_the_command_line_lists_shows_and_repeats_what_was_given(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_AGENT", "ada")
    id = loaded(call("recall", "when does the ferry leave?", "--json"))["id"]
    call("feedback", id, "--useful", "nine", "--made-by", "bo")
    code, out, err = call("log")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.endswith("  cli (ada)  when does the ferry leave?")
    assert second == f"    {id}  2 given, 1 of 1 judgment useful"
    shown = call("log", "show", id)[1].splitlines()
    assert shown[0] == "when does the ferry leave?"
    assert "recall through cli (ada) in default, recipe default, confidence" in shown[1]
    assert any(line.startswith("  1  nine  0.") and line.endswith("  given, useful (bo)") for line in shown)
    assert "     The ferry leaves at nine." in shown
    call("forget", "crowns", "--yes")
    assert "     (no memory of this id any more)" in call("log", "show", id)[1].splitlines()
    repeated = call("log", "replay", id)[1].splitlines()
    assert repeated[1:] == [
        "   1 → 1    same       nine",
        "   2 → -    forgotten  crowns",
        "The ranks differ: in the log, and now in the memories of today.",
    ]
    entry = loaded(call("log", "show", id, "--json"))
    assert (entry["interface"], entry["agent"], entry["hits"][0]["id"]) == ("cli", "ada", "nine")
    assert [one["id"] for one in loaded(call("log", "--agent", "ada", "--json"))["recalls"]] == [id]
    assert loaded(call("log", "replay", id, "--then", "--json"))["as_of"] == entry["at"]


def test_the_commands_that_a_recall_and_an_entry_name_look_in_the_same_namespaces(call: Call) -> None:
    assert "Useful, or not: semmem feedback" in call("recall", "ferry")[1]
    assert "--namespace" not in call("recall", "ferry")[1]
    call("remember", "The boat leaves at ten.", "--namespace", "two words", "--id", "ten")
    lines = call("recall", "boat", "--namespace", "two words")[1].splitlines()
    id = next(line for line in lines if line.startswith("Useful")).split()[5]
    assert f"Useful, or not: semmem feedback {id} --useful ID --namespace 'two words'" in lines
    assert lines[-1] == """Why, or why not: semmem explain ID --query "…" --namespace 'two words'"""
    entry = call("log", "show", id, "--namespace", "two words")[1].splitlines()
    assert entry[-1] == f"Again: semmem log replay {id} --namespace 'two words'"
    lines = call("recall", "boat", "--namespace", "default", "--namespace", "two words")[1].splitlines()
    assert any(line.endswith(" --useful ID --namespace default --namespace 'two words'") for line in lines)
    assert lines[-1] == 'Why, or why not: semmem explain ID --query "…" --namespace ITS_NAMESPACE'


def test_the_command_line_says_what_is_not_in_the_log(call: Call) -> None:
    code, out, err = call("log")
    assert (code, out) == (0, "")
    assert err == (
        "No logged recall in namespace default meets these conditions; --namespace names another. "
        "Recalls are logged if the setting recall_log is on, for keep_recall_log_days.\n"
    )
    code, out, err = call("log", "show", "none")
    assert (code, out) == (4, "")
    assert err.startswith("There is no recall 'none' in the log of 'default'; recalls are logged if the setting")
    assert call("log", "--asked-after", "soon")[0] == 2
    assert call("log", "--limit", "0")[0] == 2


@pytest.mark.slow
def test_a_server_answers_with_entries_and_their_repetition(mem: Semmem) -> None:
    with serving(mem) as where, httpx.Client(base_url=where, timeout=60.0, trust_env=False) as http:
        id = http.post("/v1/recall", json={"query": "ferry leaves", "limit": 1}).json()["id"]
        http.post("/v1/recall", json={"query": "crowns"}, headers={"sec-fetch-site": "same-origin"})
        page = http.get("/v1/recalls", params={"limit": 1}).json()
        assert [(one["question"], one["interface"]) for one in page["recalls"]] == [("crowns", "page")]
        rest = http.get("/v1/recalls", params={"limit": 1, "cursor": page["cursor"]}).json()
        assert ([one["id"] for one in rest["recalls"]], rest["cursor"]) == ([id], None)
        entry = http.get(f"/v1/recalls/{id}").json()
        assert (entry["verb"], entry["interface"], entry["arguments"]) == ("recall", "http", {"limit": 1})
        assert [(hit["id"], hit["outcome"], hit["rank"]) for hit in entry["hits"]] == [("nine", "given", 1)]
        told = http.get(f"/v1/recalls/{id}/replay", params={"then": "true"}).json()
        assert (told["is_same"], told["as_of"], told["entry"]) == (True, entry["at"], entry)
        missing = http.get("/v1/recalls/none")
        assert (missing.status_code, missing.json()["class"]) == (404, "NotFound")
        assert http.get("/v1/recalls", params={"asked_after": "soon"}).status_code == 422


def test_a_client_of_a_server_reads_the_same_log(mem: Semmem) -> None:
    with serving(mem) as where, semmem.connect(where) as there:
        found = there.recall("ferry leaves")
        assert found.id is not None
        there.feedback(found.id, useful=["nine"])
        assert there.recalls() == mem.recalls()
        assert there.logged_recall(found.id) == mem.logged_recall(found.id)
        assert there.replay_recall(found.id) == mem.replay_recall(found.id)
        with pytest.raises(semmem.NotFound, match="There is no recall 'none' in the log of 'default'"):
            there.logged_recall("none")


def test_a_key_reads_the_entries_of_its_namespaces_and_is_named_in_them(mem: Semmem, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    mine = {"authorization": f"Bearer {keys.add('ops', namespaces=['default'])[1]}"}
    with (
        running(mem, keys=keys) as server,
        httpx.Client(base_url=server.url, headers=mine, trust_env=False, timeout=60) as http,
    ):
        mem.remember("The ferry of others.", id="theirs", namespace="other")
        both = mem.recall("ferry", namespace=["other", "default"]).id
        alone = mem.recall("ferry", namespace="other").id
        own = http.post("/v1/recall", json={"query": "ferry"}).json()["id"]
        assert http.get(f"/v1/recalls/{own}").json()["agent"] == "ops"
        assert {one["id"] for one in http.get("/v1/recalls").json()["recalls"]} == {own, both}
        entry = http.get(f"/v1/recalls/{both}").json()
        assert entry["namespaces"] == ["default"]
        assert "theirs" not in json.dumps(entry)
        assert "theirs" not in http.get(f"/v1/recalls/{both}/replay").text
        assert http.get(f"/v1/recalls/{alone}").status_code == 404
        for path in ("/v1/recalls", f"/v1/recalls/{alone}", f"/v1/recalls/{alone}/replay"):
            assert http.get(path, params={"namespace": "other"}).status_code == 403


@pytest.mark.anyio
async def test_an_mcp_client_is_named_and_reads_the_log_as_resources(url: str) -> None:
    async with in_memory(url) as client:
        id = (await ask(client, "memory_recall", query="when does the ferry leave?", verbose=True))["recall_id"]
        (told,) = (await client.read_resource("semmem://recalls")).contents
        (entry,) = json.loads(told.text)["recalls"]  # type: ignore[union-attr]  # it is text
        assert (entry["id"], entry["interface"], entry["question"]) == (id, "mcp", "when does the ferry leave?")
        assert entry["agent"] == "tester"
        assert {hit["id"] for hit in entry["hits"]} == {"nine", "crowns"}
        (told,) = (await client.read_resource(f"semmem://recalls/{id}")).contents
        assert json.loads(told.text) == entry  # type: ignore[union-attr]


def test_a_hook_is_named_by_its_client(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    client = HookClient(monkeypatch, capsys)
    assert "nine" in client.runs("prompt", "--agent", "codex", prompt="when does the ferry leave?", cwd=str(tmp_path))
    with semmem.connect() as mem:
        (entry,) = mem.recalls()
    assert (entry.interface, entry.agent, entry.question) == ("hook", "codex", "when does the ferry leave?")


async def logged(url: str) -> Any:
    async with await semmem.aconnect(url) as mem:
        found = await mem.recall("ferry")
        return found.id, (await mem.recalls())[0].id, (await mem.replay_recall(found.id)).is_same


@pytest.mark.anyio
async def test_the_log_is_read_asynchronously_too(url: str) -> None:
    id, first, is_same = await logged(url)
    assert (first, is_same) == (id, True)
