"""One look at sets that nothing was tuned on: every recipe and every control, once, and a record that counts the looks.

A set stays held out only as long as nobody chooses by it. So what was measured on it is written down at once, by
set and commit, and a second look at the same set with the same code must be asked for and is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval.datasets import FORMATS, Corpus, DatasetError, load
from eval.experiments.conditions import Condition
from eval.experiments.evidence.provenance import COMMIT, clean, role
from eval.experiments.experiment import conduct
from eval.experiments.plan import of_ablation, of_run
from eval.reports.adr import rounded
from eval.statistics.comparison import Comparison

__all__ = ["RECIPES", "look", "plan", "record_of", "sets"]

RECIPES = (
    "default", "default-0.1", "hybrid", "convex", "tm2c2", "rank-scaled", "scored", "seed", "graph", "lexical", "dense",
)  # fmt: skip
Opened = Callable[[Corpus, str | None, str | None], AbstractContextManager[Any]]


def plan() -> tuple[list[Condition], list[Comparison]]:
    """Return each leg of the default recipe, the controls of the graph, and every other recipe against the default."""
    conditions, comparisons = of_ablation(RECIPES[0], ())
    others, against = of_run(RECIPES)
    names = {c.name for c in conditions}
    return [*conditions, *(c for c in others if c.name not in names)], [*comparisons, *against]


def sets(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Return the data sets of ``folder`` that are named, or all that lie in it, or the folder itself where it is one.

    Raises DatasetError where there is none.
    """
    if not folder.is_dir():
        raise DatasetError(f"There is no folder {folder}; name the folder in which the sets lie.")

    def is_set(path: Path) -> bool:
        return any(module.recognises(path) for module in FORMATS.values())

    if names:
        for name in names:
            if not is_set(folder / name):
                raise DatasetError(f"{folder} holds no data set {name}.")
        return [folder / name for name in names]
    paths = [folder] if is_set(folder) else sorted(path for path in folder.iterdir() if path.is_dir() and is_set(path))
    if not paths:
        raise DatasetError(f"{folder} holds no data set of a known form.")
    return paths


def record_of(corpus: Corpus, records: Path, commit: str) -> Path:
    """Return where the record of one set at one commit lies: where there is one, under whatever name of the set."""
    own = records / f"{corpus.name}-{corpus.sha256[:8]}-{commit}.json"
    return own if own.is_file() else next(iter(sorted(records.glob(f"*-{corpus.sha256[:8]}-{commit}.json"))), own)


def _looks(record: Path) -> list[str]:
    """Return the days of the looks that a record counts."""
    days: list[str] = json.loads(record.read_text(encoding="utf-8"))["looks"] if record.is_file() else []
    return days


def _other_bytes(corpus: Corpus, records: Path) -> list[str]:
    """Return, as "sha256 at commit", the looks at a set of the same name that had other bytes."""
    parts = (file.stem.rsplit("-", 2) for file in records.glob("*-*-*.json"))
    return sorted(f"{sha} at {when}" for name, sha, when in parts if name == corpus.name and sha != corpus.sha256[:8])


def look(
    path: Path,
    records: Path,
    opened: Opened,
    *,
    again: bool = False,
    embedder: str | None = None,
    metrics: Sequence[str] = ("R@10", "R@5", "nDCG@10"),
    out: Path,
    say: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Measure one set and write its record; return where it lies.

    Raises DatasetError for a tuning set, for a checkout with changed files, and for a set that was looked at with this
    commit before unless ``again``, which the record then counts.
    """
    corpus = load(path, sealed=True)
    standing = role(corpus)
    if standing == "tuning set" or standing.startswith("shares "):
        what = "is a tuning set of the recipes" if standing == "tuning set" else standing
        raise DatasetError(f"{corpus.name} {what}, so it is not held out; nothing was measured.")
    if not clean(COMMIT) or COMMIT is None:
        raise DatasetError("A look is recorded by commit: commit what has changed first; nothing was measured.")
    record = record_of(corpus, records, COMMIT)
    before = _looks(record)
    if before and not again:
        raise DatasetError(
            f"{corpus.name} was measured with the commit {COMMIT} on {before[-1]}; its record is {record.name}. "
            "Pass --again to look once more: the record will say so."
        )
    earlier = sorted(
        file.stem.rpartition("-")[2]
        for file in records.glob(f"*-{corpus.sha256[:8]}-*.json")
        if file.stem.rpartition("-")[2] != COMMIT
    )
    conditions, comparisons = plan()
    line = f"python -m eval held-out {path.parent.name} --set {path.name}"
    line += f" --embedder {embedder}" if embedder else ""
    with opened(corpus, None, embedder) as mem:
        result = conduct(
            mem,
            corpus,
            conditions,
            comparisons,
            out=out,
            metrics=metrics,
            command="held-out",
            line=line,
            progress=say,
        ).result
    content = {
        "set": corpus.name,
        "sha256": corpus.sha256,
        "commit": COMMIT,
        "looks": [*_looks(record), datetime.now(UTC).date().isoformat()],  # another look may have ended meanwhile
        "looked at with other commits": earlier,
        "looked at with other bytes": _other_bytes(corpus, records),
        "result": rounded(result),
    }
    records.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return record
