"""The reach of a recipe, of the lists of one recall, and of bare numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.leg_scores import BY_RANK, ENDLESS
from semmem.model.recipe import Recipe, deep_enough
from semmem.model.recipe import recipe as find_recipe
from semmem.rank_cap.classes import leg_reach, with_notes
from semmem.rank_cap.guaranteed_slots import Facts, exact_floor
from semmem.rank_cap.places import ASSUMPTIONS, WITHIN_RANGES, Lists
from semmem.rank_cap.report import LegReach, Reach, ReachClass, RegimeReach
from semmem.rank_cap.score_ranges import ShareRange
from semmem.rank_cap.shares import as_written

__all__ = ["reach", "reach_in", "reach_of"]

_DEEPEST = 10_000
_MOST = 2_000
"""The largest cut-off: exact fractions of more terms take long, and a recall returns at most 1,000 memories."""


def reach(
    recipe: str | Recipe,
    k: int = 10,
    *,
    scope_size: int | None = None,
    base_sizes: Mapping[str, int] | None = None,
    endless: Collection[str] = ENDLESS,
    also: Collection[str] = (),
    deepened: bool = True,
    ranges: Mapping[str, ShareRange] | None = None,
) -> Reach:
    """Return the reach of every leg of ``recipe`` (one, or its name), in every regime, at cut-off ``k``.

    ``scope_size`` is the number of memories that pass the filters (None: many). ``base_sizes`` maps a leg to the number
    of memories that it returns beside the studied one; None means at least k if its depth allows, and any number up to
    its depth. ``endless`` legs return memories as long as there are any. The report has every leg with a weight in the
    recipe, weight 0 included, and those named in ``also``. Depths are those of a recall of k hits; without ``deepened``
    they are the recipe's own. ``ranges`` maps a leg to the shares that its places earn in a fusion that reads scores
    (``score_ranges``); without them the scores may be anything. ``assumptions`` of the report names what is assumed.
    ``reach_in`` takes the lists of a question and assumes nothing; the ``reach`` of a recall is computed that way.

    Raises InvalidInput for a cut-off or a size out of range, and for ranges of a leg that the recipe does not ask or
    whose fusion reads no scores; UnknownRecipe for an unknown name.
    """
    if not isinstance(recipe, Recipe):
        recipe = find_recipe(recipe)
    _whole("The cut-off k", k)
    if k > _MOST:
        raise InvalidInput(f"The cut-off k must be at most {_MOST}, not {k!r}; a recall returns at most 1000 memories.")
    if (scope_size is not None and scope_size < 0) or any(n < 0 for n in (base_sizes or {}).values()):
        raise InvalidInput("Sizes of a scope or a leg must be 0 or more.")
    if ranges and recipe.fusion in BY_RANK:
        raise InvalidInput(
            f"The fusion {recipe.fusion} reads no scores, so ranges of scores change nothing; leave them out."
        )
    if other := sorted((ranges or {}).keys() - set(recipe.legs)):
        raise InvalidInput(f"The recipe asks no leg {other[0]}; give ranges for {', '.join(recipe.legs)}.")
    recipe = deep_enough(recipe, k) if deepened else recipe
    names = list(dict.fromkeys([*recipe.weights, *also]))
    facts = Facts(k, k, scope_size, base_sizes or {}, endless, ranges=ranges or {})
    reranks_always = all(recipe.reranker_in(regime) for regime in recipe.regimes)
    assumed = [name for name in ASSUMPTIONS if name != "no reranker" or not reranks_always]
    assumed += [WITHIN_RANGES] if ranges else []
    absent = dict.fromkeys(recipe.legs, "has no memory in scope") if scope_size == 0 else {}
    regimes = {regime: _before(recipe, regime, names, facts, absent, k) for regime in recipe.regimes}
    return Reach(recipe.name, k, regimes, tuple(assumed))


def _before(
    recipe: Recipe, regime: str, names: Sequence[str], facts: Facts, absent: Mapping[str, str], k: int
) -> RegimeReach:
    """Return the reach before a question is asked: where a reranker runs, of what it is shown."""
    if (reranker := recipe.reranker_in(regime)) is None:
        return _regime(recipe, regime, names, facts, absent, k, [])
    shown = max(k, recipe.rerank_depth)
    facts = replace(facts, k=shown, kept=k if shown == k else 0)
    return _regime(recipe, regime, names, facts, absent, k, [_of_reranker(reranker, recipe.rerank_depth, shown)])


def reach_in(recipe: Recipe, lists: Lists | Mapping[str, Lists], k: int, *, scope_size: int | None = None) -> Reach:
    """Return the reach of every leg of ``recipe``, in every regime, for known lists; nothing is assumed.

    ``lists`` is a mapping from regime to lists where the importances depend on the regime, because age lowers a score.

    For a memory that only one leg found: *unreachable*, the leg has no list, or a later step leaves all of it out;
    *boost-only*, lists as long as these that fold in the same way, with their importances, never show it; *guaranteed*,
    they always show it, or a hit that it was folded into. ``k`` is the cut-off that is reported. Raises InvalidInput
    for a cut-off below 1.
    """
    _whole("The cut-off k", k)
    if isinstance(lists, Lists):
        lists = dict.fromkeys(recipe.regimes, lists)
    return Reach(
        recipe.name, k, {name: _regime_in(recipe, name, lists[name], k, scope_size) for name in recipe.regimes}
    )


def _regime_in(recipe: Recipe, regime: str, lists: Lists, k: int, scope_size: int | None) -> RegimeReach:
    absent = dict(lists.absent)
    for name in recipe.legs:
        ranking = lists.lists.get(name)
        if ranking is None:
            absent.setdefault(name, "has no list")
        elif not ranking.firsts:
            absent.setdefault(name, "found nothing that is left" if ranking.length else "found nothing")
    if lists.decided is None:
        found = _regime_in_any_order(recipe, lists, absent, k)
    else:
        facts = Facts(lists.decided, lists.kept, scope_size, lists=lists)
        found = _regime(recipe, regime, list(recipe.weights), facts, absent, k, lists.notes)
    return _with_unseen(found, lists.unseen)


def reach_of(
    weights: Sequence[float] | Mapping[str, float],
    rank_constants: Sequence[float] | Mapping[str, float],
    k: int = 10,
    *,
    names: Sequence[str] = ("lexical", "dense", "graph"),
    depth: int = _DEEPEST,
) -> Reach:
    """Return the reach of bare numbers, one weight and one rank constant per leg; the recipe is called ``custom``.

    Sequences are in the order of ``names``; further legs are called ``leg4``, ``leg5`` and so on. There is no reserve
    and no bonus; the prior is that of every recipe. Raises InvalidInput when the lengths differ or a number is out of
    range.
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
    return reach(Recipe("custom", weights, rank_constants, depths=dict.fromkeys(weights, depth)), k, deepened=False)


