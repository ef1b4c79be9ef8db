"""Measure a hard forget in a large store: its time, the longest wait of others meanwhile, and recalls after it.

    python -m eval.erasure [--memories 100000] [--folder FOLDER]

The memories are those of ``eval.bench.second_day``, with random vectors of 384 dimensions, in an embedded store; a
folder that is given keeps the store for another run. Nothing is resident, so that recalls ask the database. Prints
seconds as JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import semmem
from eval.bench.generator import made_vector
from eval.bench.second_day import random_memories
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["main"]

_DIMENSIONS = 384
_RECALLS = 40
_RECIPE = semmem.recipe("dense", timeouts={"dense": 600})


def main(argv: Sequence[str] | None = None) -> None:
    """Fill a store, forget one memory for good, and print what it took."""
    parser = argparse.ArgumentParser(prog="python -m eval.erasure", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the store is, or is made; kept")
    options = parser.parse_args(argv)
    if options.memories < 1:
        raise SystemExit("--memories is 1 or more.")
    with tempfile.TemporaryDirectory(prefix="semmem-erasure-") as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = options.folder or Path(temporary)
        try:
            with semmem.connect(f"embedded://{folder}", embedder="none", resident_mb=0) as mem:
                print(json.dumps(_measured(mem, options.memories)))
        finally:
            EmbeddedServer(folder).stop()


def _measured(mem: Any, memories: int) -> dict[str, Any]:
    seconds: dict[str, float] = {}
    if not mem.stats().memories:
        with _timed(seconds, "filled"):
            mem.remember_many(random_memories(memories, _DIMENSIONS), batch_size=1000)
    with _timed(seconds, "maintained"):
        mem.maintain()
    seconds["recall before, median"] = _recall_time(mem)
    gone = mem.list(limit=1)[0].id
    numbers = count()
    with (
        _beside(lambda: _recalled(mem, 0)) as recalls,
        _beside(lambda: _remembered(mem, next(numbers))) as writes,
        _timed(seconds, "forgotten"),
    ):
        mem.forget(gone, hard=True)
    seconds["longest recall meanwhile"] = round(max(recalls), 3)
    seconds["longest remember meanwhile"] = round(max(writes), 3)
    seconds["recall after, median"] = _recall_time(mem)
    with _timed(seconds, "maintained again"), _beside(lambda: _recalled(mem, 0)) as recalls:
        mem.maintain()
    seconds["longest recall while maintained"] = round(max(recalls), 3)
    seconds["recall after that, median"] = _recall_time(mem)
    return {"memories": mem.stats().memories, "seconds": seconds}


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[what] = round(time.perf_counter() - start, 1)


@contextmanager
def _beside(work: Callable[[], float]) -> Iterator[list[float]]:
    """Repeat ``work`` in a thread during the block; yield the list of its times."""
    times: list[float] = []
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            times.append(work())
            over.wait(0.05)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


def _recalled(mem: Any, number: int) -> float:
    start = time.perf_counter()
    mem.recall("w3 w17", vector=made_vector(f"question {number}"), recipe=_RECIPE)
    return time.perf_counter() - start


def _remembered(mem: Any, number: int) -> float:
    start = time.perf_counter()
    mem.remember(f"Beside {number}.", vector=made_vector(str(number)), namespace="beside")
    return time.perf_counter() - start


def _recall_time(mem: Any) -> float:
    return round(statistics.median(_recalled(mem, number) for number in range(_RECALLS)), 4)


if __name__ == "__main__":
    main()
