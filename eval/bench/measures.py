"""The measurements: times of repeated calls, growth with the number of memories, memory and bytes on disk."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

__all__ = [
    "asked",
    "bytes_of",
    "clients",
    "growth",
    "loop_ms",
    "percentiles",
    "processor_s",
    "resident_mb",
    "tail",
    "timed_calls",
]


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return p50 and p95 in milliseconds."""
    ordered = sorted(seconds)
    return {"p50_ms": round(statistics.median(ordered) * 1e3, 3), "p95_ms": _at(ordered, 0.95)}


def tail(seconds: Sequence[float]) -> dict[str, float]:
    """Return p50, p95, p99 and the most in milliseconds; nothing where there was no call."""
    ordered = sorted(seconds)
    return {**percentiles(ordered), "p99_ms": _at(ordered, 0.99), "most_ms": _at(ordered, 1.0)} if ordered else {}


def _at(ordered: Sequence[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3, 3)


def asked(work: Callable[[int], Any], count: int, *, rounds: int = 2, at_most_s: float = math.inf) -> dict[str, float]:
    """Return p50 and p95 of ``work``, called with 0 to ``count`` − 1 in each round, after a warm-up.

    The warm-up and the calls end, one call at least, when each has taken ``at_most_s`` seconds; "calls" says then
    how many were timed.
    """
    timed_calls(work, range(min(count, 20)), at_most_s)
    numbers = [number for _ in range(rounds) for number in range(count)]
    seconds = timed_calls(work, numbers, at_most_s)
    ended = len(seconds) < len(numbers)
    return {**percentiles(seconds), **({"calls": len(seconds)} if ended else {})}


def timed_calls(work: Callable[[int], Any], numbers: Iterable[int], at_most_s: float) -> list[float]:
    """Return the seconds that each call of ``work`` took; they end, one at least, when all took ``at_most_s``."""
    seconds: list[float] = []
    left = at_most_s
    for number in numbers:
        start = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - start)
        left -= seconds[-1]
        if left <= 0:
            break
    return seconds


def clients(work: Callable[[int], Any], count: int, threads: int) -> dict[str, float]:
    """Return p50, p95 and calls a second of ``threads`` that call ``work`` at once, ``count`` times in all."""

    def call(first: int) -> list[float]:
        seconds = []
        for number in range(first, count, threads):
            start = time.perf_counter()
            work(number)
            seconds.append(time.perf_counter() - start)
        return seconds

    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        seconds = [took for of_one in pool.map(call, range(threads)) for took in of_one]
        wall = time.perf_counter() - start
    return {**percentiles(seconds), "per_s": round(count / wall, 1)}


def growth(by_size: Mapping[int, float]) -> float | None:
    """Return x of time ~ n^x, the least squares line through the logarithms; None for fewer than two sizes."""
    points = [(math.log(size), math.log(value)) for size, value in by_size.items() if size > 0 and value > 0]
    if len(points) < 2:
        return None
    middle, level = (statistics.fmean(axis) for axis in zip(*points, strict=True))
    spread = sum((x - middle) ** 2 for x, _ in points)
    return round(sum((x - middle) * (y - level) for x, y in points) / spread, 3) if spread else None


def loop_ms() -> float:
    """Return the milliseconds that a loop of a million additions takes, the fastest of five: the speed of the machine.

    Results of two days, or of two machines, can be compared only where it is the same.
    """

    def loop(_: int) -> None:
        total = 0
        for number in range(1_000_000):
            total += number

    return round(min(timed_calls(loop, range(5), math.inf)) * 1e3, 1)


def resident_mb(pid: int | str = "self") -> float | None:
    """Return the proportional share of memory of a process in MiB, None where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((round(int(line.split()[1]) / 1024, 1) for line in lines if line.startswith("Pss:")), None)


def processor_s(pid: int) -> float:
    """Return the seconds that a process has been on a processor, 0 where it has ended or the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bytes_of(folder: Path) -> int:
    """Return the bytes that the files under ``folder`` take on the disk."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:  # a file of the server that has gone meanwhile
                continue
    return total
