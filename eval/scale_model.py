"""How many nodes a million namespaces need: arithmetic on measured costs, and a measurement that it is checked against.

    python -m eval.scale_model                                               # the table of adr/0099
    python -m eval.scale_model measure --namespaces 1000 --memories 20000    # one node, filled and asked

Namespaces have Zipf sizes: the one of rank i holds 1 / i of what the first holds. The costs and their sources are in
``eval/scale_costs.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import semmem
from eval.bench.generator import made_vector
from eval.bench.measures import percentiles
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["Costs", "Demand", "Need", "cut_sizes", "main", "needed", "read_costs", "sizes"]

COSTS = Path(__file__).parent / "scale_costs.json"
_EULER = 0.5772156649015329


@dataclass(frozen=True, slots=True)
class Costs:
    """What one memory, namespace, recall, write and node take; each with its source in the file."""

    disk_kb_per_memory: float
    disk_kb_per_namespace: float
    resident_kb_per_memory: float
    recall_ms: float
    write_ms: float
    most_memories_of_a_namespace: float
    node_processors: float
    node_memory_gb: float
    node_disk_gb: float
    node_connections: float
    node_dollars_a_month: float
    used: float


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked: ``active`` is the share of namespaces, drawn at random, in the memory of the servers."""

    namespaces: int
    memories: int
    recalls_per_s: float
    writes_per_s: float
    active: float
    processes: int
    connections_of_a_process: int = 8


@dataclass(frozen=True, slots=True)
class Need:
    """The nodes that each resource asks for, the greatest of which decides, and the largest namespace.

    ``connections`` are those of every node, however many there are: one that a client has opened to a node is followed
    by one from there to each other node that it asks. ``poolers`` says whether they are more than a node bears.
    """

    disk_gb: float
    resident_gb: float
    processors: float
    connections: int
    poolers: bool
    largest_namespace: float
    too_large: int
    nodes: Mapping[str, int]

    @property
    def bound(self) -> str:
        """The resource that decides."""
        return max(self.nodes, key=self.nodes.__getitem__)

    @property
    def most_nodes(self) -> int:
        """The nodes that are needed."""
        return self.nodes[self.bound]


