"""Measure for how long a recall right after a write waits for a standby: python -m tests.stores.postgres.standby.lag"""

from __future__ import annotations

import os
import time
from typing import Any

import semmem
from tests.stores.postgres import own_server
from tests.stores.postgres.own_server import Own
from tests.stores.postgres.standby.standing_by import standby_of

PAIRS = 400


def main() -> None:
    """Print milliseconds at the 50th, 90th and 99th percentile and the most, on a primary that syncs its log."""
    own = own_server.make()
    own.sql("ALTER SYSTEM SET fsync = on")
    own.sql("SELECT pg_reload_conf()")
    standby = standby_of(own)
    try:
        measure(own, standby)
    finally:
        own_server.unmake(standby)
        own_server.unmake(own)


def measure(own: Own, standby: Own) -> None:
    name = own.database()
    settings: dict[str, Any] = {"embedder": "hashing", "count_accesses": False}
    waits: list[float] = []
    with semmem.connect(own.url(name, "ada"), read_url=standby.url(name, "ada"), read_wait_s=60, **settings) as mem:
        source: Any = mem._here.reader
        awaited = source._awaited

        def timed(end: Any) -> bool:
            begun = time.perf_counter()
            has = awaited(end)
            waits.append(time.perf_counter() - begun)
            return bool(has)

        source._awaited = timed
        show("a recall right after a write, from the standby", after_writes(mem, 0))
        show("of this, the wait for the standby", waits)
    with semmem.connect(own.url(name, "ada"), **settings) as mem:
        show("a recall right after a write, from the primary", after_writes(mem, PAIRS))
    print(f"load {os.getloadavg()[0]:.1f}")


def after_writes(mem: semmem.Semmem, first: int) -> list[float]:
    """Return the seconds of recalls, each behind a write."""
    times = []
    for n in range(first, first + PAIRS):
        mem.remember(f"Note {n} about heron {n % 17} and quay {n % 5}.", id=f"n{n}")
        begun = time.perf_counter()
        mem.recall(f"heron {n % 17}")
        times.append(time.perf_counter() - begun)
    return times


def show(what: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    places = [ordered[int(len(ordered) * part)] for part in (0.5, 0.9, 0.99)] + [ordered[-1]]
    print(f"{what}: " + ", ".join(f"{1_000 * value:.1f}" for value in places))


if __name__ == "__main__":
    main()
