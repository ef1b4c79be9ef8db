"""The mixed load: readers and writers at once in many namespaces of one machine, beside other systems in the same run.

    python -m eval bench mixed                                                  # an hour of each system; set it aside
    python -m eval bench mixed --memories 20000 --namespaces 200 --minutes 1    # the same, small

Each system is filled with the same memories, whose namespaces have Zipf sizes, and then asked by eight threads and
written to by two, in one process, each thread one call after the other. Vectors are given, so no embedder is timed.
Readers draw a memory and ask a question about it in its namespace; writers store one new memory a call. Questions and
new memories are made before the clock starts. What a call raises is counted, by its sentence.

The same command goes on where it stopped: a system that is measured is not measured again, and one that keeps its
memories on disk is filled from the batch on that it lacks.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import semmem
from eval.bench.generator import Generator, Question
from eval.bench.measures import percentiles, resident_mb
from eval.bench.mixed_systems import SYSTEMS, Note, System, absent
from eval.datasets import DatasetError
from semmem.model.failure import reason
from semmem.model.process.machine import processors

__all__ = ["Load", "mixed"]

_BATCH = 1_000
_PREPARED = 2_000
"""Questions, and new memories, that are made before the clock starts; they come again in turn."""
_LOOK_S = 5.0
"""How often the memory of the processes is looked at."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Load:
    """How much is stored, and who asks and writes for how long."""

    memories: int = 1_000_000
    namespaces: int = 10_000
    minutes: float = 60.0
    readers: int = 8
    writers: int = 2
    seed: int = 0


@dataclass(slots=True)
class _Calls:
    """What one thread has done: the seconds of each call, what it raised, how often it found what it asked about."""

    seconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    found: int = 0


