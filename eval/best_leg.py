"""Compare a recipe with each of its legs alone, stratum by stratum: does the fusion lose to a leg that it fuses?

A leg alone is its own list in the recipe: the graph's walk starts from the heads of the other legs all the same. A
recipe *loses* in a stratum where it is more than ``TOLERANCE`` below its best leg; strata of fewer than ``FEWEST``
questions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.datasets import Corpus
from eval.experiments.conditions import Condition
from eval.experiments.experiment import fuse_all
from eval.experiments.lists import ask_all, grouped, shallow
from eval.statistics.clusters import clusters
from eval.statistics.comparison import Lists
from eval.statistics.measures import Measured, measure
from eval.statistics.significance import FEWEST as FEWEST_CLUSTERS
from eval.statistics.significance import clustered
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as variant

__all__ = ["FEWEST", "METRICS", "TOLERANCE", "Row", "alone", "measured", "table"]

METRICS = ("R@5", "R@10", "nDCG@10", "AllGold@10")
TOLERANCE = 0.02
FEWEST = 20
_DRAWS = 5_000


@dataclass(frozen=True, slots=True)
class Row:
    """The mean of one metric over a stratum: of the recipe, and of each of its legs alone.

    ``interval`` is where the recipe's mean over other draws of as many clusters lies in 95 of 100 cases, and
    ``over_best`` where that of its difference to the best leg does; None with fewer than eight clusters. ``ahead`` and
    ``behind`` count the questions on which the recipe is better and worse than the best leg. The stratum ``all`` holds
    questions that are apart too.
    """

    data: str
    stratum: str
    questions: int
    recipe: str
    metric: str
    value: float
    legs: Mapping[str, float]
    interval: tuple[float, float] | None = None
    over_best: tuple[float, float] | None = None
    ahead: int = 0
    behind: int = 0

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
        recipe,
        name=f"{leg} in {recipe.name}",
        weights=weights,
        reserve={},
        regime_weights={},
        regime_reserve={},
        prior=False,
        fusion="rrf",
    )


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
    of_question = clusters([query for query in corpus.queries if query.gold])
    rows = []
    for stratum, of_stratum in _strata(next(iter(values.values()))).items():
        for name, plan in plans.items():
            whole = values[plan.name]
            labels = [of_question[whole.ids[i]] for i in of_stratum]
            for metric in metrics:
                of_legs = {leg: values[f"{leg} in {plan.name}"].values[metric][of_stratum] for leg in plan.legs}
                row = Row(
                    corpus.name,
                    stratum,
                    len(of_stratum),
                    name,
                    metric,
                    **_means(whole.values[metric][of_stratum], of_legs),
                )
                more = whole.values[metric][of_stratum] - of_legs[row.best]
                ahead, behind = int((more > 1e-9).sum()), int((more < -1e-9).sum())
                interval, over_best = _interval(whole.values[metric][of_stratum], labels), _interval(more, labels)
                rows.append(replace(row, interval=interval, over_best=over_best, ahead=ahead, behind=behind))
    return rows


def _means(of_recipe: NDArray[np.float64], of_legs: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    return {"value": float(of_recipe.mean()), "legs": {leg: float(of.mean()) for leg, of in of_legs.items()}}


def _strata(of: Measured) -> dict[str, NDArray[np.intp]]:
    """Return the places of the questions of the headline, of all where some are apart, and of each larger stratum."""
    places = {group: of.rows(group) for group in of.groups}
    if any(of.apart):
        places["all"] = np.arange(len(of.ids))
    return {
        name: rows
        for name, rows in places.items()
        if len(rows) >= FEWEST or (name in ("headline", "all") and len(rows))
    }


def _interval(values: NDArray[np.float64], labels: Sequence[str]) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of the mean over draws of whole clusters."""
    sums, sizes = clustered(values, labels)
    if len(sums) < FEWEST_CLUSTERS:
        return None
    drawn = np.random.default_rng(0).integers(0, len(sums), (_DRAWS, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def table(rows: Sequence[Row], *, levels: bool = False) -> list[list[str]]:
    """Return a line for each stratum and recipe: its value and that of its best leg by metric, bold where it loses.

    ``levels`` gives the interval of the value in place of the best leg.
    """
    lines: dict[tuple[str, str, int, str], list[str]] = {}
    for row in rows:
        beside = _in_brackets(row.interval) if levels else f" ({row.best} {row.legs[row.best]:.3f})"
        cell = f"{row.value:.3f}{beside}".replace("0.", ".")
        line = lines.setdefault((row.data, row.stratum, row.questions, row.recipe), [])
        line.append(f"**{cell}**" if row.loses and not levels else cell)
    return [[data, stratum, str(many), name, *cells] for (data, stratum, many, name), cells in lines.items()]


def _in_brackets(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"
