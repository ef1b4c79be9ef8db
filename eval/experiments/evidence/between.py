"""Two results on the same questions, paired: what changed from one run of the harness to another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval import SCHEMA
from eval.statistics.comparison import ExperimentError, cutoff
from eval.statistics.significance import ALPHA, corrected, paired
from eval.statistics.verdict import Standing, judge

__all__ = ["between"]


def between(a: str, b: str, metrics: Sequence[str], *, seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Compare condition B to condition A, each ``FOLDER`` or ``FOLDER:CONDITION`` (the first condition of the folder).

    Return a row a metric, and what else differs between the two. Holm runs across the metrics. Raises ExperimentError
    when the folders are of different corpora or questions, or hold no per-question values.
    """
    (one, name_a, values_a), (two, name_b, values_b) = _read(a), _read(b)
    if one["corpus"]["sha256"] != two["corpus"]["sha256"]:
        raise ExperimentError("A and B are of different corpora; only results on the same questions can be paired.")
    if values_a.keys() != values_b.keys():
        raise ExperimentError(
            f"A has {len(values_a)} questions and B has {len(values_b)}, not the same ones; run one of them again."
        )
    shared = [id for id in values_a if not values_a[id]["apart"]]
    rows, tests = [], []
    # a result of an older harness has no clusters beside its values
    labels = [values_a[id].get("cluster") for id in shared]
    of_question = labels if None not in labels else None
    for metric in metrics:
        k = cutoff(metric)
        base = [values_a[id][metric] for id in shared]
        other = [values_b[id][metric] for id in shared]
        tests.append((metric, k, paired(base, other, clusters=of_question, seed=seed, alpha=ALPHA / len(metrics))))
    adjusted = corrected({metric: test for metric, _, test in tests})
    for metric, k, _ in tests:
        vacuous = max(
            of["conditions"][name]["preflight"]["vacuous"][str(k)] for of, name in ((one, name_a), (two, name_b))
        )
        verdict = judge(Standing(k=k, vacuous=vacuous), adjusted[metric], metric=metric)
        rows.append({"metric": metric, "a": name_a, "b": name_b, **verdict.as_dict()})
    return rows, _differing(one.get("environment", {}), two.get("environment", {}))


def _differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """Return what of embedder and commit differs: a difference of the values may come from it."""
    names = [name for name in ("embedder", "commit") if one.get(name) != two.get(name)]
    return [f"the {name} differs: {one.get(name)} in A, {two.get(name)} in B" for name in names]


def _read(spec: str) -> tuple[dict[str, Any], str, dict[str, dict[str, Any]]]:
    folder, colon, name = spec.rpartition(":")
    path = Path(folder if colon and not Path(spec).exists() else spec)
    if not (path / "result.json").is_file():
        raise ExperimentError(f"{path} holds no result.json; pass a result folder, or FOLDER:CONDITION.")
    result: dict[str, Any] = json.loads((path / "result.json").read_text(encoding="utf-8"))
    if result["schema"] > SCHEMA:
        raise ExperimentError(f"{path} was written by a newer harness; use that one.")
    condition = name if path != Path(spec) else next(iter(result["conditions"]))
    if condition not in result["conditions"]:
        raise ExperimentError(f"{path} has no condition {condition!r}; it has {', '.join(result['conditions'])}.")
    lines = path / "private" / "per-question.jsonl"
    if not lines.is_file():
        raise ExperimentError(f"{path} holds no per-question values; they are private and were not kept. Run it again.")
    rows = (json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines())
    return result, condition, {row["id"]: row for row in rows if row["condition"] == condition}
