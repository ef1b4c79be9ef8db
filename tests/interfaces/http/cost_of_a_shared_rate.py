"""Measure what the shared limit of rate costs a request, on a PostgreSQL of this machine.

    python -m tests.interfaces.http.cost_of_a_shared_rate

A busy client sends 380 requests at once, of 400 that may come at once; an idle one each after its tokens are over.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time

import semmem
from semmem.interfaces.http.limits import Rates
from semmem.interfaces.http.shared_rates import SharedRates

REQUESTS, TURNS = 380, 5


async def each(rates: Rates, client: str, clock: list[float], step: float) -> list[float]:
    times = []
    for _ in range(REQUESTS):
        clock[0] += step
        began = time.perf_counter()
        assert await rates.wait(client) == 0.0
        times.append((time.perf_counter() - began) * 1e6)
    return times


def main() -> None:
    clock = [0.0]
    with (
        tempfile.TemporaryDirectory() as folder,
        semmem.connect(f"embedded://{folder}/store", embedder="none", idle_stop_s=5) as mem,
    ):
        assert mem.store.serving is not None
        for turn in range(TURNS):
            kinds = {
                "one server": (Rates(200.0, 400, lambda: clock[0]), 0.0),
                "shared, busy": (SharedRates(200.0, 400, mem.store.serving, lambda: clock[0]), 0.0),
                "shared, idle": (SharedRates(1e6, 400, mem.store.serving, lambda: clock[0]), 2.0),
            }
            for name, (rates, step) in kinds.items():
                times = asyncio.run(each(rates, f"{name} {turn}", clock, step))
                print(
                    f"{name:14} mean {statistics.mean(times):8.1f} us, median {statistics.median(times):8.1f} us, "
                    f"most {max(times):8.1f} us",
                    flush=True,
                )


if __name__ == "__main__":
    main()
