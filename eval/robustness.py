"""Measure robustness: how recall changes with the form of the questions, the order of writing and foreign memories.

    python -m eval.robustness --data agentnotes_a --data musique100 --foreign vaswani --foreign sentences.conllu \
        [--foreign-count 20000] [--recipe default] [--legs] [--out result.json]

Rows: as they are; questions in lower case; memories in a shuffled order; titles left out (where there are titles); and
foreign memories, of other sets or of a file with one sentence a line, in the same namespace: those of the first source,
then of the first two, and so on, with a row at each count. Each row is compared to the first by sign flips. ``--legs``
measures each leg alone, too. The text of a set is embedded once, whatever the number of rows it stands in.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import eval.datasets as datasets
import semmem
from eval.datasets import Corpus, Query
from eval.experiments.evidence.provenance import COMMIT
from eval.experiments.runner import place
from eval.statistics.measures import Measured, measure
from eval.statistics.significance import paired
from semmem.embedders import load as load_embedder
from semmem.model.recipe import Recipe
from semmem.read.search import alone
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["foreign", "main", "rows"]

METRICS = ("R@5", "R@10")


class Remembered:
    """An embedder that embeds each text once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._vectors: dict[str, Any] = {}
        self.name, self.dimensions, self.max_tokens = inner.name, inner.dimensions, inner.max_tokens

    @property
    def fingerprint(self) -> str:
        """What tells these weights from others."""
        return str(self._inner.fingerprint)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens ``text`` has."""
        return int(self._inner.count_tokens(text))

    def embed(self, texts: Sequence[str]) -> Any:
        """Return unit vectors of shape (len(texts), dimensions)."""
        import numpy as np

        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors.update(zip(new, self._inner.embed(new), strict=True))
        return np.stack([self._vectors[text] for text in texts])


def foreign(sources: Sequence[str], counts: Sequence[int]) -> list[list[dict[str, Any]]]:
    """Return memories that answer no question here: a crowd at the end of each source and at each of ``counts``.

    The largest count is the last crowd. Raises DatasetError when the data sets and files of sentences hold fewer.
    """
    most = max(counts)
    memories: list[dict[str, Any]] = []
    sizes = {*counts}
    for source in sources:
        memories += islice(_foreign(source), most - len(memories))
        sizes.add(len(memories))
    if len(memories) < most:
        raise datasets.DatasetError(
            f"{', '.join(sources)} hold {len(memories)} memories, not {most}; name another set."
        )
    numbered = [{**item, "id": f"foreign {number}"} for number, item in enumerate(memories)]
    return [numbered[:size] for size in sorted(sizes)]


def _foreign(source: str) -> Iterator[dict[str, Any]]:
    path = Path(source) if Path(source).exists() else datasets.data_root() / source
    if not path.is_file():
        for memory in datasets.load(source).memories:
            yield {"text": memory["text"], "title": memory.get("title")}
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        if path.suffix == ".conllu":
            if line.startswith("# text = "):
                yield {"text": line.removeprefix("# text = ")}
        elif line.strip():
            yield {"text": line}


def rows(corpus: Corpus, crowds: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, Corpus]]:
    """Yield (name, corpus) for each change, in namespaces of its own; the first is the corpus as it is."""
    yield "as they are", _with_prefix(corpus, "plain")
    yield "questions in lower case", _in_lower_case(_with_prefix(corpus, "plain"))
    shuffled = list(corpus.memories)
    random.Random(0).shuffle(shuffled)
    yield "memories in shuffled order", _with_prefix(replace(corpus, memories=tuple(shuffled)), "shuffled")
    if any(memory.get("title") for memory in corpus.memories):
        bare = tuple({k: v for k, v in memory.items() if k != "title"} for memory in corpus.memories)
        yield "titles left out", _with_prefix(replace(corpus, memories=bare), "untitled")
    for number, strangers in enumerate(crowds):
        crowd = [{**item, "namespace": name} for name in corpus.namespaces for item in strangers]
        beside = replace(corpus, memories=(*corpus.memories, *crowd))
        yield f"{len(strangers):,} foreign memories beside", _with_prefix(beside, f"crowd {number}")


def _with_prefix(corpus: Corpus, prefix: str) -> Corpus:
    """Return ``corpus`` with every namespace under ``prefix``, so that one store holds all rows."""
    return replace(
        corpus,
        memories=tuple({**m, "namespace": f"{prefix} {corpus.name} {m['namespace']}"} for m in corpus.memories),
        queries=tuple(replace(q, namespace=f"{prefix} {corpus.name} {q.namespace}") for q in corpus.queries),
    )


def _in_lower_case(corpus: Corpus) -> Corpus:
    return replace(corpus, queries=tuple(replace(q, text=q.text.lower()) for q in corpus.queries))


def _measures(mem: Any, queries: Sequence[Query], recipe: Recipe) -> Measured:
    run = {}
    for query in queries:
        answer = mem.recall(query.text, namespace=query.namespace, limit=10, recipe=recipe, now=query.now)
        if answer.degraded:
            raise datasets.DatasetError(f"A leg could not answer: {dict(answer.degraded)}; nothing was measured.")
        run[query.id] = [place(hit) for hit in answer]
    return measure(queries, run, cutoffs=[5, 10])


def table(
    mem: Any, corpus: Corpus, crowds: Sequence[Sequence[Mapping[str, Any]]], recipe: Recipe, *, legs: bool = False
) -> list[dict[str, Any]]:
    """Return one row a change: means of R@5 and R@10, and the paired differences to the first row.

    With ``legs``, a change has a row for each leg alone, too; the graph's walk starts from the heads of the others.
    """
    out: list[dict[str, Any]] = []
    plans = {"": recipe, **({f", {leg} alone": alone(recipe, leg) for leg in recipe.legs} if legs else {})}
    first: dict[str, Measured] = {}
    namespaces: set[str] = set()
    for name, changed in rows(corpus, crowds):
        if not namespaces.issuperset(changed.namespaces):
            mem.remember_many(changed.memories)
            namespaces.update(changed.namespaces)
            mem.maintain()
        queries = changed.headline
        for suffix, plan in plans.items():
            measured = _measures(mem, queries, plan)
            before = first.setdefault(suffix, measured)
            row: dict[str, Any] = {
                "row": name + suffix,
                "memories": len(changed.memories),
                "questions": len(queries),
                **_compared(before, measured),
            }
            out.append(row)
            values = "  ".join(f"{m} {row[m]:.4f}" for m in METRICS)
            print(f"  {row['row']:34s} {values}", file=sys.stderr, flush=True)
    return out


def _compared(before: Measured, measured: Measured) -> dict[str, Any]:
    """Return the mean of each metric, and where something changed its paired difference."""
    values: dict[str, Any] = {metric: round(measured.mean(metric), 4) for metric in METRICS}
    if measured is not before:
        for metric in METRICS:
            values[f"{metric} difference"] = paired(before.of(metric), measured.of(metric)).as_dict()
    return values


def _command(options: argparse.Namespace) -> str:
    words = [f"--data {name}" for name in options.data]
    words += [f"--foreign {name}" for name in options.foreign]
    words += [f"--foreign-count {count}" for count in options.foreign_count or ()]
    words += [f"--recipe {options.recipe}"] * (options.recipe != "default") + ["--legs"] * options.legs
    return " ".join(["python -m eval.robustness", *words])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table as JSON."""
    parser = argparse.ArgumentParser(prog="python -m eval.robustness", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", action="append", required=True, help="a data set; repeatable")
    parser.add_argument("--foreign", action="append", default=[], help="a data set, or a file of sentences; repeatable")
    parser.add_argument(
        "--foreign-count", type=int, action="append", help="how many foreign memories; repeatable; 20,000 by default"
    )
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--legs", action="store_true", help="measure each leg alone, too")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--out", type=Path, default=None, help="a file for the aggregate result")
    options = parser.parse_args(argv)
    try:
        crowds = foreign(options.foreign, options.foreign_count or [20_000]) if options.foreign else []
        corpora = [datasets.load(name) for name in options.data]
    except datasets.DatasetError as error:
        raise SystemExit(str(error)) from None
    recipe = semmem.recipe(options.recipe)
    embedder = Remembered(load_embedder(options.embedder, path=None))
    result: dict[str, Any] = {
        "command": _command(options),
        "commit": COMMIT,
        "recipe": recipe.as_dict(),
        "foreign": {"sources": [Path(source).name for source in options.foreign], "counts": [*map(len, crowds)]},
        "sets": {},
    }
    with tempfile.TemporaryDirectory(prefix="semmem-robust-") as folder:
        try:
            with semmem.connect(f"embedded://{folder}", embedder=embedder) as mem:
                for corpus in corpora:
                    print(corpus.name, file=sys.stderr, flush=True)
                    result["sets"][corpus.name] = table(mem, corpus, crowds, recipe, legs=options.legs)
        finally:
            EmbeddedServer(Path(folder)).stop()
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
