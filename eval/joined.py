"""Measure what recall gains or loses where a question is stored together with its reply, as the hooks store it.

    python -m eval.joined --data locomo3 --data longmemeval_mini

The turns of each session are stored as they are, and once more as ``semmem.importers.transcript`` joins them. A gold
turn that is not stored by itself counts where the turn that holds it is found. Prints recall@10 of both, and for how
many questions the joined turns are better and worse.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import eval.datasets as datasets
import semmem
from semmem.importers.transcript import Turn, joined
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["main", "together"]


def together(memories: Iterable[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the memories with questions joined to replies, and the id of the memory that holds each original."""
    out: list[dict[str, Any]] = []
    holder: dict[str, str] = {}
    for _, group in itertools.groupby(memories, key=lambda one: (one["namespace"], one.get("session"))):
        rows = list(group)
        said = [
            Turn(one.get("author") or str(index), one["text"], index, None, one["id"], None)
            for index, one in enumerate(rows)
        ]
        stored, _ = joined(said)
        out += [{**rows[turn.position], "text": turn.text} for turn in stored]
        places = [turn.position for turn in stored]
        for index, one in enumerate(rows):
            after = next((place for place in places if place >= index), None)
            if after is not None:
                holder[one["id"]] = rows[after]["id"]
    return out, holder


def _recalls(url: str, memories: Sequence[Mapping[str, Any]], queries: Sequence[Any], embedder: str) -> list[list[str]]:
    with semmem.connect(url, embedder=embedder) as mem:
        mem.remember_many([dict(one) for one in memories])
        mem.maintain()
        return [[hit.id for hit in mem.recall(query.text, namespace=query.namespace, limit=10)] for query in queries]


def _share(found: Sequence[str], query: Any, holder: Mapping[str, str]) -> float:
    def has(id: str) -> bool:
        return any(holder.get(one, one) in found for one in query.any_of.get(id, (id,)))

    return sum(map(has, query.gold)) / len(query.gold)


def main(argv: Sequence[str] | None = None) -> None:
    """Store each set twice, ask its questions, and print a row of figures for each."""
    parser = argparse.ArgumentParser(prog="python -m eval.joined", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", action="append", required=True, help="a data set of conversations; repeatable")
    parser.add_argument("--embedder", default="minilm")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    for name in options.data:
        try:
            corpus = datasets.load(name)
        except datasets.DatasetError as error:
            raise SystemExit(str(error)) from None
        queries = [query for query in corpus.queries if query.gold and not query.apart]
        memories, holder = together(corpus.memories)
        with tempfile.TemporaryDirectory(prefix="semmem-joined-") as folder:
            shares = []
            for index, (some, held) in enumerate(((corpus.memories, {}), (memories, holder))):
                place = Path(folder) / str(index)
                try:
                    found = _recalls(f"embedded://{place}", some, queries, options.embedder)
                finally:
                    EmbeddedServer(place).stop("immediate")
                shares.append([_share(ids, query, held) for ids, query in zip(found, queries, strict=True)])
        row = {
            "data": name,
            "questions": len(queries),
            "turns": [len(corpus.memories), len(memories)],
            "recall@10": [round(sum(one) / len(queries), 3) for one in shares],
            "better": sum(b > a for a, b in zip(*shares, strict=True)),
            "worse": sum(b < a for a, b in zip(*shares, strict=True)),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
