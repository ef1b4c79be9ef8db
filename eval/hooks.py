"""Measure a prompt's hook as a client feels it: a process from its start to its end, with a person's time on the clock.

    python -m eval hooks --calls 440 --alone 30

Each call is a fresh `semmem hook prompt` over a store of 200 memories with MiniLM, in PostgreSQL or in one file. Rows:
without another process, with every leg and with the lexical one; beside the process that a hook starts; beside
`semmem mcp`. Wall times include what the machine does meanwhile; the time on a processor is the hook's own. After every
fifth call of a row Python starts and does nothing, and starts and imports numpy: "of numpy" is the processor time in
that of the latter, which a busy machine changes least. Modules are compiled before, as an installation does. At the end
it says which processes and files are left.
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
from unittest.mock import patch

import semmem
from eval.environment import without_settings

__all__ = ["measured"]

_SEMMEM = (sys.executable, "-m", "semmem")
_QUESTIONS = ("what is the logger called?", "which logger is ours?", "how is the Kestrel used?", "note of the harbour")
_LEGS: Mapping[str, Mapping[str, str]] = {"every leg": {}, "the lexical leg": {"SEMMEM_HOOK_LEGS": "lexical"}}
_WAIT_S = 120


def _hook(env: Mapping[str, str], number: int) -> tuple[float, float]:
    """Return the seconds of one call, on the wall and on a processor."""
    payload = {"session_id": "s", "cwd": env["HOME"], "prompt": f"{_QUESTIONS[number % len(_QUESTIONS)]} ({number})"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [*_SEMMEM, "hook", "prompt", "--namespace", "hooks"],
        env=dict(env),
        cwd=env["HOME"],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        check=True,
    )
    spent = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if "Kestrel" not in done.stdout:
        raise RuntimeError(f"The hook found nothing: {done.stderr}")
    return spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


Times = list[tuple[float, float]]
"""Seconds on the wall and on a processor, of each call."""

_BARE = {"Python that does nothing": "pass", "Python that imports numpy": "import numpy"}


def _bare(env: Mapping[str, str], code: str) -> tuple[float, float]:
    """Return the seconds of a process without semmem, on the wall and on a processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=dict(env), cwd=env["HOME"], check=True)
    spent = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _row(env: Mapping[str, str], calls: int, all_bare: Mapping[str, Times]) -> dict[str, Any]:
    """Return the times of hooks; those of processes without semmem go to ``all_bare``."""
    _hook(env, 0)
    times: Times = []
    bare: dict[str, Times] = {name: [] for name in _BARE}
    for number in range(calls):
        times.append(_hook(env, number))
        if number % 5 == 0:
            for name, code in _BARE.items():
                bare[name].append(_bare(env, code))
    for name, some in bare.items():
        all_bare[name].extend(some)
    numpy = statistics.median(processor for _, processor in bare["Python that imports numpy"])
    return {**_summed(times), "of numpy": round(statistics.median(processor for _, processor in times) / numpy, 2)}


def _summed(times: Times) -> dict[str, Any]:
    walls, processors = zip(*times, strict=True)

    def at(values: tuple[float, ...], share: float) -> float:
        return round(sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1_000)

    return {
        "calls": len(times), "p50 ms": at(walls, 0.5), "p95 ms": at(walls, 0.95), "p99 ms": at(walls, 0.99),
        "processor p50 ms": at(processors, 0.5), "processor p95 ms": at(processors, 0.95),
    }  # fmt: skip


def measured(calls: int, alone: int) -> dict[str, Any]:
    """Return the rows, by name, and what is left when all of it has ended."""
    bare: dict[str, Times] = {name: [] for name in _BARE}
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"HOME": folder, "SEMMEM_CONFIG": ""}):
        env = without_settings("XDG_", "PYTHONDONTWRITEBYTECODE")  # with the latter, each hook would compile semmem
        env |= {"HOME": folder, "SEMMEM_IDLE_STOP_S": "60"}
        env |= {"PYTHONPYCACHEPREFIX": f"{folder}/compiled", "SEMMEM_AGENT_MIN_CONFIDENCE": "0"}
        env["SEMMEM_URL"] = url = f"embedded://{folder}/store"
        with semmem.connect(url, idle_stop_s=60) as mem:
            notes = [f"Note {n}: the Kestrel is our logger, and this is line {n} of the harbour." for n in range(200)]
            mem.remember_many([{"text": note} for note in notes], namespace="hooks")
            with semmem.connect(file := f"sqlite:{folder}/notes.db") as one_file:
                one_file.remember_many([{"text": note} for note in notes], namespace="hooks")
            by_itself = {**env, "SEMMEM_HOOK_PROCESS_S": "0"}
            rows = {
                f"alone, {legs}{place}": _row({**by_itself, **variables, "SEMMEM_URL": where}, alone, bare)
                for place, where in (("", url), (", one file", file))
                for legs, variables in _LEGS.items()
            }
            own = {**env, "SEMMEM_HOOK_PROCESS_S": "5"}
            _hook(own, 0)
            _until(lambda: _sockets(folder))
            rows["beside the process that a hook starts"] = _row(own, calls, bare)
            (process,) = _listeners(folder)
            memory = _resident_mb(process)
            _until(lambda: not _listeners(folder))
            left = {"processes": len(_listeners(folder)), "files": _files(folder)}
            with _session({**env, "SEMMEM_HOOK_PROCESS_S": "5"}):
                _until(lambda: _sockets(folder))
                rows["beside semmem mcp"] = _row(own, calls, bare)
                others = len(_listeners(folder))
            _until(lambda: not _sockets(folder))
            left |= {"after semmem mcp": _files(folder), "started beside semmem mcp": others}
    rows |= {name: _summed(times) | {"of numpy": ""} for name, times in bare.items()}
    load = [round(one, 1) for one in (before, os.getloadavg()[0])]
    return {"rows": rows, "load before and after": load, "MB of the process that a hook starts": memory, "left": left}


@contextmanager
def _session(env: Mapping[str, str]) -> Iterator[None]:
    """Run `semmem mcp` as a client does, up to its list of tools."""
    with subprocess.Popen(
        [*_SEMMEM, "mcp"], env=dict(env), cwd=env["HOME"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hooks", "version": "1"}}
        for number, (method, params) in enumerate((("initialize", hello), ("tools/list", {}))):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            server.stdout.readline()
        yield
        server.stdin.close()


def _until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + _WAIT_S
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError("It did not happen in two minutes.")
        time.sleep(0.1)


def _files(folder: str) -> list[str]:
    return sorted(file.name for file in (Path(folder) / ".local/state/semmem/hooks").glob("*"))


def _sockets(folder: str) -> list[str]:
    return [name for name in _files(folder) if name.endswith(".sock")]


def _listeners(folder: str) -> list[int]:
    """Return the processes that a hook of this home has started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            mine = f"HOME={folder}\0".encode() in (entry / "environ").read_bytes()
            if mine and b"\0hook\0listen\0" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def _resident_mb(process: int) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() >> 20
