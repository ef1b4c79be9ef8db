"""The speed benchmark: ingest rate and recall latency of semmem beside bm25s + numpy in the same run.

    python -m eval.speed [--data ../shared/data/vaswani] [--documents 11429] [--json]

Vectors are given, so that no encoder is timed: they are random unit vectors, of the shape of MiniLM's, made from the
text, unless ``--vectors`` names a .npy file with one row a document. Every figure is also given as a ratio to the
baseline, since machines differ.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import eval.datasets as datasets
import semmem
from eval.bench.measures import asked, percentiles
from semmem.stores.embedded.server import EmbeddedServer
from semmem.text.passages import terms

__all__ = ["main"]

_DIMENSIONS = 384
_ROUNDS = 2


def made_vector(text: str) -> Any:
    """Return a unit vector drawn from a generator seeded by the text: the same text, the same vector."""
    seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
    vector = np.random.default_rng(seed).normal(size=_DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


def baseline(texts: Sequence[str], vectors: Any, questions: Sequence[str], question_vectors: Any) -> dict[str, Any]:
    """Time bm25s and a numpy matrix of vectors; a recall fuses the first 100 of both by RRF."""
    import bm25s

    start = time.perf_counter()
    tokens = [terms(text) for text in texts]
    index = bm25s.BM25(k1=1.2, b=0.5)
    index.index(tokens, show_progress=False)
    matrix = np.stack(vectors)
    built = time.perf_counter() - start
    depth = min(100, len(texts))

    def recall(number: int) -> list[int]:
        positions, _ = index.retrieve([terms(questions[number])], k=depth, show_progress=False)
        near = np.argsort(-(matrix @ question_vectors[number]))[:depth]
        scores: dict[int, float] = {}
        for ranking in (positions[0].tolist(), near.tolist()):
            for rank, place in enumerate(ranking, 1):
                scores[place] = scores.get(place, 0.0) + 1 / (60 + rank)
        return sorted(scores, key=lambda place: -scores[place])[:10]

    return {"documents_per_s": round(len(texts) / built), "recall": asked(recall, len(questions), rounds=_ROUNDS)}


def measured(
    items: list[dict[str, Any]], questions: Sequence[str], question_vectors: Any, folder: str
) -> dict[str, Any]:
    """Remember ``items`` in a new embedded store, then time recalls with several recipes."""
    with semmem.connect(f"embedded://{folder}", embedder="none") as mem:
        start = time.perf_counter()
        mem.remember_many(items, namespace="speed", batch_size=1000)
        seconds = time.perf_counter() - start
        out: dict[str, Any] = {"memories_per_s": round(len(items) / seconds), "recall": {}, "legs": {}}
        for recipe in ("default as written", "lexical", "dense", "hybrid", "default"):
            if recipe == "lexical":  # from here on the store is maintained, as after any large import
                start = time.perf_counter()
                mem.maintain()
                out["maintain_s"] = round(time.perf_counter() - start, 1)
            legs: dict[str, list[float]] = {}

            def recall(number: int, recipe: str = recipe.split()[0], legs: dict[str, list[float]] = legs) -> None:
                answer = mem.recall(
                    questions[number], namespace="speed", vector=question_vectors[number], recipe=recipe
                )
                for leg, took in answer.timings.items():
                    legs.setdefault(leg, []).append(took)

            out["recall"][recipe] = asked(recall, len(questions), rounds=_ROUNDS)
            if recipe == "default":
                out["legs"] = {leg: percentiles(took) for leg, took in legs.items()}
        out["bytes"] = mem.stats().bytes
        return out


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(prog="python -m eval.speed", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data", default="../shared/data/vaswani", help="a folder with documents.jsonl and queries.jsonl"
    )
    parser.add_argument("--documents", type=int, default=None, help="only the first so many")
    parser.add_argument("--json", action="store_true", help="only JSON on standard output")
    options = parser.parse_args(argv)
    try:
        corpus = datasets.load(Path(options.data))
    except datasets.DatasetError as error:
        raise SystemExit(str(error)) from None
    items = [
        {"id": item["id"], "text": item["text"], "title": item.get("title")}
        for item in list(corpus.memories)[: options.documents]
    ]
    for item in items:
        item["vector"] = made_vector(item["text"])
    questions = [query.text for query in corpus.queries][:100]
    question_vectors = [made_vector(question) for question in questions]
    beside = baseline([i["text"] for i in items], [i["vector"] for i in items], questions, question_vectors)
    with tempfile.TemporaryDirectory(prefix="semmem-speed-") as folder:
        try:
            ours = measured(items, questions, question_vectors, folder)
        finally:
            EmbeddedServer(Path(folder)).stop()
    report = {
        "corpus": corpus.name,
        "documents": len(items),
        "questions": len(questions),
        "semmem": ours,
        "bm25s + numpy": beside,
        "ratio": {
            "ingest": round(ours["memories_per_s"] / beside["documents_per_s"], 3),
            "recall_p50": round(ours["recall"]["default"]["p50_ms"] / beside["recall"]["p50_ms"], 1),
            "hybrid_p50": round(ours["recall"]["hybrid"]["p50_ms"] / beside["recall"]["p50_ms"], 1),
        },
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "version": semmem.__version__,
    }
    if options.json:
        print(json.dumps(report))
        return
    print(f"{report['documents']} documents of {report['corpus']}, {report['questions']} questions, vectors given")
    print(f"  ingest   semmem {ours['memories_per_s']:>7}/s   bm25s + numpy {beside['documents_per_s']:>7}/s")
    print(f'  maintain {ours["maintain_s"]} s, after the figures of "default as written"')
    for recipe, took in ours["recall"].items():
        print(f"  {recipe:18} p50 {took['p50_ms']:>6} ms   p95 {took['p95_ms']:>6} ms")
    print(f"  baseline p50 {beside['recall']['p50_ms']:>6} ms   p95 {beside['recall']['p95_ms']:>6} ms")
    for leg, took in ours["legs"].items():
        print(f"    of default: {leg:8} p50 {took['p50_ms']:>6} ms   p95 {took['p95_ms']:>6} ms")


if __name__ == "__main__":
    main()