def read_costs(path: Path = COSTS) -> Costs:
    """Return the costs of a file."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return Costs(**{field.name: rows[field.name]["value"] for field in fields(Costs)})


def harmonic(count: int) -> float:
    """Return 1 + 1/2 + … + 1/count, beyond a thousand by its series."""
    if count <= 1_000:
        return math.fsum(1 / i for i in range(1, count + 1))
    return math.log(count) + _EULER + 1 / (2 * count)


def sizes(namespaces: int, memories: int) -> list[float]:
    """Return the Zipf sizes, the largest first."""
    first = memories / harmonic(namespaces)
    return [first / i for i in range(1, namespaces + 1)]


def cut_sizes(namespaces: int, memories: int, largest: float) -> list[float]:
    """Return Zipf sizes of which none is more than ``largest``, the largest first; together they are ``memories``."""
    low, high = 0.0, float(memories) * namespaces
    for _ in range(100):
        first = (low + high) / 2
        together = math.fsum(min(first / i, largest) for i in range(1, namespaces + 1))
        low, high = (first, high) if together < memories else (low, first)
    return [min(first / i, largest) for i in range(1, namespaces + 1)]


def needed(demand: Demand, costs: Costs) -> Need:
    """Return what a demand needs. Nodes hold ``used`` of each resource, so that one can fail and others take over."""
    first = demand.memories / harmonic(demand.namespaces)
    disk = (demand.memories * costs.disk_kb_per_memory + demand.namespaces * costs.disk_kb_per_namespace) / 1e6
    resident = demand.active * demand.memories * costs.resident_kb_per_memory / 1e6
    processors = (demand.recalls_per_s * costs.recall_ms + demand.writes_per_s * costs.write_ms) / 1e3
    connections = demand.processes * demand.connections_of_a_process
    asks = {
        "disk": disk / costs.node_disk_gb,
        "memory": resident / costs.node_memory_gb,
        "processors": processors / costs.node_processors,
    }
    nodes = {name: max(1, math.ceil(round(ask / costs.used, 9))) for name, ask in asks.items()}
    too_large = min(demand.namespaces, int(first / costs.most_memories_of_a_namespace))
    poolers = connections > costs.used * costs.node_connections
    return Need(disk, resident, processors, connections, poolers, first, too_large, nodes)


DEMANDS = (
    Demand(1_000, 1_000_000, 10, 1, 0.1, 2),
    Demand(10_000, 10_000_000, 100, 10, 0.1, 8),
    Demand(100_000, 100_000_000, 1_000, 100, 0.1, 40),
    Demand(1_000_000, 1_000_000_000, 10_000, 1_000, 0.1, 200),
)


def table(demands: Sequence[Demand], costs: Costs) -> str:
    """Return the needs as a table in Markdown."""
    lines = [
        "| namespaces | memories | recalls, writes/s | disk, GB | in memory, GB | processors "
        "| connections of each node | largest namespace | too large | nodes by disk, memory, processors | $ a month |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in demands:
        need = needed(one, costs)
        nodes = ", ".join(f"**{n}**" if name == need.bound else str(n) for name, n in need.nodes.items())
        lines.append(
            f"| {one.namespaces:,} | {one.memories:,} | {one.recalls_per_s:,.0f}, {one.writes_per_s:,.0f} "
            f"| {need.disk_gb:,.0f} | {need.resident_gb:,.1f} | {need.processors:,.1f} "
            f"| {need.connections:,}{', too many' if need.poolers else ''} "
            f"| {need.largest_namespace:,.0f} | {need.too_large} | {nodes} "
            f"| {need.most_nodes * costs.node_dollars_a_month:,.0f} |"
        )
    return "\n".join(lines)


_WORDS = (
    "engine", "ship", "harbour", "letter", "river", "night", "garden", "signal", "copper", "winter", "bridge",
    "machine", "paper", "lamp", "station",
)  # fmt: skip


def made(namespaces: int, memories: int) -> Iterator[dict[str, Any]]:
    """Yield memories of Zipf sizes, each namespace with at least one, of 40 words and with a vector."""
    number = 0
    for rank, size in enumerate(sizes(namespaces, memories), 1):
        for _ in range(max(1, round(size))):
            words = [_WORDS[(number * 7 + i * i) % len(_WORDS)] for i in range(34)]
            text = f"Person {number % 997} met Person {number % 991}. {' '.join(words)}"
            yield {"id": f"m{number}", "namespace": f"n{rank}", "text": text, "vector": made_vector(text)}
            number += 1


def measure(namespaces: int, memories: int, questions: int) -> dict[str, Any]:
    """Fill one node and ask it: disk, rates and times."""
    with tempfile.TemporaryDirectory(prefix="semmem-scale-") as folder:
        server = EmbeddedServer(Path(folder) / "data", idle_stop_s=3_600)
        try:
            return _measured(f"embedded://{server.data}", namespaces, memories, questions)
        finally:
            server.stop("immediate")


def _measured(url: str, namespaces: int, memories: int, questions: int) -> dict[str, Any]:
    with semmem.connect(url, embedder="none", count_accesses=False) as mem:
        empty = mem.stats().bytes or 0
        started = time.monotonic()
        report = mem.remember_many(made(namespaces, memories))
        wrote = time.monotonic() - started
        before = mem.stats().bytes
        started = time.monotonic()
        mem.maintain()
        maintained = time.monotonic() - started
        after = mem.stats().bytes or 0
        question, seconds = "who met Person 7 at the harbour?", []
        vector = made_vector(question)
        for number in range(questions):
            started = time.perf_counter()
            mem.recall(question, namespace=f"n{1 + number * 7919 % namespaces}", vector=vector)
            seconds.append(time.perf_counter() - started)
        return {
            "namespaces": namespaces, "memories": report.remembered,
            "write_ms": round(1e3 * wrote / report.remembered, 3),
            "maintain_s": round(maintained, 1), "bytes_empty": empty, "bytes": before, "bytes_maintained": after,
            "kb_per_memory": round((after - empty) / 1e3 / report.remembered, 2), "recall": percentiles(seconds),
        }  # fmt: skip


def main(args: Sequence[str] | None = None) -> int:
    """Print the table, or measure one node."""
    parser = argparse.ArgumentParser(prog="python -m eval.scale_model", description="Nodes for many namespaces.")
    parser.add_argument("what", nargs="?", choices=("table", "measure"), default="table")
    parser.add_argument("--namespaces", type=int, default=1_000)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=200)
    given = parser.parse_args(args)
    if min(given.namespaces, given.memories, given.questions) < 1:
        parser.error("--namespaces, --memories and --questions must be 1 or more.")
    if given.what == "table":
        print(table(DEMANDS, read_costs()))
    else:
        print(json.dumps(measure(given.namespaces, given.memories, given.questions), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
