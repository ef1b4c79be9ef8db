"""Recall of semmem and of other systems on data sets, with the same texts and the same vectors.

    python -m eval.peers --data eval/data/harbour [--data musique100 ...] [--only semmem] [--out FILE.json]

Each system of ``eval/bench/others.py`` that is installed is filled with the memories of a namespace, as title and text,
and asked for ten hits. Recall@10 is over the questions of the headline, its interval by sign flips of their clusters.
Below eight clusters there is no interval. Bytes are what a system has written to its folder or database. With
``--only`` (repeatable) the other systems keep what the file says of them, where it is of the same bytes of the set.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import eval.datasets as datasets
import semmem
from eval.bench.others import absent, opened
from eval.datasets.corpus import Corpus, Query
from eval.experiments.evidence.provenance import COMMIT, installed, now
from eval.statistics.clusters import clusters
from eval.statistics.significance import FEWEST, clustered, flip_interval
from semmem.embedders.minilm import MiniLM
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["kept", "main", "measured", "recall_of"]

K = 10
SYSTEMS = {
    "bm25s + numpy": "bm25s",
    "LanceDB hybrid": "lancedb",
    "txtai": "txtai",
    "mem0, infer=False": "mem0ai",
    "LangGraph PostgresStore": "langgraph-checkpoint-postgres",
}
"""The systems beside semmem, each with the package whose version is noted."""
Ask = Callable[[Query, Any], Sequence[str]]


def recall_of(query: Query, found: Sequence[str]) -> float:
    """Return the share of what a question's gold names that is among the first ten memories found."""
    first = set(found[:K])
    return mean(any(one in first for one in query.any_of.get(gold, (gold,))) for gold in query.gold)


def _shown(memory: Mapping[str, Any]) -> str:
    """Return a memory as one text for a system that has no titles."""
    return f"{memory['title']}\n{memory['text']}" if memory.get("title") else str(memory["text"])


def _summary(queries: Sequence[Query], values: Mapping[str, float], size: int) -> dict[str, Any]:
    of = clusters(queries)
    sums, sizes = clustered(np.array([values[q.id] for q in queries]), [of[q.id] for q in queries])
    low, high = flip_interval(sums, sizes) if len(sizes) >= FEWEST else (None, None)
    rounded = [None if one is None else round(float(one), 4) for one in (low, high)]
    return {
        "R@10": round(mean(values.values()), 4),
        "low": rounded[0],
        "high": rounded[1],
        "units": len(sizes),
        "bytes": size or None,
    }


def _written(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _ours(corpus: Corpus, vectors: Mapping[str, Any], folder: str) -> tuple[dict[str, float], int]:
    values = {}
    with semmem.connect(f"embedded://{folder}", embedder="minilm") as mem:
        try:
            for namespace in corpus.namespaces:
                mem.remember_many([m for m in corpus.memories if m["namespace"] == namespace], namespace=namespace)
            mem.maintain()
            for query in corpus.headline:
                hits = mem.recall(query.text, namespace=query.namespace, limit=K, vector=vectors[query.text])
                values[query.id] = recall_of(query, [hit.memory.id for hit in hits])
            size = mem.stats().bytes or 0
        finally:
            EmbeddedServer(Path(folder)).stop()
    return values, size


def _theirs(
    name: str, corpus: Corpus, vectors: Mapping[str, Any], folder: Path, server: str
) -> tuple[dict[str, float], int]:
    values, by_namespace, size = {}, defaultdict(list), 0
    for query in corpus.headline:
        by_namespace[query.namespace].append(query)
    for number, (namespace, queries) in enumerate(by_namespace.items()):
        memories = [m for m in corpus.memories if m["namespace"] == namespace]
        texts = [_shown(m) for m in memories]
        other = opened(name, texts, np.stack([vectors[one] for one in texts]), folder / str(number), server)
        try:
            for query in queries:
                places = other.recall(query.text, vectors[query.text])
                values[query.id] = recall_of(query, [str(memories[place]["id"]) for place in places])
            size += other.size() if hasattr(other, "size") else _written(folder / str(number))
        finally:
            other.close()
    return values, size


def measured(path: str, only: Sequence[str] = ()) -> dict[str, Any]:
    """Return recall@10 of every system that is installed on one data set, or of those of ``only``."""
    corpus = datasets.load(Path(path))
    model = MiniLM(None)
    texts = sorted({_shown(m) for m in corpus.memories} | {q.text for q in corpus.headline})
    vectors = dict(zip(texts, model.embed(texts), strict=True))
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="semmem-peers-") as place:
        if not only or "semmem" in only:
            out["semmem"] = _summary(corpus.headline, *_ours(corpus, vectors, f"{place}/semmem"))
        server = EmbeddedServer(Path(place) / "server")
        try:
            address = server.ensure_running()
            for name in SYSTEMS:
                if absent(name) is None and (not only or name in only):
                    found = _theirs(name, corpus, vectors, Path(place) / "other", address)
                    out[name] = _summary(corpus.headline, *found)
        finally:
            server.stop()
    return {"corpus": corpus.describe(), "systems": out}


def kept(found: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what was found on a set, beside what ``before`` says of other systems on the same bytes of it."""
    same = before is not None and before["corpus"]["sha256"] == found["corpus"]["sha256"]
    return {**found, "systems": {**(before["systems"] if before and same else {}), **found["systems"]}}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every data set and print or write the result; one that is in the file is measured again."""
    parser = argparse.ArgumentParser(prog="python -m eval.peers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", action="append", required=True, help="a data set; repeatable")
    parser.add_argument("--only", action="append", help="a system to measure, others keep what --out has; repeatable")
    parser.add_argument("--out", type=Path, help="a JSON file to write to")
    options = parser.parse_args(argv)
    only: Sequence[str] = options.only or ()
    if strange := [name for name in only if name != "semmem" and name not in SYSTEMS]:
        raise SystemExit(f"There is no system {strange[0]!r} to measure; there are semmem, {', '.join(SYSTEMS)}.")
    known = json.loads(options.out.read_text("utf-8")) if options.out and options.out.exists() else {"sets": {}}
    for path in options.data:
        try:
            found = measured(path, only)
        except datasets.DatasetError as error:
            raise SystemExit(str(error)) from None
        name = found["corpus"]["name"]
        known["sets"][name] = kept(found, known["sets"].get(name)) if only else found
    known |= {
        "command": "python -m eval.peers --data SET --out eval/results/peers.json",
        "at": now(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": known.get("versions", {})
        | {name: installed(package) for name, package in SYSTEMS.items() if not only or name in only}
        | {"semmem": semmem.__version__},
        "commit": COMMIT,
    }
    words = json.dumps(known, indent=1) + "\n"
    if options.out:
        options.out.write_text(words, encoding="utf-8")
    else:
        print(words)


if __name__ == "__main__":
    main()
