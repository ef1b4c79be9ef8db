"""Measure the older memories that `remember` names: how often the outdated one is among them, and their cost.

    python -m eval.older --data agentnotes_a --pairs tests/concepts/changes.jsonl --embedder minilm

The notes of a set whose questions name ``stale_ids`` are remembered one by one, in the order of time; each pair of an
outdated note and the note that answers instead counts. Of a file of pairs (``older`` and ``newer``, ``kind`` is
"changed" where the newer one outdates the older) all older texts are stored first, then each newer one. Times are
medians of calls with and without the setting ``name_older``, by turns, so only their ratio means something.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

import typer

import eval.datasets as datasets
import semmem
from semmem.write import older

__all__ = ["FLOORS", "Counts", "cost", "main", "of_notes", "of_pairs"]

FLOORS = (0.0, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
_TURNS = 120


@dataclass(frozen=True, slots=True)
class Counts:
    """Of ``pairs``, how many the rules link and how many are named; and how many of ``stored`` name any memory."""

    pairs: int
    linked: int
    named: int
    naming: int
    stored: int

    @classmethod
    def of(cls, stored: Mapping[str, semmem.Memory], pairs: Iterable[tuple[str, str]]) -> Counts:
        """Count pairs of (outdated, newer) id among memories as `remember` returned them."""
        distinct = set(pairs)
        linked = sum(old in stored[new].contradicts for old, new in distinct)
        named = sum(old in {one.id for one in stored[new].older} for old, new in distinct)
        return cls(len(distinct), linked, named, sum(bool(one.older) for one in stored.values()), len(stored))

    def row(self, *first: str) -> str:
        """Return a row of the table."""
        share = f"{self.naming / self.stored:.2f}" if self.stored else ""
        return " | ".join(("", *first, str(self.pairs), str(self.linked), str(self.named), share, "")).strip()


def of_notes(mem: semmem.Semmem, name: str) -> Counts:
    """Remember a set note by note, in the order of time, and count its outdated notes."""
    corpus = datasets.load(name)
    notes = sorted(corpus.memories, key=lambda note: str(note["created_at"]))
    place = {note["id"]: index for index, note in enumerate(notes)}
    stored = {note["id"]: mem.remember(**{**note, "namespace": "notes"}) for note in notes}
    pairs = (
        (old, new)
        for query in corpus.queries
        for old in query.extra.get("stale_ids", ())
        for new in query.gold
        if place[old] < place[new]
    )
    return Counts.of(stored, pairs)


def of_pairs(mem: semmem.Semmem, file: Path, *, changed: bool = True) -> Counts:
    """Store the older texts of a file, then the newer ones, and count the pairs that are ``changed``, or the others."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    named = {f"old {index}": row for index, row in enumerate(rows)}
    mem.remember_many(({"id": id, "text": row["older"]} for id, row in named.items()), namespace="pairs")
    stored = {
        f"new {index}": mem.remember(row["newer"], id=f"new {index}", namespace="pairs")
        for index, row in enumerate(rows)
    }
    of_kind = (index for index, row in enumerate(rows) if (row["kind"] == "changed") is changed)
    return Counts.of(stored, ((f"old {index}", f"new {index}") for index in of_kind))


def cost(url: str, embedder: str, memories: int) -> float:
    """Return the time of `remember` with names of older memories, as a multiple of the time without, in a namespace."""
    texts = [
        f"Valve {n} of pump {n % 97} was set to {n % 13} bar by shift {n % 7}." for n in range(memories + 2 * _TURNS)
    ]
    with ExitStack() as stack:
        both = [
            stack.enter_context(semmem.connect(url, embedder=embedder, name_older=named)) for named in (True, False)
        ]
        both[0].remember_many(({"text": text} for text in texts[:memories]), namespace="cost")
        both[0].maintain()
        times: dict[bool, list[float]] = {True: [], False: []}
        for index, text in enumerate(texts[memories:]):
            start = time.perf_counter()
            both[index % 2].remember(text, namespace="cost")
            times[index % 2 == 0].append(time.perf_counter() - start)
    return statistics.median(times[True]) / statistics.median(times[False])


def main(
    data: Annotated[list[str], typer.Option(help="A set whose questions name stale_ids; repeatable.")] = [],  # noqa: B006
    pairs: Annotated[list[Path], typer.Option(help="A file of pairs; repeatable.")] = [],  # noqa: B006
    embedder: Annotated[str, typer.Option(help="minilm or hashing.")] = "minilm",
    memories: Annotated[list[int], typer.Option(help="Measure the cost in a namespace of this size; repeatable.")] = [],  # noqa: B006
) -> None:
    """Print a table of each floor of cosine, and the ratio of times."""
    warnings.simplefilter("ignore")
    print("| set | floor | pairs | linked | named | memories that name one |\n|---|---|---|---|---|---|")
    for floor in FLOORS:
        with patch.object(older, "LEAST_COSINE", floor):
            for name in data:
                print(_fresh(embedder, partial(of_notes, name=name)).row(name, f"{floor:g}"))
            for file in pairs:
                found = _fresh(embedder, partial(of_pairs, file=file))
                print(found.row(file.stem, f"{floor:g}"))
                found = _fresh(embedder, partial(of_pairs, file=file, changed=False))
                print(found.row(f"{file.stem}, nothing changed", f"{floor:g}"))
    for count in memories:
        with tempfile.TemporaryDirectory() as folder:
            ratio = cost(f"embedded://{folder}/data", embedder, count)
            print(f"{count:,} memories: remember takes {ratio:.2f} times as long")


def _fresh(embedder: str, measure: Callable[[semmem.Semmem], Counts]) -> Counts:
    with (
        tempfile.TemporaryDirectory() as folder,
        semmem.connect(f"embedded://{folder}/data", embedder=embedder) as mem,
    ):
        return measure(mem)


if __name__ == "__main__":
    typer.run(main)
