"""Fuse the lists of a recall again by another recipe: what an experiment does with a weight, without asking a leg."""

from __future__ import annotations

from dataclasses import replace

from semmem.model.recipe import Recipe, deep_enough
from semmem.read.candidates import Candidates, Cut, deeper
from semmem.read.periods import used_by
from semmem.read.steps import cut

__all__ = ["fused_by"]

_FUSION = (
    "name", "weights", "regime_weights", "rank_constants", "reserve", "regime_reserve", "prior", "prior_floor",
    "recency_half_life", "recency_floor", "period_floor",
)  # fmt: skip
"""The settings of a recipe that no leg reads."""


def fused_by(recipe: Recipe, before: Candidates, window: Cut) -> Candidates | None:
    """Return the candidates that a recall by ``recipe`` would have, of the lists ``before``; None if it needs others.

    A leg that had no weight before has no list. The lists of the graph leg depend on the legs that seed it. Reranking
    reads texts, and the lists of an earlier time belong to another store.
    """
    if recipe.period_floor is not None and before.question.periods is None:
        return None  # the question was not read for periods
    recipe = used_by(deep_enough(recipe, window.limit + window.offset), before.question)
    was = before.recipe
    same = replace(recipe, **{name: getattr(was, name) for name in _FUSION}) == was
    if not same or recipe.rerank is not None or before.scope.at is not None or not {*recipe.legs} <= {*was.legs}:
        return None
    asked = {*recipe.legs, *recipe.seeders}
    regime = "unnamed"
    if recipe.walks:
        fewer = recipe.regimes == ("any",) or {*recipe.regimes} <= {*was.regimes}
        if {*was.graph.seeders, *was.legs} != asked or not fewer:
            return None
        regime = before.regime
    traces = {leg: trace for leg, trace in before.traces.items() if leg in asked}
    exact = frozenset[int]().union(*(trace.exact for trace in traces.values()))
    after = replace(
        before,
        recipe=recipe,
        regime=regime if regime in recipe.regimes else recipe.regimes[-1],
        rankings={leg: keys for leg, keys in before.rankings.items() if leg in recipe.legs},
        raw={leg: scores for leg, scores in before.raw.items() if leg in recipe.legs},
        traces=traces,
        exact=frozenset(key for key in before.exact if before.metadata[key].row_id in exact),
        degraded={leg: why for leg, why in before.degraded.items() if leg not in was.legs or leg in recipe.legs},
        best={leg: score for leg, score in before.best.items() if leg in asked},
    )
    after = replace(after, ranked=after.fuse())
    too_few = len(cut(after, window)) < window.limit + window.offset and deeper(after) is not None
    return None if too_few else after
