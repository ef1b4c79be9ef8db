"""Reach: what each leg of a recipe can do to the first k, proven from the recipe's numbers before any query is run.

The bars are in ``bounds``, the classes in ``classes``, lists that show an outcome in ``witness``, the table that
people read in ``report``. The room is called after the rank cap, because ``semmem.reach`` is the function.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.rank_cap.bounds import as_written
from semmem.rank_cap.classes import _DEEPEST, _DEPTH, _leg_reach, rank_scaled, reordered, score_reach
from semmem.rank_cap.report import LegReach, Reach, ReachClass, RegimeReach

__all__ = ["reach", "reach_of"]


def reach(
    recipe: str | Recipe,
    k: int = 10,
    *,
    scope_size: int | None = None,
    base_sizes: Mapping[str, int] | None = None,
    endless: Collection[str] = ("dense",),
    also: Collection[str] = (),
) -> Reach:
    """Return the reach of every leg of ``recipe`` (one, or its name), in every regime, at cut-off ``k``.

    ``scope_size`` is the number of memories that pass the filters (None: many). ``base_sizes`` says how many memories
    a leg returns when it is one of the others; None means at least k where its depth allows, and any more up to its
    depth. ``endless`` legs return memories as long as there are any. Legs the recipe gives a weight are reported,
    weight 0 included, and those named in ``also``.

    Raises InvalidInput for a cut-off or a size below its range, UnknownRecipe for a name that no recipe has.
    """
    if not isinstance(recipe, Recipe):
        recipe = find_recipe(recipe)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidInput(f"The cut-off k must be 1 or more, not {k!r}.")
    if (scope_size is not None and scope_size < 0) or any(n < 0 for n in (base_sizes or {}).values()):
        raise InvalidInput("Sizes of a scope or a leg must be 0 or more.")
    names = list(dict.fromkeys([*recipe.weights, *also]))
    regimes: dict[str, RegimeReach] = {}
    for regime in recipe.regimes:
        plan = replace(recipe, weights={**recipe.weights, **recipe.weights_in(regime)}, regime_weights={})
        constants = recipe.constants(regime)
        legs = {name: _of_fusion(plan, name, constants, k, scope_size, base_sizes or {}, endless) for name in names}
        regimes[regime] = RegimeReach(legs)
    return Reach(recipe.name, k, regimes)


def reach_of(
    weights: Sequence[float] | Mapping[str, float],
    rank_constants: Sequence[float] | Mapping[str, float],
    k: int = 10,
    *,
    names: Sequence[str] = ("lexical", "dense", "graph"),
    depth: int = _DEEPEST,
) -> Reach:
    """Return the reach of bare numbers, one weight and one rank constant per leg; the recipe is called ``custom``.

    Sequences are in the order of ``names``; legs beyond them are called ``leg4``, ``leg5`` and so on. No reserve, no
    bonus, prior as in every recipe. Raises InvalidInput when the lengths differ or a number is out of range.
    """
    if not isinstance(weights, Mapping):
        weights = dict(zip(_names(names, len(weights)), weights, strict=True))
    if not isinstance(rank_constants, Mapping):
        rank_constants = dict(zip(_names(names, len(rank_constants)), rank_constants, strict=True))
    if set(weights) != set(rank_constants):
        raise InvalidInput(
            f"Pass one rank constant per weight: {len(weights)} weights, {len(rank_constants)} constants."
        )
    for what, numbers in (("weight", weights), ("rank constant", rank_constants)):
        for leg, number in numbers.items():
            if not (math.isfinite(number) and number >= 0):
                raise InvalidInput(f"The {what} of {leg} must be 0 or more, not {number}.")
    return reach(Recipe("custom", weights, rank_constants, depths=dict.fromkeys(weights, depth)), k)


def _names(names: Sequence[str], count: int) -> list[str]:
    return [names[i] if i < len(names) else f"leg{i + 1}" for i in range(count)]


def _of_fusion(
    recipe: Recipe,
    leg: str,
    constants: Mapping[str, float],
    k: int,
    scope: int | None,
    sizes: Mapping[str, int],
    endless: Collection[str],
) -> LegReach:
    """Return the reach of ``leg`` by the recipe's fusion, and with its reranker."""
    if leg not in constants or scope == 0:
        return _unreachable(recipe, leg, k)
    cut = k if recipe.rerank is None else max(k, recipe.rerank_depth)
    found: LegReach
    if recipe.fusion == "rrf":
        found = _leg_reach(recipe, leg, constants, cut, scope, sizes, endless)
    elif recipe.fusion == "rank-scaled":
        # 1/(k + r/w - 1) = w/(w(k - 1) + r): weighted RRF with these constants, so its bounds hold as they are
        steps = {name: max(as_written(constant), Fraction(1)) - 1 for name, constant in constants.items()}
        as_rrf: Mapping[str, Any] = {name: as_written(recipe.weights[name]) * step for name, step in steps.items()}
        found = rank_scaled(_leg_reach(recipe, leg, as_rrf, cut, scope, sizes, endless), steps[leg])
    else:
        found = score_reach(recipe, leg, constants, cut, scope, sizes, endless)
    return found if recipe.rerank is None else reordered(found, recipe.rerank, k, recipe.rerank_depth)


def _unreachable(recipe: Recipe, leg: str, k: int) -> LegReach:
    weight = recipe.weights.get(leg, 0)
    if not weight:
        why = "has weight 0" if leg in recipe.weights else "is not part of the recipe"
    else:
        why = "has depth 0" if recipe.depths.get(leg, _DEPTH) == 0 else "has no memory in scope"
    none: ReachClass = "unreachable"
    return LegReach(leg, none, none, none, none, none, none, f"The leg {leg} {why}, so it returns nothing.", k)
