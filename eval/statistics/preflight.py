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
from eval.experiments.fusion import regime_of, unfolded
from eval.experiments.lists import Asked, Found, Key
from eval.statistics.measures import CUTOFFS, Run
from eval.statistics.verdict import Standing
from semmem.fusion import rank_as
from semmem.model.recipe import Recipe
from semmem.rank_cap import reach
from semmem.rank_cap.report import CLASSES, Reach, ReachClass

__all__ = ["Contradicted", "leg_only", "preflight", "standing", "witness_holds"]


class Contradicted(Exception):
    """A measured list contradicts the computed reach; the message says where."""


_BARRED = ("unreachable", "boost-only")

ENDLESS = ("dense",)
"""Legs that return memories as long as there are any."""


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
    found: Mapping[str, Mapping[Key, Found]] | None = None,
    run: Run | None = None,
    seen: dict[tuple[Any, ...], ReachClass] | None = None,
) -> Standing:
    """Return the facts that decide the verdict on a comparison; ``holder`` is the condition with the studied leg.

    ``legs`` are those that either condition calls (default: the holder's): none of them may have failed to answer.
    ``found`` has the memories of the lists by namespace and key, ``run`` the lists of the holder; ``seen`` caches
    classes. Raises Contradicted where a leg that arithmetic calls boost-only for a question has a memory of
    its own in the first ``k``.
    """
    failure = _failure(queries, asked, legs or holder.recipe.legs)
    vacuous = _share([sizes[q.namespace] <= k for q in queries if sizes.get(q.namespace)])
    if leg is None:
        return Standing(k=k, vacuous=vacuous, degraded=failure, questions=len(queries))
    recipe = holder.recipe
    memories = found or {}
    varied = len({memory.importance for of_space in memories.values() for memory in of_space.values()}) > 1
    varied = (varied and recipe.prior) or recipe.recency_half_life is not None
    strongest: dict[str, ReachClass] = {}
    barred, entered = 0, 0
    classes = {} if seen is None else seen
    for query in queries:
        this = (holder.name, leg, k, query.id)
        if this not in classes:
            of_space, scope = memories.get(query.namespace, {}), sizes.get(query.namespace)
            classes[this] = class_of(holder, leg, k, asked[query.id], of_space, scope, varied, classes)
        of_leg = classes[this]
        regime = regime_of(recipe, asked[query.id])
        strongest[regime] = max(of_leg, strongest.get(regime, of_leg), key=CLASSES.index)
        own = leg_only(recipe, leg, asked[query.id]) if holder.excluded != leg else set()
        first_k = {place if isinstance(place, str) else place[0] for place in (run or {}).get(query.id, ())[:k]}
        entered += len(own & first_k)
        if of_leg in _BARRED:
            barred += 1
            if own & first_k and recipe.rerank is None:
                raise Contradicted(
                    f"Question {query.id} under {holder.name}: by arithmetic {leg} is {of_leg} at k = {k}, and "
                    f"{len(own & first_k)} of the memories that only it returned are in the first {k}. One of the two "
                    "is wrong, so nothing of this run can be trusted; please report the recipe and the lists' lengths."
                )
    empty = _share([not asked[q.id].legs.get(leg) for q in queries])
    return Standing(
        k=k,
        leg=leg,
        reach=strongest,
        vacuous=vacuous,
        empty=empty,
        leg_only=sum(len(leg_only(recipe, leg, asked[q.id])) for q in queries),
        boost_only=barred,
        entered=None if run is None else entered,
        dropped="the base set of this condition" if holder.excluded == leg else None,
        degraded=failure,
        questions=len(queries),
    )


def class_of(
    holder: Condition,
    leg: str,
    k: int,
    asked: Asked,
    found: Mapping[Key, Found],
    scope: int | None,
    varied: bool,
    seen: dict[tuple[Any, ...], ReachClass],
) -> ReachClass:
    """Return the class of ``leg`` for one question: with the lists there are, places that folding freed, importances.

    Folding shows the first of equal contents and of a memory's parts, so the first ``k`` shown are the first *m* that
    were fused, m at least k: reach is asked at m. A list that ended early holds no bar beyond its end. Where
    importances differ (``varied``) the best of them for the leg counts. ``seen`` keeps what was computed.
    """
    recipe = holder.recipe
    regime = regime_of(recipe, asked)
    deep = unfolded(recipe, asked, found, k, excluded=holder.excluded)
    lists = asked.rankings(recipe.depths, [other for other in recipe.legs if other != leg])
    short = {other: len(keys) for other, keys in lists.items() if len(keys) < deep}
    short |= {other: 0 for other in recipe.legs if other != leg and other not in lists}
    at = (recipe.name, leg, varied, regime, deep, scope, tuple(sorted(short.items())))
    if at not in seen:
        row = reach(recipe, deep, scope_size=scope, base_sizes=short, deepened=False).regimes[regime].legs[leg]
        seen[at] = row.class_with_best_prior if varied else row.class_
    return seen[at]


def _failure(queries: Sequence[Query], asked: Mapping[str, Asked], legs: Collection[str]) -> str | None:
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
                if (witness.memory in [f.key for f in ranked[: at.k]]) != witness.enters:
                    return False
    return True


def _classes(at: Reach, field: str = "class_") -> dict[str, dict[str, str]]:
    return {name: {leg: str(getattr(row, field)) for leg, row in of.legs.items()} for name, of in at.regimes.items()}


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
