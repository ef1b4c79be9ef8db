"""Run the benchmark: measure semmem and the others at each size, and write each result at once."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import semmem
from eval.bench import others
from eval.bench.generator import Generator, Question, TitledGenerator
from eval.bench.measures import asked, growth, timed_calls
from eval.bench.ours import Ours
from eval.bench.record import Record
from eval.datasets import DatasetError
from eval.experiments.evidence.provenance import COMMIT, installed, now

__all__ = ["COMPARED", "bench", "ratios"]

_PACKAGES = (
    "numpy", "psycopg", "onnxruntime", "bm25s", "lancedb", "txtai", "mem0ai", "langgraph-checkpoint-postgres",
)  # fmt: skip
COMPARED = 100_000
"""Memories up to which the other systems are filled too."""
_OTHER_S = 60.0
"""Seconds after which the warm-up of another system ends, and again its calls; a call that has begun is ended."""
_FROM_DISK = ("text in, resident_mb=0", "vectors given, resident_mb=0", "cold process")
Say = Callable[[str], None]


def bench(
    sizes: Sequence[int],
    folder: Path,
    *,
    shape: str = "notes",
    seed: int = 0,
    namespaces: int = 1,
    questions: int = 50,
    rounds: int = 2,
    beside: Sequence[str] = tuple(others.OTHERS),
    say: Say = print,
    embedder: Any = None,
) -> dict[str, Any]:
    """Measure every size and return the result; ``folder`` holds the store and the results so far.

    An interrupted run with the same settings resumes after the last complete size, or, once the store has been filled
    up to the next one, with its questions. Raises DatasetError for a folder with anything else in it.
    """
    titled = shape == "titled"
    generator = TitledGenerator(seed, count=max(sizes)) if titled else Generator(seed, namespaces=namespaces)
    about: dict[str, Any] = {"seed": seed, "namespaces": namespaces, "questions": questions, "rounds": rounds}
    if titled:
        about |= {"shape": shape, "of": max(sizes)}
    record = Record(folder, about, "sizes")
    with Ours(folder / "store", generator, embedder) as ours:
        for size in sorted(sizes):
            row = record.rows.get(str(size), {})
            if "others" in row:
                say(f"{size:,}: measured already, in {record.file.name}.")
                continue
            if ours.mem.stats().memories > size:
                say(f"{size:,}: skipped, for the store is larger already; remove {folder.name} to begin anew.")
                continue
            if not row:
                row = _stored(ours, size, say)
                record.note(str(size), row)
            asked_about = [generator.question(number, size) for number in range(questions)]
            rest = _measured(ours, generator, size, asked_about, rounds, beside, folder, row, say)
            record.note(str(size), row | rest)
    done = {size: row for size, row in record.rows.items() if "others" in row}
    if not done:
        raise DatasetError("No size was measured, so there is no report.")
    return {
        **about,
        "at": now(),
        "machine": f"{platform.machine()}, {_processors()} processors, Python {platform.python_version()}",
        "version": semmem.__version__,
        "sizes": done,
        "growth": _growth(done),
        "ratios": ratios(done),
    }


def _stored(ours: Ours, size: int, say: Say) -> dict[str, Any]:
    """Fill the store up to ``size``, and return the first part of the row: rates, and bytes before anybody asks."""
    say(f"{size:,}: storing …")
    return {
        "at": now(),
        "commit": COMMIT,
        "versions": {name: installed(name) for name in _PACKAGES},
        "resident_mb": ours.mem.settings.resident_mb,
        "load_average": {"at the start": _load()},
        "ingest": ours.grow(size),
        "space": ours.space(),
    }


def _measured(
    ours: Ours,
    generator: Generator,
    size: int,
    questions: Sequence[Question],
    rounds: int,
    beside: Sequence[str],
    folder: Path,
    stored: Mapping[str, Any],
    say: Say,
) -> dict[str, Any]:
    """Ask semmem and the others, and return the rest of the row."""
    say(f"{size:,}: asking …")
    row: dict[str, Any] = {
        "ingest": stored["ingest"] | ours.parts(size, stored["ingest"]),
        "recall": ours.measured(questions, rounds=rounds),
        "in_memory": ours.in_memory,
        "space": stored["space"] | ours.resident(),
        "load_average": stored["load_average"] | {"semmem": _load()},
        "others": {},
    }
    for name in beside:
        why = others.absent(name)
        if why is None and size > COMPARED:
            why = f"{name} is skipped: it is filled with at most {COMPARED:,} memories."
        if why is not None:
            say(f"{size:,}: {why}")
            row["others"][name] = {"skipped": why}
            continue
        say(f"{size:,}: {name} …")
        try:
            row["others"][name] = _other(name, generator, size, questions, rounds, folder / "others", ours)
        except Exception as error:  # noqa: BLE001  # a defect of another system must not end the run
            sentence = " ".join(f"{name} failed: {type(error).__name__}: {error}".split())[:300]
            say(f"{size:,}: {sentence}")
            row["others"][name] = {"skipped": sentence}
        row["load_average"][name] = _load()
    return row


def _other(
    name: str, generator: Generator, size: int, questions: Sequence[Question], rounds: int, folder: Path, ours: Ours
) -> dict[str, Any]:
    pairs = list(generator.items(0, size))
    texts = [f"{item['title']}\n{item['text']}" if item["title"] else item["text"] for item, _ in pairs]
    vectors = [vector for _, vector in pairs]
    others.imported(name)
    start = time.perf_counter()
    system = others.opened(name, texts, vectors, folder, ours.server())
    fill_seconds = time.perf_counter() - start
    try:
        encode = others.encoder()
        found: list[bool] = []

        def find(number: int) -> None:
            one = questions[number]
            found.append(int(one.about[1:]) in system.recall(one.text, one.vector))

        timed_calls(find, range(len(questions)), _OTHER_S)

        def text_in(number: int) -> Any:
            return system.recall(questions[number].text, encode(questions[number].text))

        def with_vector(number: int) -> Any:
            return system.recall(questions[number].text, questions[number].vector)

        return {
            "memories_per_s": round(size / fill_seconds, 1),
            "text in": asked(text_in, len(questions), rounds=rounds, at_most_s=_OTHER_S),
            "vectors given": asked(with_vector, len(questions), rounds=rounds, at_most_s=_OTHER_S),
            "found": round(sum(found) / len(found), 3),
        }
    finally:
        system.close()


def ratios(sizes: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by size and other system, semmem's p50 over the other's and the other's ingest rate over semmem's."""
    out: dict[str, dict[str, dict[str, float]]] = {}
    for size, row in sizes.items():
        for name, other in row["others"].items():
            if "skipped" in other:
                continue
            of_system = {
                what: round(row["recall"][what]["p50_ms"] / other[what]["p50_ms"], 2)
                for what in ("text in", "vectors given")
            }
            if row["ingest"]["memories_per_s"]:
                of_system["ingest"] = round(other["memories_per_s"] / row["ingest"]["memories_per_s"], 2)
            out.setdefault(size, {})[name] = of_system
    return out


