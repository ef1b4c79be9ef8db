"""Measure how long an agent waits for a new process: `semmem mcp`, a hook beside a server, and `semmem recall`.

    python -m eval bench starts --runs 9
    python -m eval bench starts --runs 5 --cold 6000

Each row is a fresh process, timed from its start to the answer: median, least and most of the wall time, and of the
time on a processor, which a busy machine changes less. The aims: the first answer of `semmem mcp` within 2 s, with the
store and the model opened behind it, a hook within .3 s where a server runs, and a recall within .45 s, which is asked
alone and beside a server. `python -X importtime -m semmem mcp` shows what it goes into: nearly all of it is the imports
of the package mcp.

``--cold`` times instead the first recall of a process, from before it connects, over so many memories: of a SQLite file
and of an embedded store, in turn, with semmem imported and the embedder hashing. Each is asked twice: with the model
that ``maintain`` has saved of it, and without, which reads the whole file, or asks the server.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import semmem
from eval.titled import corpus
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["first_answers", "first_recalls", "hook", "recall", "served", "show", "starts"]

_SEMMEM = (sys.executable, "-m", "semmem")
_HELLO: Mapping[str, Any] = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "starts", "version": "1"},
}  # fmt: skip
_RECALL: Mapping[str, Any] = {"name": "memory_recall", "arguments": {"query": "what is the logger called?"}}
_NOTES = 200
_LISTENS_WITHIN_S = 60.0


def first_answers(env: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds from the start of `semmem mcp` to its answers to initialize, tools/list and a recall."""
    began = time.perf_counter()
    with subprocess.Popen(
        [*_SEMMEM, "mcp", "--namespace", "starts"],
        env=env,
        cwd=env["HOME"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        spent = {}
        for number, (method, params) in enumerate(
            (("initialize", _HELLO), ("tools/list", {}), ("tools/call", _RECALL)), start=1
        ):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(request) + "\n")
            if method == "initialize":
                server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            assert "result" in answer, answer
            assert not answer["result"].get("isError"), answer
            spent[f"mcp: {method}"] = time.perf_counter() - began
        server.stdin.close()
    return spent


def hook(env: Mapping[str, str], event: str) -> float:
    """Return the seconds that `semmem hook` takes from its start to its end; it must print a block of memories."""
    payload = {"session_id": "s", "cwd": env["HOME"], "hook_event_name": event, "prompt": "what is the logger called?"}
    began = time.perf_counter()
    process = subprocess.run(
        [*_SEMMEM, "hook", event, "--namespace", "starts"],
        env=env,
        cwd=env["HOME"],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        check=True,
    )
    spent = time.perf_counter() - began
    assert "Kestrel" in process.stdout, process.stderr
    return spent


def recall(env: Mapping[str, str]) -> float:
    """Return the seconds that `semmem recall` takes from its start to its end; it must find the memory."""
    command = [*_SEMMEM, "recall", "what is the logger called?", "--namespace", "starts", "--json"]
    began = time.perf_counter()
    process = subprocess.run(command, env=env, cwd=env["HOME"], capture_output=True, text=True, check=True)
    spent = time.perf_counter() - began
    assert "Kestrel" in process.stdout, process.stderr
    return spent


@contextmanager
def served(env: Mapping[str, str]) -> Iterator[None]:
    """Run `semmem serve` for the store of ``env`` until the end of the block, which begins when it answers hooks."""
    server = subprocess.Popen(
        [*_SEMMEM, "--json", "serve", "--port", "0"], env=env, cwd=env["HOME"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        assert json.loads(server.stdout.readline())["url"]
        end = time.monotonic() + _LISTENS_WITHIN_S
        while not list(Path(env["XDG_STATE_HOME"]).glob("semmem/hooks/*.sock")):
            assert time.monotonic() < end, "the server answers no hooks"
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait(timeout=60)


_COLD = """
import json, sys, time
import numpy, psycopg, semmem
from pathlib import Path
from semmem.client import opening
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.resident import loading
from semmem.stores.sqlite.store import SqliteStore
begun, worked = time.perf_counter(), time.process_time()
with semmem.connect(sys.argv[1], embedder="hashing", config="", resident_mb=int(sys.argv[3])) as mem:
    connected = time.perf_counter()
    found = mem.recall(sys.argv[2], namespace="titled")
    spent = {"": time.perf_counter() - begun, "after connecting": time.perf_counter() - connected}
    spent["on a processor"] = time.process_time() - worked
    if mem.store.kind == "PostgreSQL" and sys.platform == "linux":
        mine = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
        pids = mem.store.run(lambda c: c.execute(mine).fetchall())
        each = [int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9 for (pid,) in pids]
        spent["on a processor, the server"] = sum(each)
assert found.degraded == {} and len(found), found
print(json.dumps(spent))
"""


def first_recalls(memories: int, runs: int, folder: str) -> dict[str, list[float]]:
    """Return the seconds of the first recall of new processes, over ``memories`` passages in each kind of store.

    Those of the server are of the processes that it begins for this one.
    """
    passages = corpus(memories, 40)
    urls = {"SQLite": f"sqlite:{folder}/cold.db", "embedded": f"embedded:{folder}/cold"}
    for url in urls.values():
        with semmem.connect(url, embedder="hashing", config="") as mem:
            mem.remember_many(passages.memories)
            mem.maintain()
    seconds_by_name: dict[str, list[float]] = {}
    conditions = [(name, url, "256") for name, url in urls.items()]
    conditions += [(f"{name}, without the saved model", url, "0") for name, url in urls.items()]
    for run in range(runs):
        for name, url, megabytes in conditions:
            command = [sys.executable, "-c", _COLD, url, passages.queries[run % len(passages.queries)].text, megabytes]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            for what, seconds in json.loads(done.stdout).items():
                row = f"the same, {what}, {name}" if what else f"first recall, {memories:,} memories, {name}"
                seconds_by_name.setdefault(row, []).append(seconds)
    return seconds_by_name


def _times(work: Callable[[], dict[str, float]], runs: int) -> dict[str, list[float]]:
    """Return the wall seconds of each answer in each run, and the processor seconds of the whole process."""
    seconds_by_name: dict[str, list[float]] = {}
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = work()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        for name, seconds in spent.items():
            seconds_by_name.setdefault(name, []).append(seconds)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds_by_name.setdefault(f"{name}, on a processor until it ended", []).append(cpu)
    return seconds_by_name


def starts(runs: int, url: str | None, cold: int) -> dict[str, list[float]]:
    """Time the first answers of `semmem mcp`, recalls alone, and hooks and recalls beside a server.

    With ``cold``: the first recall of a process over so many memories.
    """
    if cold:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return first_recalls(cold, runs, folder)
            finally:
                EmbeddedServer(Path(folder) / "cold").stop()
    with tempfile.TemporaryDirectory() as folder:
        place = url or f"sqlite:{folder}/starts.db"
        own = {name: str(Path(folder)) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        env = {**os.environ, **own, "SEMMEM_URL": place, "SEMMEM_CONFIG": ""}
        with semmem.connect(place, config="") as mem:
            notes = [{"text": f"Note {n} of many.", "id": f"n{n}"} for n in range(_NOTES)]
            mem.remember_many([*notes, {"text": "The logger is called Kestrel."}], namespace="starts")
        times = _times(lambda: first_answers(env), runs)
        times |= _times(lambda: {"recall, alone": recall(env)}, runs)
        with served(env):
            for event in ("session-start", "prompt"):
                times |= _times(lambda event=event: {f"hook {event}": hook(env, event)}, runs)  # type: ignore[misc]
            times |= _times(lambda: {"recall, beside a server": recall(env)}, runs)
    return times


def show(times: Mapping[str, list[float]], runs: int) -> str:
    """Return the median, the least and the most of each row as lines."""
    lines = [f"{'seconds, of ' + str(runs) + ' processes':<78}  median   least    most"]
    for name, all_ in times.items():
        lines.append(f"{name:<78} {statistics.median(all_):7.3f} {min(all_):7.3f} {max(all_):7.3f}")
    return "\n".join(lines)
