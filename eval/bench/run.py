"""Run the benchmark: size after size, semmem and the others, each result written as soon as it is there."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import semmem
from eval.bench import others
from eval.bench.generator import Generator, Question
from eval.bench.measures import asked, growth
from eval.bench.ours import Ours

__all__ = ["COMPARED", "bench", "ratios"]

COMPARED = 100_000
"""Memories up to which the other systems are filled too."""
Say = Callable[[str], None]


def bench(
    sizes: Sequence[int],
    folder: Path,
    *,
    seed: int = 0,
    namespaces: int = 1,
    questions: int = 50,
    rounds: int = 2,
    beside: Sequence[str] = tuple(others.OTHERS),
    say: Say = print,
    embedder: Any = None,
) -> dict[str, Any]:
    """Measure every size and return the result; in ``folder`` lie the store and what is measured already.

    A run of the same seed and namespaces that was broken off goes on after the last size that is whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = Generator(seed, namespaces=namespaces)
    about = {"seed": seed, "namespaces": namespaces, "questions": questions, "rounds": rounds}
    kept = folder / "measured.json"
    done = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if done.get("about") != about:
        done = {"about": about, "sizes": {}}
    with Ours(folder / "store", made, embedder) as ours:
        for size in sorted(sizes):
            if str(size) in done["sizes"]:
                say(f"{size:,}: measured already, in {kept.name}.")
                continue
            if ours.mem.stats().memories > size:
                say(f"{size:,}: skipped, for the store is larger already; remove {folder.name} to begin anew.")
                continue
            done["sizes"][str(size)] = _one_size(ours, made, size, questions, rounds, beside, folder, say)
            kept.write_text(json.dumps(done, indent=1), encoding="utf-8")
    return {
        **about,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {_processors()} processors, Python {platform.python_version()}",
        "version": semmem.__version__,
        "sizes": done["sizes"],
        "growth": _growth(done["sizes"]),
        "ratios": ratios(done["sizes"]),
    }


def _one_size(
    ours: Ours,
    made: Generator,
    size: int,
    count: int,
    rounds: int,
    beside: Sequence[str],
    folder: Path,
    say: Say,
) -> dict[str, Any]:
    say(f"{size:,}: storing …")
    row: dict[str, Any] = {"ingest": ours.grow(size)}
    asking = [made.question(number, size) for number in range(count)]
    say(f"{size:,}: asking …")
    row["recall"] = ours.measured(asking, rounds=rounds)
    row["space"] = ours.space()
    row["others"] = {}
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
            row["others"][name] = _other(name, made, size, asking, rounds, folder / "others", ours)
        except Exception as error:  # noqa: BLE001  # another's defect is no reason to lose the run
            sentence = " ".join(f"{name} failed: {type(error).__name__}: {error}".split())[:300]
            say(f"{size:,}: {sentence}")
            row["others"][name] = {"skipped": sentence}
    return row


def _other(
    name: str, made: Generator, size: int, asking: Sequence[Question], rounds: int, folder: Path, ours: Ours
) -> dict[str, Any]:
    pairs = list(made.items(0, size))
    texts = [f"{item['title']}\n{item['text']}" if item["title"] else item["text"] for item, _ in pairs]
    vectors = [vector for _, vector in pairs]
    started = time.perf_counter()
    system = others.opened(name, texts, vectors, folder, ours.server())
    filled = time.perf_counter() - started
    try:
        encode = others.encode(name)
        found = sum(int(one.about[1:]) in system.recall(one.text, one.vector) for one in asking)

        def text_in(number: int) -> Any:
            return system.recall(asking[number].text, encode(asking[number].text))

        def given(number: int) -> Any:
            return system.recall(asking[number].text, asking[number].vector)

        return {
            "memories_per_s": round(size / filled, 1),
            "text in": asked(text_in, len(asking), rounds=rounds),
            "vectors given": asked(given, len(asking), rounds=rounds),
            "found": round(found / len(asking), 3),
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
            found = {
                what: round(row["recall"][what]["p50_ms"] / other[what]["p50_ms"], 2)
                for what in ("text in", "vectors given")
            }
            if row["ingest"]["memories_per_s"]:
                found["ingest"] = round(other["memories_per_s"] / row["ingest"]["memories_per_s"], 2)
            out.setdefault(size, {})[name] = found
    return out


def _growth(sizes: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the exponent of each time over the sizes."""
    out: dict[str, float | None] = {}
    rows = {int(size): row for size, row in sizes.items()}
    for name in dict.fromkeys(name for row in rows.values() for name in row["recall"]):
        times = {size: row["recall"].get(name, {}) for size, row in rows.items()}
        if all("p50_ms" in one for one in times.values() if isinstance(one, dict)) and name not in ("found", "legs"):
            out[name] = growth({size: one["p50_ms"] for size, one in times.items()})
    for leg in dict.fromkeys(leg for row in rows.values() for leg in row["recall"]["legs"]):
        at = {size: row["recall"]["legs"][leg]["p50_ms"] for size, row in rows.items() if leg in row["recall"]["legs"]}
        out[f"leg: {leg}"] = growth(at)
    seconds, total = {}, 0.0
    for size in sorted(rows):
        total += rows[size]["ingest"]["remember_s"] + rows[size]["ingest"]["index_s"]
        seconds[size] = total
    out["ingest"] = growth(seconds)
    return out


def _processors() -> int:
    from semmem.embedders.onnx_runtime import threads

    return threads()
