"""Check a comparison before any of its numbers is computed.

The checks: reach of every leg in every regime at every cut-off, the witness sent through the real fusion, and the lists
themselves: empty legs, legs as deep as the store, memories that only one leg returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

from eval.datasets import Query
from eval.experiments.conditions import Condition
from eval.experiments.fusion import regime_of
from eval.experiments.lists import Asked, Found, Key
from eval.statistics.finds import Known, finds
from eval.statistics.measures import CUTOFFS, Run
from eval.statistics.verdict import Standing
from semmem.fusion import rank_as
from semmem.model.leg_scores import ENDLESS
from semmem.model.recipe import Recipe
from semmem.model.reports import counted
from semmem.rank_cap import reach
from semmem.rank_cap.report import CLASSES, Reach, ReachClass

__all__ = ["leg_only", "preflight", "standing", "witness_holds"]


def preflight(
    condition: Condition, queries: Sequence[Query], asked: Mapping[str, Asked], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """Return the checks of one condition on these questions, JSON-ready.

    ``sizes`` are the memories per namespace. Reach is computed for the smallest scope a question has, the one in which
    the least is possible.
    """
    recipe = condition.recipe
    scopes = [sizes[q.namespace] for q in queries if sizes.get(q.namespace)]
    smallest = min(scopes, default=0)
    by_k = {k: reach(recipe, k, scope_size=smallest or None) for k in CUTOFFS}
    return {
        "smallest scope": smallest,
        "regimes": dict(Counter(regime_of(recipe, asked[q.id]) for q in queries)),
        "reach": {str(k): _classes(reach) for k, reach in by_k.items()},
        "without reserve": {str(k): _classes(reach, "class_without_reserve") for k, reach in by_k.items()},
        "worst importance": {str(k): _classes(reach, "class_with_prior") for k, reach in by_k.items()},
        "witness holds": {str(k): witness_holds(recipe, reach) for k, reach in by_k.items()},
        "legs": {leg: _leg(recipe, leg, queries, asked, smallest) for leg in recipe.legs},
        "vacuous": {
            str(k): _share([sizes[q.namespace] <= k for q in queries if sizes.get(q.namespace)]) for k in CUTOFFS
        },
        "rank of the first memory that was no seed": _first_new(recipe, queries, asked),
        "degraded questions": sum(bool(asked[q.id].degraded) for q in queries),
    }


def standing(
    holder: Condition,
    without: Condition,
    leg: str | None,
    k: int,
    queries: Sequence[Query],
    asked: Mapping[str, Asked],
    lists: Mapping[str, Asked],
    sizes: Mapping[str, int],
    *,
    found: Mapping[str, Mapping[Key, Found]] | None = None,
    run: Run | None = None,
    known: Known | None = None,
) -> Standing:
    """Return the facts that decide the verdict on a comparison of ``holder``, which has the leg, and ``without``.

    ``asked`` and ``lists`` are the lists of the two; none of their legs may have failed to answer. ``found`` has the
    memories of the lists by namespace and key, ``run`` the fused lists of the holder; ``known`` keeps what was
    computed. Raises Contradicted where a fused list contradicts a class.
    """
    failure = _failure(queries, asked, {*holder.recipe.legs, *without.recipe.legs})
    vacuous = _share([sizes[q.namespace] <= k for q in queries if sizes.get(q.namespace)])
    if leg is None:
        return Standing(k=k, vacuous=vacuous, degraded=failure, questions=len(queries))
    known, memories = known or Known(), found or {}
    strongest: dict[str, ReachClass] = {}
    for query in queries:
        scope = sizes.get(query.namespace)
        _, reach_ = known.of(holder, k, asked[query.id], memories.get(query.namespace, {}), scope)
        regime = regime_of(holder.recipe, asked[query.id])
        of_leg = reach_.legs[leg].class_
        strongest[regime] = max(of_leg, strongest.get(regime, of_leg), key=CLASSES.index)
    return Standing(
        k=k,
        leg=leg,
        reach=strongest,
        vacuous=vacuous,
        empty=_share([not asked[q.id].legs.get(leg) for q in queries]),
        finds=finds(holder, without, leg, k, queries, asked, lists, sizes, memories, run or {}, known),
        dropped="the base set of this condition" if holder.excluded == leg else None,
        degraded=failure,
        questions=len(queries),
    )


def _failure(queries: Sequence[Query], asked: Mapping[str, Asked], legs: Collection[str]) -> str | None:
    for leg in sorted(legs):
        reasons = Counter(asked[q.id].degraded[leg] for q in queries if leg in asked[q.id].degraded)
        if reasons:
            reason, _ = reasons.most_common(1)[0]
            asked_of = f"{sum(reasons.values())} of {counted(len(queries), 'question')}"
            return f"{leg} could not answer {asked_of} ({reason.rstrip('.')})"
    return None


def leg_only(recipe: Recipe, leg: str, asked: Asked) -> set[str]:
    """Return the memories that only ``leg`` returned for this question, within the recipe's depths."""
    ids = asked.ids(recipe.depths, recipe.legs)
    others = {id for name, of_leg in ids.items() if name != leg for id in of_leg}
    return set(ids.get(leg, ())) - others


def witness_holds(recipe: Recipe, reach: Reach) -> bool:
    """Send every witness through the fusion that recall calls and see whether it comes out as the arithmetic says.

    A formula that reads scores has witnesses of scores, which lists alone cannot show: nothing is sent there.
    """
    if recipe.fusion not in ("rrf", "rank-scaled"):
        return True
    for regime, legs in reach.regimes.items():
        for leg in legs.legs.values():
            for witness in (leg.witness, leg.counter_witness):
                if witness is None:
                    continue
                ranked = rank_as(
                    recipe.fusion,
                    witness.rankings,
                    {},
                    weights=recipe.weights_in(regime),
                    rank_constants=recipe.constants(regime),
                    planned=recipe.legs,
                    exact=witness.exact,
                    exact_bonus=recipe.exact_bonus,
                )
                if (witness.memory in [f.key for f in ranked[: reach.k]]) != witness.enters:
                    return False
    return True


def _classes(reach: Reach, field: str = "class_") -> dict[str, dict[str, str]]:
    return {name: {leg: str(getattr(row, field)) for leg, row in of.legs.items()} for name, of in reach.regimes.items()}


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
