"""The cost of the audit for a recall and a remember: ``python -m tests.client.audit_cost [URL]``, for adr/0095."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import semmem
from semmem.client.memory import Semmem
from semmem.read import tracing

CALLS = 200


def measure(mem: Semmem, begin: int) -> dict[str, list[float]]:
    """Return the milliseconds of each of some recalls and remembers."""
    times: dict[str, list[float]] = {"recall": [], "remember": []}
    work: dict[str, Callable[[int], Any]] = {
        "recall": lambda n: mem.recall(f"heron {n % 50}", limit=10),
        "remember": lambda n: mem.remember(f"Note {begin + n} of Ada Lovelace.", id=f"x{begin + n}"),
    }
    for n in range(CALLS):
        for name, call in work.items():
            started = time.perf_counter()
            call(n)
            times[name].append((time.perf_counter() - started) * 1e3)
    return times


def main(url: str | None) -> None:
    """Print the medians with and without the audit, in four turns."""
    with tempfile.TemporaryDirectory() as folder:
        place = url or f"sqlite://{folder}/notes.db"
        all_times: dict[tuple[str, bool], list[float]] = {}
        for turn in range(4):
            audit = bool(turn % 2)
            with semmem.connect(place, embedder="hashing", audit=audit) as mem:
                if turn == 0:
                    mem.remember_many(
                        [{"text": f"A heron, number {n}, stands at quay {n % 50}."} for n in range(2_000)]
                    )
                for name, times in measure(mem, turn * CALLS).items():
                    all_times.setdefault((name, audit), []).extend(times)
            tracing.switch_off()
    for (name, audit), times in sorted(all_times.items()):
        print(f"{name} {'audit' if audit else 'plain'}: {statistics.median(times):.2f} ms, 95 %: "
              f"{statistics.quantiles(times, n=20)[-1]:.2f}")  # fmt: skip


if __name__ == "__main__":
    main(*(sys.argv[1:] or [None]))
