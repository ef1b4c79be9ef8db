"""Measure what an embedder costs: its dimensions, its bytes on disk, processor time of a question and of a passage.

    python -m eval.encoders minilm all-mpnet-base-v2 [--out eval/results/encoders.json]

The texts are the first questions of harbour and passages of its notes, one after the other, as a recall and a single
remember embed them. Embedders take turns, so a busy machine slows all of them alike. The first round loads the models
and is not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eval.datasets import load as load_set
from eval.experiments.evidence.provenance import COMMIT
from semmem.embedders import load
from semmem.model.protocols import Embedder

__all__ = ["main", "measured"]

_HARBOUR = Path(__file__).parent / "data" / "harbour"
_ROUNDS = 3
_TEXTS = 10
_NOTES = 5
"""The notes of a passage, which so has some 85 tokens."""


def measured(embedders: Sequence[Embedder], rounds: int = _ROUNDS) -> dict[str, dict[str, Any]]:
    """Return the costs of each embedder by its name; times are medians, in milliseconds of all its threads."""
    corpus = load_set(str(_HARBOUR))
    questions = [question.text for question in corpus.queries[:_TEXTS]]
    notes = [memory["text"] for memory in corpus.memories[: _TEXTS * _NOTES]]
    passages = [" ".join(notes[start : start + _NOTES]) for start in range(0, len(notes), _NOTES)]
    times: dict[str, dict[str, list[float]]] = {one.name: {"question_ms": [], "passage_ms": []} for one in embedders}
    for turn in range(rounds + 1):
        for one in embedders:
            ask = getattr(one, "embed_questions", one.embed)
            asked, stored = [_spent(ask, text) for text in questions], [_spent(one.embed, text) for text in passages]
            if turn:
                times[one.name]["question_ms"] += asked
                times[one.name]["passage_ms"] += stored
    return {
        one.name: {
            "dimensions": one.dimensions,
            "max_tokens": one.max_tokens,
            "bytes": _bytes(one),
            "passage_tokens": round(statistics.mean(one.count_tokens(text) for text in passages)),
            **{what: round(statistics.median(each), 2) for what, each in times[one.name].items()},
        }
        for one in embedders
    }


def _spent(embed: Callable[[Sequence[str]], Any], text: str) -> float:
    began = time.process_time()
    embed([text])
    return 1_000 * (time.process_time() - began)


def _bytes(embedder: Embedder) -> int | None:
    """Return the size of the folder of a model; None for an embedder without one."""
    folder: Path | None = getattr(embedder, "folder", None)
    return None if folder is None else sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the embedders named, and print the result as JSON, or write it."""
    parser = argparse.ArgumentParser(prog="python -m eval.encoders", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="+", help="names of embedders, as in `semmem rebuild --embedder`")
    parser.add_argument("--out", type=Path, help="file for the result")
    asked = parser.parse_args(argv)
    costs = measured([load(name) for name in asked.names])
    result = {"command": f"python -m eval.encoders {' '.join(asked.names)}", "commit": COMMIT, "encoders": costs}
    text = json.dumps(result, indent=1) + "\n"
    if asked.out:
        asked.out.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
