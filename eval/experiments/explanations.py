"""Explain the five questions that a setting helped most and hurt most. Private, because the report shows texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.datasets import Query
from eval.experiments.conditions import Condition
from eval.experiments.experiment import Experiment
from eval.statistics.comparison import holder_of
from eval.statistics.verdict import REFUSED, kind_of
from semmem.model.errors import SemmemError

__all__ = ["write_moved"]

MOST = 5


def write_moved(mem: Any, experiment: Experiment, conditions: Mapping[str, Condition], out: Path) -> Path:
    """Write ``private/moved.md`` under ``out``: it must never be committed, and lies where git ignores it."""
    path = out / "private" / "moved.md"
    metric = experiment.result["metrics"][0]
    names = {
        c["name"]
        for c in experiment.result["comparisons"]
        if c["group"] == "headline" and c["metric"] == metric and kind_of(c) not in REFUSED
    }
    queries = {query.id: query for query in experiment.queries}
    lines = ["# Questions that moved most", "", "Private: text of the corpus. Do not commit.", ""]
    for comparison in [c for c in experiment.comparisons if c.name in names][:8]:
        holder = holder_of(comparison, conditions)
        base, other = experiment.measured[comparison.base], experiment.measured[comparison.other]
        deltas = sorted(
            (
                (float(other.values[metric][i] - base.values[metric][i]), id)
                for i, id in enumerate(base.ids)
                if not base.apart[i]
            )
        )
        lines += [f"## {comparison.name}", ""]
        for title, some in (
            ("helped most", [m for m in reversed(deltas) if m[0] > 0][:MOST]),
            ("hurt most", [m for m in deltas if m[0] < 0][:MOST]),
        ):
            lines += [f"### {title}", ""]
            for delta, id in some:
                query = queries[id]
                lines += [f"- {id} ({query.stratum}), {metric} {delta:+.3f}: {query.text}", "", "```"]
                lines += _explanation(mem, query, holder)
                lines += ["```", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _explanation(mem: Any, query: Query, holder: Condition) -> list[str]:
    recall = mem.recall(query.text, namespace=query.namespace, limit=10, recipe=holder.recipe, now=query.now)
    out = []
    for id in query.gold_memories:
        try:
            out += str(recall.explain(id)).splitlines()
        except SemmemError as error:
            out.append(f"{id}: {error}")
    return out