def _growth(sizes: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the exponent of each time over the sizes.

    A recall from memory is fitted over the sizes whose namespace was in memory, all the rest over all sizes.
    """
    out: dict[str, float | None] = {}
    every = {int(size): row for size, row in sizes.items()}
    from_memory = {size: row for size, row in every.items() if row.get("in_memory", True)}
    for name in dict.fromkeys(
        name for row in every.values() for name in row["recall"] if name not in ("found", "legs")
    ):
        rows = every if name in _FROM_DISK else from_memory
        out[name] = growth({size: row["recall"][name]["p50_ms"] for size, row in rows.items() if name in row["recall"]})
    for leg in dict.fromkeys(leg for row in every.values() for leg in row["recall"]["legs"]):
        times = {size: row["recall"]["legs"].get(leg) for size, row in from_memory.items()}
        out[f"leg: {leg}"] = growth({size: one["p50_ms"] for size, one in times.items() if one})
    for name, parts in (("ingest", ("remember_s", "maintain_s")), ("ingest, without maintain", ("remember_s",))):
        seconds, total = {}, 0.0
        for size in sorted(every):
            total += sum(every[size]["ingest"][part] for part in parts)
            seconds[size] = total
        out[name] = growth(seconds)
    return out


def _load() -> float:
    return round(os.getloadavg()[0], 1)


def _processors() -> int:
    from semmem.embedders.onnx_runtime import threads

    return threads()
