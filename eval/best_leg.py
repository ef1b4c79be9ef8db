"""Compare a recipe with each of its legs alone, stratum by stratum: does the fusion lose to a leg that it fuses?

A leg alone is its own list in the recipe: the graph's walk starts from the heads of the other legs all the same. A
recipe *loses* in a stratum where it is more than ``TOLERANCE`` below its best leg; strata of fewer than ``FEWEST``
questions are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eval.datasets import Corpus
from eval.experiments.conditions import Condition
from eval.experiments.experiment import fuse_all
from eval.experiments.lists import ask_all, grouped, shallow
from eval.statistics.comparison import Lists
from eval.statistics.measures import measure
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as variant

__all__ = ["FEWEST", "METRICS", "TOLERANCE", "Row", "alone", "measured", "table"]

METRICS = ("R@5", "R@10", "nDCG@10", "AllGold@10")
TOLERANCE = 0.02
FEWEST = 20


@dataclass(frozen=True, slots=True)
class Row:
    """The mean of one metric over a stratum: of the recipe, and of each of its legs alone."""

    data: str
    stratum: str
    questions: int
    recipe: str
    metric: str
    value: float
    legs: Mapping[str, float]

    @property
    def best(self) -> str:
        """The best leg; of equals the first."""
        return max(self.legs, key=lambda leg: self.legs[leg])

    @property
    def loses(self) -> bool:
        """Whether the recipe is more than the tolerance below its best leg."""
        return self.value < self.legs[self.best] - TOLERANCE - 1e-9

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {**asdict(self), "best": self.best, "loses": self.loses}


def alone(recipe: Recipe, leg: str) -> Recipe:
    """Return the recipe that shows the list of ``leg`` as it is, asked together with the other legs of ``recipe``."""
    weights = {name: float(name == leg) for name in recipe.weights}
    return replace(
        recipe, name=f"{leg} in {recipe.name}", weights=weights, reserve={}, regime_weights={}, regime_reserve={},
        prior=False, fusion="rrf",
    )  # fmt: skip


def measured(
    mem: Any, corpus: Corpus, recipes: Sequence[str], metrics: Sequence[str] = METRICS, *, lists: Path | None = None
) -> list[Row]:
    """Ask every question once, and return a row for each stratum, recipe and metric.

    A store without memories is filled with those of ``corpus``. ``lists`` is a folder that keeps the lists with their
    scores, so that the same code asks them once.
    """
    if not mem.stats().memories:
        mem.remember_many(corpus.memories)
        mem.maintain()
    plans = {name: shallow(variant(name), min(corpus.sizes.values())) for name in recipes}
    values = {}
    embedder = re.sub(r"[^\w.-]+", "_", str(mem.stats().embedder))
    for names in grouped(plans):
        group = [plans[name] for name in names]
        cache = None if lists is None else lists / embedder / f"{corpus.name}-{'-'.join(names)}.jsonl"
        found = Lists(*ask_all(mem, corpus.queries, group, cache=cache))
        for plan in group:
            for one in (plan, *(alone(plan, leg) for leg in plan.legs)):
                run = fuse_all(Condition(one.name, one), [q for q in corpus.queries if q.gold], found)
                values[one.name] = measure(corpus.queries, run)
    rows = []
    for stratum in next(iter(values.values())).groups:
        for name, plan in plans.items():
            questions = len(values[plan.name].rows(stratum))
            if stratum != "headline" and questions < FEWEST:
                continue
            for metric in metrics:
                legs = {leg: values[f"{leg} in {plan.name}"].mean(metric, stratum) for leg in plan.legs}
                value = values[plan.name].mean(metric, stratum)
                if not math.isnan(value):
                    rows.append(Row(corpus.name, stratum, questions, name, metric, value, legs))
    return rows


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each stratum and recipe: its value and that of its best leg by metric, bold where it loses."""
    lines: dict[tuple[str, str, int, str], list[str]] = {}
    for row in rows:
        cell = f"{row.value:.3f} ({row.best} {row.legs[row.best]:.3f})".replace("0.", ".")
        line = lines.setdefault((row.data, row.stratum, row.questions, row.recipe), [])
        line.append(f"**{cell}**" if row.loses else cell)
    return [[data, stratum, str(many), name, *cells] for (data, stratum, many, name), cells in lines.items()]
