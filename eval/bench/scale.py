"""The scale benchmark: the cost of each leg as the namespace grows, and how much of it grows with the store.

    python -m eval bench scale --data musique100 --data locomo3 --data vaswani --sizes 6000,20000,100000

The memories of the data sets come first, in the order given. Where they do not suffice, more are made by joining the
halves of two existing ones (names and phrases stay whole, so that concepts are shared as in real text). The questions
are those of the sets that are completely within the smallest size. Vectors are given, so that no embedder is timed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import eval.datasets as datasets
import semmem
from eval.bench.generator import made_vector
from eval.bench.measures import percentiles
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["grown", "scale"]

_ROUNDS = 2
_WARM = 20


def grown(memories: Sequence[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` memories: those given, then joined halves of two of them, drawn from a seeded generator."""
    yield from islice(memories, count)
    draw = random.Random(0)
    for number in range(len(memories), count):
        one, other = (draw.choice(memories) for _ in range(2))
        head, tail = one["text"].split(), other["text"].split()
        yield {
            "id": f"grown {number}",
            "text": " ".join([*head[: len(head) // 2], *tail[len(tail) // 2 :]]) or one["text"],
        }


def _items(names: Sequence[str], smallest: int) -> tuple[list[dict[str, Any]], list[str]]:
    items: list[dict[str, Any]] = []
    questions: list[str] = []
    for name in names:
        corpus = datasets.load(name)
        for number, memory in enumerate(corpus.memories):
            fields = ("text", "title", "author", "session", "position", "created_at")
            items.append({"id": f"{name} {number}", **{k: memory[k] for k in fields if memory.get(k) is not None}})
        if len(items) <= smallest:
            questions += [query.text for query in corpus.queries]
    return items, questions


def _recall_times(mem: Any, questions: Sequence[str], recipe: str) -> dict[str, dict[str, float]]:
    """Return p50 and p95 of the whole recall and of each leg, after a warm-up."""
    seconds: dict[str, list[float]] = {}
    vectors = [made_vector(question) for question in questions]
    for turn in range(-1, _ROUNDS):
        for question, vector in list(zip(questions, vectors, strict=True))[: _WARM if turn < 0 else None]:
            start = time.perf_counter()
            answer = mem.recall(question, namespace="scale", vector=vector, recipe=recipe)
            took = time.perf_counter() - start
            if turn >= 0:
                for name, values in {**answer.timings, "recall": took}.items():
                    seconds.setdefault(name, []).append(values)
    return {name: percentiles(values) for name, values in seconds.items() if name != "total"}


def scale(data: Sequence[str], sizes: Sequence[int], recipe: str) -> dict[str, Any]:
    """Grow one namespace through the rising ``sizes`` and return what a recall costs at each."""
    items, questions = _items(data, sizes[0])
    if not questions or list(sizes) != sorted(sizes):
        raise datasets.DatasetError(
            "Give sizes in rising order, the smallest of which holds a whole data set with questions."
        )
    out: dict[str, Any] = {"questions": len(questions), "sizes": {}}
    with tempfile.TemporaryDirectory(prefix="semmem-scale-") as folder:
        try:
            with semmem.connect(f"embedded://{folder}", embedder="none") as mem:
                stream = grown(items, sizes[-1])
                stored = 0
                for size in sizes:
                    start = time.perf_counter()
                    batch = ({**i, "vector": made_vector(i["text"])} for i in islice(stream, size - stored))
                    mem.remember_many(batch, namespace="scale", batch_size=1000)
                    write_seconds = time.perf_counter() - start
                    mem.maintain()
                    row = {
                        "memories_per_s": round((size - stored) / write_seconds),
                        "maintain_s": round(time.perf_counter() - start - write_seconds, 1),
                        "bytes": mem.stats().bytes,
                        "p": _recall_times(mem, questions, recipe),
                    }
                    stored = size
                    out["sizes"][size] = row
                    print(f"{size:>8,}  {json.dumps(row)}", file=sys.stderr, flush=True)
        finally:
            EmbeddedServer(Path(folder)).stop()
    first, last = (out["sizes"][size]["p"] for size in (sizes[0], sizes[-1]))
    out["ratio"] = {
        leg: {p: round(last[leg][p] / first[leg][p], 2) for p in first[leg]} for leg in first if leg in last
    }
    return out
