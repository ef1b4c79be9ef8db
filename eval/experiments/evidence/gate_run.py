"""Measure what ``expected.toml`` expects: one pass over each corpus that is here."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from eval.datasets import Corpus, DatasetError, load
from eval.experiments.evidence.gate import Checked, Expected, check, expectations
from eval.experiments.experiment import conduct
from eval.experiments.plan import of_run
from eval.statistics.comparison import ExperimentError

__all__ = ["run_gate"]

Opened = Callable[[Corpus, str | None, str | None], AbstractContextManager[Any]]


def run_gate(path: Path, only: str | None, opened: Opened) -> tuple[list[Checked], list[str]]:
    """Return what was checked, and the names of the data sets that are not here."""
    by_corpus: dict[tuple[str, str], list[Expected]] = defaultdict(list)
    for e in expectations(path):
        if only is None or e.data == only or Path(e.data).name == Path(only).name:
            by_corpus[e.data, e.embedder].append(e)
    checks: list[Checked] = []
    absent: list[str] = []
    root = Path(__file__).resolve().parents[3]
    for (data, embedder), expected in by_corpus.items():
        try:
            corpus = load(root / data if (root / data).exists() else data)
        except DatasetError:
            absent.append(data)
            continue
        conditions, _ = of_run([name for e in expected for name in e.conditions])
        with opened(corpus, None, embedder) as mem, tempfile.TemporaryDirectory() as out:
            result = conduct(mem, corpus, conditions, [], out=Path(out), baselines=False).result
        for name, condition in result["conditions"].items():
            if condition["preflight"]["degraded questions"]:
                raise ExperimentError(
                    f"A leg of {name} could not answer on {data}; run `semmem doctor`, then the gate."
                )
        checks += check(expected, {name: c["measures"] for name, c in result["conditions"].items()})
    return checks, absent
