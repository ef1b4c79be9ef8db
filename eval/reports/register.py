"""The register of all that was ever asked in committed results, corrected as one family."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

from eval.datasets import DatasetError
from eval.statistics.significance import ALPHA, SAMPLES, holm

__all__ = ["Asked", "Register", "register"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One test of a committed result: a comparison by a metric in a group of questions."""

    result: str
    comparison: str
    metric: str
    group: str
    delta: float
    p: float


@dataclass(frozen=True, slots=True)
class Register:
    """All tests, and those that remain: by Holm, and by Benjamini and Hochberg at a false discovery rate of .05.

    ``least`` is the p value that Holm's first step needs. Where it is below the least p value that the draws allow, no
    test can remain by Holm however large its effect.
    """

    results: int
    without: int
    asked: tuple[Asked, ...]
    alone: int
    holm: frozenset[int]
    discoveries: frozenset[int]

    @property
    def least(self) -> float:
        """The p value that the first step of Holm's correction over all tests needs."""
        return ALPHA / max(1, len(self.asked))

    def rows(self) -> list[list[str]]:
        """Return a row a result: tests, those with p below .05 alone, and those that remain."""
        out = []
        for name in dict.fromkeys(one.result for one in self.asked):
            own = [i for i, one in enumerate(self.asked) if one.result == name]
            alone = sum(self.asked[i].p < ALPHA for i in own)
            kept = [len(self.discoveries.intersection(own)), len(self.holm.intersection(own))]
            out.append([name, *map(str, (len(own), alone, *kept))])
        return out

    def sentence(self) -> str:
        """Return what the register says."""
        by_chance = ALPHA * len(self.asked)
        cannot = f", less than {SAMPLES:,} draws can show" if self.least * SAMPLES < 1 else ""
        return (
            f"{len(self.asked):,} tests in {self.results} committed results, and {self.without:,} comparisons without "
            f"one: {self.alone:,} have p below .05 by themselves, where chance alone would give {by_chance:,.0f}; "
            f"{len(self.discoveries):,} remain at a false discovery rate of .05 over all of them, "
            f"{len(self.holm):,} by Holm's correction, which asks the first for p below {self.least:.1e}{cannot}."
        )


def register(results: Path) -> Register:
    """Return the register of the results in a folder, and of the looks at sealed sets in ``kept-apart`` under it.

    A result without comparisons asked nothing. Raises DatasetError for a file that is no result.
    """
    asked, without, files = list[Asked](), 0, 0
    for path in [*sorted(results.glob("*.json")), *sorted(results.glob("kept-apart/*.json"))]:
        content = _content(path)
        comparisons = [*_compared(content.get("result", content)), *_disturbed(content)]  # a look holds its result
        files += bool(comparisons)
        for name, metric, group, paired in comparisons:
            if paired.get("p") is None:
                without += 1
            else:
                asked.append(Asked(path.stem, name, metric, group, paired["delta"], paired["p"]))
    p_values = [one.p for one in asked]
    return Register(files, without, tuple(asked), sum(p < ALPHA for p in p_values), *_remaining(p_values))


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DatasetError(
            f"{path} is not JSON in UTF-8; make the result again, or take it out of the folder."
        ) from error
    if not isinstance(content, dict):
        raise DatasetError(f"{path} holds no result, which is one object; take it out of the folder.")
    return content


def _compared(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (comparison, metric, group, numbers) of the result of an experiment."""
    for c in content.get("comparisons", ()):
        yield c["name"], c["metric"], c["group"], c.get("paired") or c.get("reranking") or {}


def _disturbed(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield the same of a result of ``eval.robustness``: a row is a set that something was done to."""
    for rows in dict(content.get("sets", {})).values():
        for row in rows if isinstance(rows, list) else ():
            for key, paired in row.items():
                if key.endswith(" difference"):
                    yield row["row"], key.removesuffix(" difference"), "headline", paired


def _remaining(p_values: Sequence[float]) -> tuple[frozenset[int], frozenset[int]]:
    if not p_values:
        return frozenset(), frozenset()
    by_holm = holm(p_values)
    rates = false_discovery_control(np.array(p_values))
    return (
        frozenset(i for i, p in enumerate(by_holm) if p < ALPHA),
        frozenset(i for i, rate in enumerate(rates) if rate < ALPHA),
    )
