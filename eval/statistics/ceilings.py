"""Compute ceilings that no tuning can exceed: the union of the legs' lists, dominated gold, and the weight oracle."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.datasets import Query
from eval.experiments.fusion import regime_of
from eval.experiments.lists import Asked
from semmem.model.recipe import Recipe

__all__ = ["Ceilings", "ceilings", "dominated"]

_STEPS = 10


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Recall no weights can exceed, as means over the questions, at cut-off ``k``.

    ``union``: gold in any leg's list. ``undominated``: gold that fewer than ``k`` memories beat in every leg.
    ``oracle``: the best weights chosen anew for each question. ``single``: the best one setting for all, which is
    ``weights``. ``as_set``: the recipe's own weights on the same bare sum, no prior, bonus or reserve.
    """

    k: int
    questions: int
    union: float
    undominated: float
    oracle: float
    single: float
    weights: Mapping[str, float]
    as_set: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
            "k": self.k,
            "questions": self.questions,
            "union": self.union,
            "undominated": self.undominated,
            "oracle": self.oracle,
            "single": self.single,
            "weights": dict(self.weights),
            "as_set": self.as_set,
        }


def ceilings(recipe: Recipe, queries: Sequence[Query], asked: Mapping[str, Asked], k: int) -> Ceilings:
    """Return the ceilings of recall@k for the recipe's legs, depths and rank constants.

    Weights are tried on a grid of tenths of the simplex: fused order does not depend on their scale. So ``oracle`` is
    the best of the grid, which the true best can exceed by little and ``undominated`` bounds from above.
    """
    legs = recipe.legs
    grid = np.array([w for w in itertools.product(range(_STEPS + 1), repeat=len(legs)) if sum(w) == _STEPS]) / _STEPS
    own = np.array([[recipe.weights[leg] for leg in legs]])
    union, undominated, recalls, as_set = [], [], [], []
    for query in queries:
        lists = asked[query.id]
        constants = recipe.constants(regime_of(recipe, lists))
        ids, ranks = _ranks(lists.ids(recipe.depths, legs), legs)
        gold = np.array([id in set(query.gold) for id in ids], dtype=bool)
        shares = 1.0 / (np.array([constants[leg] for leg in legs]) + ranks)
        union.append(gold.sum() / len(query.gold))
        undominated.append((gold & (dominated(ranks) < k)).sum() / len(query.gold))
        recalls.append(_recalls(shares, gold, grid, k) / len(query.gold))
        as_set.append(float(_recalls(shares, gold, own, k)[0]) / len(query.gold))
    by_weight = np.array(recalls) if recalls else np.zeros((0, len(grid)))
    means = by_weight.mean(axis=0) if recalls else np.zeros(len(grid))
    best = int(means.argmax())
    return Ceilings(
        k=k,
        questions=len(queries),
        union=_mean(union),
        undominated=_mean(undominated),
        oracle=_mean(by_weight.max(axis=1)) if recalls else 0.0,
        single=float(means[best]),
        weights={leg: float(w) for leg, w in zip(legs, grid[best], strict=True)},
        as_set=_mean(as_set),
    )


def dominated(ranks: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return, for each memory (a row of ``ranks``, inf where a leg lacks it), how many others beat it in every leg.

    Weights are not negative, so a memory that another beats or equals in every leg, and beats in one, never stands
    above it: with k such others it is out of the top k whatever the weights.
    """
    if not len(ranks):
        return np.zeros(0, dtype=np.intp)
    no_worse = np.ones((len(ranks), len(ranks)), dtype=bool)
    better = np.zeros_like(no_worse)
    for column in ranks.T:
        no_worse &= column[:, None] <= column[None, :]
        better |= column[:, None] < column[None, :]
    counts: NDArray[np.intp] = (no_worse & better).sum(axis=0)
    return counts


def _ranks(lists: Mapping[str, Sequence[str]], legs: Sequence[str]) -> tuple[list[str], NDArray[np.float64]]:
    ids = sorted({id for of_leg in lists.values() for id in of_leg})
    places = {id: i for i, id in enumerate(ids)}
    ranks = np.full((len(ids), len(legs)), np.inf)
    for column, leg in enumerate(legs):
        for rank, id in enumerate(lists.get(leg, ()), start=1):
            ranks[places[id], column] = rank
    return ids, ranks


def _recalls(
    shares: NDArray[np.float64], gold: NDArray[np.bool_], weights: NDArray[np.float64], k: int
) -> NDArray[np.float64]:
    """Return how many gold memories are in the top k under each row of ``weights``; ties by id, as in fusion."""
    if not len(shares):
        return np.zeros(len(weights))
    scores = np.round(shares @ weights.T, 15)
    # a memory without any score is not in the list at all: it cannot be found by being early in the alphabet
    order = np.argsort(-scores, axis=0, kind="stable")[:k]
    hits: NDArray[np.float64] = (
        (
            (np.take_along_axis(np.broadcast_to(gold[:, None], scores.shape), order, 0))
            & (np.take_along_axis(scores, order, 0) > 0)
        )
        .sum(axis=0)
        .astype(np.float64)
    )
    return hits


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else 0.0
