"""Check the upkeep of a large store: copy, rebuild, backup and restore must keep all counts and hashes equal.

    python -m eval bench second-day [--memories 100000] [--dimensions 64]

The memories are made from a vocabulary by a seeded generator, with titles that name things, so that there is a graph;
their vectors are given, so that no encoder is timed. Everything happens in temporary embedded stores. Prints times in
seconds, sizes in bytes and the hashes as JSON, and fails where two differ that must be equal.
"""

from __future__ import annotations

import dataclasses
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import semmem
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["random_memories", "second_day"]

_NAMESPACE = "second-day"
_VOCABULARY = 20_000
_NAMES = 4_000
_WORDS = 25
_QUESTIONS = 20


def random_memories(count: int, dimensions: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` memories: words with Zipf's frequencies, a name in each, a title in every fifth, a vector."""
    chance = np.random.default_rng(7)
    weights = 1.0 / np.arange(1, _VOCABULARY + 1)
    edges = np.cumsum(weights / weights.sum())
    for number in range(count):
        words = [f"w{word:x}" for word in np.searchsorted(edges, chance.random(_WORDS)).tolist()]
        one, other = chance.integers(0, _NAMES, 2).tolist()
        vector = chance.normal(size=dimensions)
        yield {
            "id": f"m{number}",
            "text": f"{' '.join(words[:12])}, as Person{one} Of{one % 97} saw, {' '.join(words[12:])}.",
            "title": f"Person{other} Of{other % 97}" if number % 5 == 0 else None,
            "author": f"author {number % 50}",
            "session": f"s{number // 40}",
            "position": number % 40,
            "tags": [f"t{number % 11}"],
            "metadata": {"number": number},
            "created_at": "2026-01-31T12:00:00+00:00",
            "vector": (vector / np.linalg.norm(vector)).astype(np.float32),
        }


def answers(mem: Any, dimensions: int) -> list[Any]:
    """Return (id, score) of the hits of some questions by the lexical leg, which is exact.

    The HNSW index of a large namespace is approximate and built with random numbers, so the dense leg may answer a
    little differently over the same vectors; the hashes compare the vectors themselves.
    """
    items = list(random_memories(_QUESTIONS, dimensions))
    return [
        [
            (hit.memory.id, hit.score)
            for hit in mem.recall(" ".join(item["text"].split()[:9]), recipe="lexical", namespace=_NAMESPACE, limit=10)
        ]
        for item in items
    ]


def second_day(memories: int, dimensions: int) -> dict[str, Any]:
    """Copy, rebuild, back up and restore a store of made memories; return seconds, bytes and hashes."""
    report: dict[str, Any] = {
        "memories": memories,
        "dimensions": dimensions,
        "seconds": {},
        "bytes": {},
    }
    with tempfile.TemporaryDirectory(prefix="semmem-second-day-") as folder:
        places = {name: Path(folder) / name for name in ("source", "copy", "restored")}
        try:
            _run(places, Path(folder) / "backup.semmem", memories, dimensions, report)
        finally:
            for place in places.values():
                EmbeddedServer(place).stop("immediate")
    report["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    report["version"] = semmem.__version__
    report["bytes"]["memory of this process at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return report


def _run(places: dict[str, Path], file: Path, count: int, dimensions: int, report: dict[str, Any]) -> None:
    @contextmanager
    def timed(what: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        report["seconds"][what] = round(time.perf_counter() - start, 1)
        print(f"{what}: {report['seconds'][what]} s", file=sys.stderr, flush=True)

    urls = {name: f"embedded://{place}" for name, place in places.items()}
    with semmem.connect(urls["source"], embedder="none") as mem:
        with timed("remember"):
            mem.remember_many(random_memories(count, dimensions), namespace=_NAMESPACE, batch_size=1000)
        with timed("maintain"):
            mem.maintain()
        with timed("hashes"):
            before = mem.hashes()
        hits = answers(mem, dimensions)
        report["bytes"]["source"] = mem.stats().bytes
    _same("count", before[_NAMESPACE].memories, count)
    with timed("copy"):
        copy_report = semmem.copy(urls["source"], urls["copy"])
    _same("copy", copy_report.namespaces, before)
    with timed("copy again, nothing changed"):
        again = semmem.copy(urls["source"], urls["copy"])
    report["rows"], report["indexed"] = sum(copy_report.tables.values()), copy_report.indexed
    _same("rows found by the second copy", again.found, report["rows"])
    with semmem.connect(urls["copy"], embedder="none") as mem:
        _same("recall after copy", answers(mem, dimensions), hits)
        with timed("rebuild --extract"):
            report["changed by rebuild"] = mem.rebuild(extract=True)
        _same("rebuild", mem.hashes(), before)
        with timed("backup"):
            backup_report = mem.backup(file)
        report["bytes"]["backup"] = backup_report.bytes
        _same("backup", backup_report.namespaces, before)
    with semmem.connect(urls["restored"], embedder="none") as mem:
        with timed("restore"):
            mem.restore(file)
        _same("restore", mem.hashes(), before)
        _same("recall after restore", answers(mem, dimensions), hits)
    report["hashes"] = dataclasses.asdict(before[_NAMESPACE])


def _same(what: str, one: Any, other: Any) -> None:
    if one != other:
        raise SystemExit(f"{what}: {str(one)[:300]} is not {str(other)[:300]}")
