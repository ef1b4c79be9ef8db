"""Measure second-day work over a large store: counts, pages of a list, recalls of now, after writes, and of before.

    python -m eval bench reads [--memories 100000] [--folder FOLDER]

The memories are titled passages (``eval.titled``) with given vectors of 384 dimensions, in an embedded store; every
hundredth is changed once, so that there are earlier versions. A folder that is given keeps the store for another run.
Prints milliseconds as JSON, with the namespace in memory and with nothing in memory: the median by the clock, and the
time of this process and those of the server on a processor (Linux), which says most on a machine with other work.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import semmem
from eval.bench.generator import made_vector
from eval.titled import corpus
from semmem.model.types import LIST_ORDERS, ListOrder
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres.store import PostgresStore

__all__ = ["reads"]

_NAMESPACE = "titled"
_ROUNDS = 20
_WRITES = (8, 100)
"""A recall is timed again after so many memories more, which the model in memory has in a block of their own."""
_RESIDENT_MB = 1_000
_PIDS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"


def reads(memories: int, folder: Path | None) -> dict[str, Any]:
    """Fill the store in ``folder`` where it is empty, and return how long each kind of work takes."""
    with tempfile.TemporaryDirectory(prefix="semmem-reads-") as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        where = folder or Path(temporary)
        try:
            return _measured(f"embedded://{where}", memories)
        finally:
            EmbeddedServer(where).stop()


def _measured(url: str, memories: int) -> dict[str, Any]:
    data = corpus(memories, _ROUNDS)
    with semmem.connect(url, embedder="none") as mem:
        if not mem.list(namespace=_NAMESPACE, limit=1):
            items = ({**one, "vector": made_vector(one["text"])} for one in data.memories)
            mem.remember_many(items, batch_size=1000)
            for number in range(0, memories, 100):
                text = f"{data.memories[number]['text']} It was restored."
                mem.update(str(number), namespace=_NAMESPACE, text=text, vector=made_vector(text))
            mem.maintain()
        then = mem.list(namespace=_NAMESPACE, sort_by="updated", limit=2_000).memories[-1].updated_at
    questions = [(query.text, made_vector(query.text)) for query in data.queries]
    return {
        "memories": memories,
        "in memory": _times(url, _RESIDENT_MB, questions, then),
        "nothing in memory": _times(url, 0, questions, then),
    }


def _times(
    url: str, resident_mb: int, questions: Sequence[tuple[str, Any]], then: datetime | None
) -> dict[str, dict[str, float]]:
    with semmem.connect(url, embedder="none", resident_mb=resident_mb) as mem:
        began = time.monotonic()
        while resident_mb and _NAMESPACE not in mem.resident and time.monotonic() - began < 120:
            mem.recall("anything", namespace=_NAMESPACE, vector=questions[0][1])
            time.sleep(0.5)

        def asked(**how: Any) -> Callable[[int], object]:
            def ask(number: int) -> object:
                text, vector = questions[number % len(questions)]
                return mem.recall(text, vector=vector, namespace=_NAMESPACE, **how)

            return ask

        def listed(order: ListOrder, _: int) -> object:
            return mem.list(namespace=_NAMESPACE, sort_by=order)

        work: dict[str, Callable[[int], object]] = {
            "stats": lambda _: mem.stats(),
            "stats, exact": lambda _: mem.stats(exact=True),
            **{f"list by {one}": partial(listed, one) for one in LIST_ORDERS},
            "recall of now": asked(),
            "recall before the changes": asked(as_of=then),
        }
        postgres = mem.store
        assert isinstance(postgres, PostgresStore)
        times = {name: _milliseconds(postgres, run) for name, run in work.items()}
        later = [
            {**one, "id": f"later {one['id']}", "vector": made_vector(one["text"]), "namespace": _NAMESPACE}
            for one in corpus(_WRITES[-1], 1, seed=8).memories
        ]
        for before, written in pairwise((0, *_WRITES)):
            mem.remember_many(later[before:written])
            times[f"recall after {written} writes"] = _milliseconds(postgres, work["recall of now"])
        for one in later:
            mem.forget(one["id"], namespace=_NAMESPACE)
        return times


def _milliseconds(postgres: PostgresStore, run: Callable[[int], object]) -> dict[str, float]:
    run(0)
    times, client, server = [], time.process_time(), _server_s(postgres)
    for number in range(_ROUNDS):
        start = time.perf_counter()
        run(number)
        times.append(time.perf_counter() - start)
    spent = {"client": (time.process_time() - client) / _ROUNDS, "server": (_server_s(postgres) - server) / _ROUNDS}
    return {name: round(1_000 * s, 2) for name, s in {"clock": statistics.median(times), **spent}.items()}


def _server_s(postgres: PostgresStore) -> float:
    """Return the seconds that the server's processes for clients have been on a processor."""
    pids = postgres.run(lambda c: c.execute(_PIDS).fetchall())
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) for (pid,) in pids) / 1e9
