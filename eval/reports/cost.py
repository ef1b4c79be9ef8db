"""Measure the cost of an experiment: time, space and memory, with the machine and versions."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from eval.experiments.evidence.provenance import COMMIT
from eval.experiments.lists import Asked

__all__ = ["cost", "environment"]

_PACKAGES = ("ir-measures", "numpy", "onnxruntime", "pgvector", "psycopg", "semmem", "tokenizers")


def cost(mem: Any, report: Any, asked: Sequence[Asked]) -> dict[str, Any]:
    """Return ingest rate, recall times per leg and in all (milliseconds), bytes on disk and peak memory.

    Recall times are of the recalls that made the lists: all legs at their deepest, one question after the other.
    """
    seconds: dict[str, list[float]] = defaultdict(list)
    for lists in asked:
        for stage, took in lists.timings.items():
            seconds[stage].append(took)
    out: dict[str, Any] = {
        "recall ms": {
            stage: {
                "p50": round(float(np.percentile(took, 50)) * 1e3, 2),
                "p95": round(float(np.percentile(took, 95)) * 1e3, 2),
            }
            for stage, took in sorted(seconds.items())
        },
        "peak memory bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        * (1 if sys.platform == "darwin" else 1024),
        "store bytes": mem.stats().bytes,
    }
    # A store that was filled before has no rate: unchanged memories cost nothing to remember again.
    if report is not None and report.remembered and not report.unchanged:
        out["ingest"] = {
            "memories": report.remembered,
            "seconds": round(report.seconds, 2),
            "memories per second": round(report.remembered / max(report.seconds, 1e-9), 1),
        }
    return out


def environment(embedder: str | None, seed: int) -> dict[str, Any]:
    """Return versions, machine, embedder, seed and git commit; no path and no name of a person or a host."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "packages": versions,
        "embedder": embedder,
        "seed": seed,
        "commit": COMMIT,
    }