def mixed(load: Load, folder: Path, beside: Sequence[str], say: Say = print) -> dict[str, Any]:
    """Measure semmem and the systems ``beside`` it; ``folder`` holds their data, and the results so far."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "measured.json"
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if record.get("load", asdict(load)) != asdict(load):
        raise DatasetError(f"{folder} holds a run of another load; name another folder with --folder, or remove it.")
    record = {"load": asdict(load), "systems": record.get("systems", {})}
    generator = Generator(load.seed, namespaces=load.namespaces)
    for name in ("semmem", *beside):
        if name in record["systems"]:
            say(f"{name}: measured already")
            continue
        if (why := absent(name)) is not None:
            say(why)
            record["systems"][name] = {"skipped": why}
            continue
        try:
            record["systems"][name] = _measured(name, load, generator, folder / name, say)
        except Exception as error:  # a defect of another system must not end the run
            if name == "semmem":
                raise
            say(f"{name} failed: {reason(error)}")
            record["systems"][name] = {"skipped": f"{name} failed: {reason(error)}"}
        file.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {processors()} processors, Python {platform.python_version()}",
        "version": semmem.__version__,
        **record,
    }


def _measured(name: str, load: Load, generator: Generator, folder: Path, say: Say) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    with SYSTEMS[name].opened(folder) as system:
        filled = _fill(name, system, load, generator, folder, say)
        questions = [generator.question(number, load.memories) for number in range(_PREPARED)]
        namespaces = [generator.memory(int(one.about[1:]))["namespace"] for one in questions]
        new = [_note(generator, number) for number in range(load.memories, load.memories + _PREPARED)]
        bytes_before = system.bytes()
        say(f"{name}: {load.readers} readers, {load.writers} writers, {load.minutes:g} minutes …")
        row = _under_load(system, load, list(zip(namespaces, questions, strict=True)), new)
        return {**filled, **row, "bytes_filled": bytes_before, "bytes": system.bytes()}


def _note(generator: Generator, number: int) -> Note:
    item = generator.memory(number)
    text = f"{item['title']}\n{item['text']}" if item["title"] else item["text"]
    return Note(f"m{number}", item["namespace"], text, generator.vector(number))


def _fill(name: str, system: System, load: Load, generator: Generator, folder: Path, say: Say) -> dict[str, Any]:
    """Store the memories, from the batch on that was not stored before an interruption."""
    noted = folder / "filled.json"
    done: dict[str, Any] = {"first": 0, "s": 0.0}
    if noted.exists() and system.persistent:
        done = json.loads(noted.read_text(encoding="utf-8"))
    for first in range(done["first"], load.memories, _BATCH):
        notes = [_note(generator, number) for number in range(first, min(first + _BATCH, load.memories))]
        start = time.perf_counter()
        system.fill(notes)
        done = {"first": first + _BATCH, "s": done["s"] + time.perf_counter() - start}
        noted.write_text(json.dumps(done), encoding="utf-8")
        if first // _BATCH % 50 == 0:
            say(f"{name}: {first + len(notes):,} of {load.memories:,} are stored")
    start = time.perf_counter()
    system.finish()
    return {"fill_s": round(done["s"], 1), "finish_s": round(time.perf_counter() - start, 1)}


def _under_load(
    system: System, load: Load, asked: Sequence[tuple[str, Question]], new: Sequence[Note]
) -> dict[str, Any]:
    """Let readers and writers work until the time is over; return times, rates, what was raised, and the memory."""
    end = time.monotonic() + 60 * load.minutes
    over = threading.Event()
    looks: list[list[float]] = []

    def read(thread: int, calls: _Calls) -> None:
        for namespace, question in islice(cycle(asked), thread * len(asked) // load.readers, None):
            if time.monotonic() > end:
                return
            if (ids := _timed(calls, lambda n=namespace, q=question: system.ask(n, q.text, q.vector))) is not None:
                calls.found += question.about in ids

    def write(thread: int, calls: _Calls) -> None:
        for number, note in enumerate(islice(cycle(new), thread, None, load.writers)):
            if time.monotonic() > end:
                return
            one = Note(f"w{thread}-{number}", note.namespace, f"{note.text} {thread}-{number}", note.vector)
            _timed(calls, lambda one=one: system.store(one))

    def look() -> None:
        start = time.monotonic()
        while not over.wait(_LOOK_S):
            looks.append([round(time.monotonic() - start, 1), resident_mb(os.getpid()) or 0.0, system.server_mb()])

    readers = [_Calls() for _ in range(load.readers)]
    writers = [_Calls() for _ in range(load.writers)]
    start = time.monotonic()
    with ThreadPoolExecutor(load.readers + load.writers + 1) as pool:
        watching = pool.submit(look)
        work = [pool.submit(read, n, calls) for n, calls in enumerate(readers)]
        work += [pool.submit(write, n, calls) for n, calls in enumerate(writers)]
        try:
            for one in work:
                one.result()
        finally:
            over.set()
        watching.result()
    wall = time.monotonic() - start
    recalls = sum(len(calls.seconds) for calls in readers)
    return {
        "recall": _shown(readers, wall),
        "remember": _shown(writers, wall),
        "found": round(sum(calls.found for calls in readers) / max(1, recalls), 3),
        "memory": {"seconds, this process MiB, server MiB": looks},
    }


def _timed(calls: _Calls, call: Callable[[], Any]) -> Any:
    """Return what a call returns, and note its time; None and its sentence where it raises."""
    start = time.perf_counter()
    try:
        found = call()
    except Exception as error:  # noqa: BLE001  # every failure is counted, whichever system it is of
        calls.errors[reason(error, 200)] += 1
        return None
    calls.seconds.append(time.perf_counter() - start)
    return found


def _shown(threads: Sequence[_Calls], wall: float) -> Mapping[str, Any]:
    seconds = [one for calls in threads for one in calls.seconds]
    errors = sum((calls.errors for calls in threads), Counter[str]())
    times = percentiles(seconds, (95, 99)) if seconds else {}
    counts = {"calls": len(seconds), "per_s": round(len(seconds) / wall, 1)}
    return {**times, **counts, "errors": dict(errors.most_common(5))}