def _names(names: Sequence[str], count: int) -> list[str]:
    return [names[i] if i < len(names) else f"leg{i + 1}" for i in range(count)]


def _whole(what: str, number: Any) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidInput(f"{what} must be 1 or more, not {number!r}.")


def _of_reranker(name: str, depth: int, shown: int) -> str:
    return f"The reranker {name} orders the first {depth} anew, so this is about the top {shown}."


def _regime(
    recipe: Recipe,
    regime: str,
    names: Sequence[str],
    facts: Facts,
    absent: Mapping[str, str],
    k: int,
    notes: Sequence[str],
) -> RegimeReach:
    weights, reserve = {**recipe.weights, **recipe.weights_in(regime)}, recipe.reserve_in(regime)
    plan = replace(recipe, weights=weights, regime_weights={}, reserve=reserve, regime_reserve={})
    called = recipe.constants(regime)
    facts = replace(facts, floor=exact_floor(recipe, called))
    return RegimeReach(
        {
            name: with_notes(leg_reach(plan, name, called, facts), k, notes)
            if name in called and name not in absent
            else _unreachable(recipe, name, k, absent)
            for name in names
        }
    )


def _regime_in_any_order(recipe: Recipe, lists: Lists, absent: Mapping[str, str], k: int) -> RegimeReach:
    """Return classes for hits not ordered by score: any memory may come first, and all are shown if they fit."""
    facts = Facts(1, lists.kept, lists=lists)
    out = {}
    for name in recipe.weights:
        if name not in recipe.legs or name in absent:
            out[name] = _unreachable(recipe, name, k, absent)
            continue
        depth = lists.lists[name].length
        sure = facts.sure_ranks(name, 0) if facts.all_shown else 0
        c: ReachClass = "guaranteed" if sure else "possible"
        text = " ".join([*lists.notes, *(["All that was found is shown."] if facts.all_shown else [])])
        weight = as_written(recipe.weights[name])
        out[name] = LegReach.alike(
            name, c, text, k, weight=weight, depth=depth, last_possible_rank=depth, guaranteed_ranks=sure
        )
    return RegimeReach(out)


def _with_unseen(regime_reach: RegimeReach, unseen: Mapping[str, str]) -> RegimeReach:
    """Return ``regime_reach`` with, for each leg, what it does not see before what is claimed of it."""
    legs = dict(regime_reach.legs)
    for leg in unseen.keys() & legs.keys():
        legs[leg] = replace(legs[leg], certificate=f"{unseen[leg]} {legs[leg].certificate}")
    return RegimeReach(legs)


def _unreachable(recipe: Recipe, leg: str, k: int, absent: Mapping[str, str]) -> LegReach:
    if leg in absent and leg in recipe.legs:
        why = absent[leg]
    elif not recipe.weights.get(leg, 0):
        why = "has weight 0" if leg in recipe.weights else "is not part of the recipe"
    else:
        why = "has depth 0"
    text = f"The leg {leg} {why}" + (", so it returns nothing." if not why.endswith(".") else "")
    return LegReach.alike(leg, "unreachable", text, k)
