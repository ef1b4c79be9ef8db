"""What is known about a comparison before a single number of it is looked at.

Arithmetic (reach of every leg, in every regime, at every cut-off), the witness sent through the real fusion, and what
the lists themselves show: empty legs, legs as deep as the store, memories only one leg returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

from eval.datasets import Query
from eval.experiments.conditions import Condition
from eval.experiments.lists import Asked
from eval.statistics.measures import CUTOFFS
from eval.statistics.verdict import Standing
from semmem.fusion import rank_as
from semmem.model.recipe import Recipe
from semmem.rank_cap import reach
from semmem.rank_cap.report import Reach

__all__ = ["leg_only", "preflight", "standing", "witness_holds"]

ENDLESS = ("dense",)
"""Legs that return memories as long as there are any."""


def preflight(
    condition: Condition, queries: Sequence[Query], asked: Mapping[str, Asked], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """Return what can be said of one condition on these questions, JSON-ready.

    ``sizes`` are the memories per namespace. Reach is computed for the smallest scope a question has, the one in which
    the least is possible.
    """
    recipe = condition.recipe
    scopes = [sizes[q.namespace] for q in queries if sizes.get(q.namespace)]
    smallest = min(scopes, default=0)
    by_k = {k: reach(recipe, k, scope_size=smallest or None) for k in CUTOFFS}
    return {
        "smallest scope": smallest,
        "regimes": dict(Counter(_regime(recipe, asked[q.id]) for q in queries)),
        "reach": {str(k): _classes(at) for k, at in by_k.items()},
        "without reserve": {str(k): _classes(at, "class_without_reserve") for k, at in by_k.items()},
        "worst importance": {str(k): _classes(at, "class_with_prior") for k, at in by_k.items()},
        "witness holds": {str(k): witness_holds(recipe, at) for k, at in by_k.items()},
        "legs": {leg: _leg(recipe, leg, queries, asked, smallest) for leg in recipe.legs},
        "vacuous": {
            str(k): _share([sizes[q.namespace] <= k for q in queries if sizes.get(q.namespace)]) for k in CUTOFFS
        },
        "rank of the first memory that was no seed": _first_new(recipe, queries, asked),
        "degraded questions": sum(bool(asked[q.id].degraded) for q in queries),
    }


def standing(
    holder: Condition,
    leg: str | None,
    k: int,
    queries: Sequence[Query],
    asked: Mapping[str, Asked],
    sizes: Mapping[str, int],
    *,
    legs: Collection[str] | None = None,
) -> Standing:
    """Return what the verdict on a comparison must know; ``holder`` is the condition that has the studied leg.

    ``legs`` are those that either condition calls (default: the holder's): none of them may have failed to answer.
    """
    failed = _failed(queries, asked, legs or holder.recipe.legs)
    vacuous = _share([sizes[q.namespace] <= k for q in queries if sizes.get(q.namespace)])
    if leg is None:
        return Standing(k=k, vacuous=vacuous, degraded=failed, questions=len(queries))
    recipe = holder.recipe
    smallest = min((sizes[q.namespace] for q in queries if sizes.get(q.namespace)), default=0)
    found = reach(recipe, k, scope_size=smallest or None)
    met = Counter(_regime(recipe, asked[q.id]) for q in queries)
    classes = {name: str(regime.legs[leg].class_) for name, regime in found.regimes.items() if met[name]}
    empty = _share([not asked[q.id].legs.get(leg) for q in queries])
    return Standing(
        k=k,
        leg=leg,
        reach=classes,
        vacuous=vacuous,
        empty=empty,
        leg_only=sum(len(leg_only(recipe, leg, asked[q.id])) for q in queries),
        dropped="the base set of this condition" if holder.excluded == leg else None,
        degraded=failed,
        questions=len(queries),
    )


def _failed(queries: Sequence[Query], asked: Mapping[str, Asked], legs: Collection[str]) -> str | None:
    for leg in sorted(legs):
        reasons = Counter(asked[q.id].degraded[leg] for q in queries if leg in asked[q.id].degraded)
        if reasons:
            reason, _ = reasons.most_common(1)[0]
            return f"{leg} could not answer {sum(reasons.values())} of {len(queries)} questions ({reason.rstrip('.')})"
    return None


def leg_only(recipe: Recipe, leg: str, asked: Asked) -> set[str]:
    """Return the memories that only ``leg`` returned for this question, within the recipe's depths."""
    ids = asked.ids(recipe.depths, recipe.legs)
    others = {id for name, of_leg in ids.items() if name != leg for id in of_leg}
    return set(ids.get(leg, ())) - others


def witness_holds(recipe: Recipe, at: Reach) -> bool:
    """Send every witness through the fusion that recall calls and see whether it comes out as the arithmetic says.

    A formula that reads scores has witnesses of scores, which lists alone cannot show: nothing is sent there.
    """
    if recipe.fusion not in ("rrf", "rank-scaled"):
        return True
    for regime, legs in at.regimes.items():
        for leg in legs.legs.values():
            for seen in (leg.witness, leg.counter_witness):
                if seen is None:
                    continue
                ranked = rank_as(
                    recipe.fusion,
                    seen.rankings,
                    {},
                    weights=recipe.weights_in(regime),
                    rank_constants=recipe.constants(regime),
                    planned=recipe.legs,
                    exact=seen.exact,
                    exact_bonus=recipe.exact_bonus,
                )
                if (seen.memory in [f.key for f in ranked[: at.k]]) != seen.enters:
                    return False
    return True


def _regime(recipe: Recipe, asked: Asked) -> str:
    return asked.regime if asked.regime in recipe.regimes else recipe.regimes[-1]


def _classes(at: Reach, field: str = "class_") -> dict[str, dict[str, str]]:
    return {name: {leg: str(getattr(its, field)) for leg, its in of.legs.items()} for name, of in at.regimes.items()}


def _leg(
    recipe: Recipe, leg: str, queries: Sequence[Query], asked: Mapping[str, Asked], smallest: int
) -> dict[str, Any]:
    lengths = [len(asked[q.id].rankings(recipe.depths, [leg]).get(leg, ())) for q in queries]
    depth = recipe.depths.get(leg, 100)
    return {
        "depth": depth,
        "empty": _share([not n for n in lengths]),
        "median length": median(lengths) if lengths else 0,
        "returns the whole scope": bool(smallest) and leg in ENDLESS and depth >= smallest,
        "memories only it returned": sum(len(leg_only(recipe, leg, asked[q.id])) for q in queries),
    }


def _first_new(recipe: Recipe, queries: Sequence[Query], asked: Mapping[str, Asked]) -> float | None:
    """Return the median rank, in the graph's list, of the first memory that no seeding leg had among its seeds."""
    if "graph" not in recipe.legs:
        return None
    ranks = []
    for query in queries:
        lists = asked[query.id].rankings(recipe.depths, recipe.legs)
        seeds = {key for leg, keys in lists.items() if leg != "graph" for key in keys[: recipe.graph.seeds]}
        ranks += [i for i, key in enumerate(lists.get("graph", ()), start=1) if key not in seeds][:1]
    return float(median(ranks)) if ranks else None


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0
