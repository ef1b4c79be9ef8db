"""Measure what a remember and a recall cost in a store on three nodes of Citus, beside one server with the same files.

    python -m tests.stores.postgres.nodes_cost

Both stores are databases of the same three servers: one has no Citus, so all of it lies on the first server.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import semmem
from tests.stores.postgres.nodes import three_nodes

FILLED, ASKED = 500, 100
WORDS = ("owl", "quay", "heron", "engine", "mole", "tower", "crow", "harbour", "lamp", "ledger")


def text(n: int) -> str:
    return f"Note {n}: Ada {WORDS[n % 10]} met Charles {WORDS[n // 10 % 10]} by the {WORDS[n // 100 % 10]} at {n}."


def milliseconds(work: Callable[[int], Any], numbers: range) -> list[float]:
    out = []
    for n in numbers:
        began = time.perf_counter()
        work(n)
        out.append((time.perf_counter() - began) * 1000)
    return out


def measure(url: str, resident_mb: int) -> list[tuple[str, list[float]]]:
    with semmem.connect(url, embedder="hashing", resident_mb=resident_mb) as mem:
        where: Any = {"namespace": f"of {resident_mb}"}
        mem.remember_many([{"text": text(n)} for n in range(FILLED)], **where)
        mem.maintain()
        mem.recall(text(0), **where)
        asked, written = range(ASKED), range(FILLED, FILLED + ASKED)
        return [
            ("recall", milliseconds(lambda n: mem.recall(f"Which {WORDS[n % 10]} met Charles?", **where), asked)),
            ("remember", milliseconds(lambda n: mem.remember(text(n), **where), written)),
            ("list", milliseconds(lambda n: mem.list(limit=10, **where), asked)),
        ]  # fmt: skip


def main() -> None:
    with three_nodes() as cluster:
        stores = {"one": cluster.database("one", joined=False)[0], "three": cluster.database("three")[0]}
        for resident_mb in (0, 64):
            for name, url in stores.items():
                for verb, times in measure(url, resident_mb):
                    cuts = statistics.quantiles(times, n=100)
                    numbers = "  ".join(f"{cut:6.1f}" for cut in (statistics.median(times), cuts[89], cuts[98]))
                    print(f"{verb:9} resident_mb {resident_mb:3} nodes {name:6} {numbers}", flush=True)


if __name__ == "__main__":
    main()
