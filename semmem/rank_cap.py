"""Reach: what a leg can do to the top k, read off a recipe before any query is run.

A memory that only leg g found, at its rank r, scores ``v = w/(k_g + r)``. Two bars decide, both exact fractions:

* the lower bar, ``B_min = max over other legs that return k memories of w_s/(k_s + k)``: the k-th best of the others
  never scores less, and lists exist for which it scores no more. ``v <= B_min``: it can never come in (boost-only);
* the upper bar, ``B_max = (sum of the first k terms of every other leg + first k terms of g without rank r) / k``: k
  memories that all beat v must share k*v, and k distinct memories cannot collect more. ``v > B_max``: guaranteed.

Between them some lists let it in (the witness) and, where the upper bar is tight, some keep it out (the
counter-witness). The upper bar is exact for k = 1; beyond, it is above the exact one where places are worth very
different amounts (by up to a quarter over all lists for k = 2), so ``guaranteed`` is always true, and ``possible`` with
no counter-witness may be guaranteed in truth. Ties lose.

The exact-match bonus is granted to all rivals for the upper bar and to none for the lower one; the memory itself has
it only where the studied leg is the lexical one, since what matches word for word is a lexical find.

That is weighted RRF. ``rank-scaled`` is the same sum with other constants, so as exact; for the fusions that read
scores see ``reach_scores``. Where a reranker orders the first memories anew, reach is asked of what it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from semmem.model.errors import InvalidInput
from semmem.model.recipe import Recipe
from semmem.reach_bounds import Base, Contest, agreed_places, as_written, exact_floor, last_where
from semmem.reach_report import LegReach, Reach, ReachClass, RegimeReach
from semmem.reach_scores import rank_scaled, reordered, score_reach
from semmem.reach_witness import counter_witness, forbids, forces, witness

__all__ = ["reach", "reach_of"]

_DEEPEST = 10_000
_DEPTH = 100


def reach(
    recipe: Recipe,
    k: int = 10,
    *,
    scope_size: int | None = None,
    base_sizes: Mapping[str, int] | None = None,
    endless: Collection[str] = ("dense",),
    also: Collection[str] = (),
) -> Reach:
    """Return the reach of every leg of ``recipe``, in every regime, at cut-off ``k``.

    ``scope_size`` is the number of memories that pass the filters (None: many). ``base_sizes`` says how many memories
    a leg returns when it is one of the others; None means at least k where its depth allows, and any more up to its
    depth. ``endless`` legs return memories as long as there are any. Legs the recipe gives a weight are reported,
    weight 0 included, and those named in ``also``.

    Raises InvalidInput for a cut-off or a size below its range.
    """
    if k < 1:
        raise InvalidInput(f"The cut-off k must be 1 or more, not {k}.")
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


def _leg_reach(
    recipe: Recipe,
    leg: str,
    constants: Mapping[str, float],
    k: int,
    scope: int | None,
    sizes: Mapping[str, int],
    endless: Collection[str],
) -> LegReach:
    contest = _contest(recipe, leg, constants, k, scope, sizes)
    place = recipe.reserve.get(leg)
    reserved = place is not None and place <= k
    others = sum(1 for b in contest.bases if recipe.reserve.get(b.leg, k + 1) <= k)
    agreed = agreed_places(recipe, len(contest.bases), k)
    floor = exact_floor(recipe, constants)

    value, lower, upper = contest.value(), contest.lower_bar(), contest.upper_bar(1, k)
    bare = contest.class_of(Fraction(1), k)
    over_bar = contest.last_rank_over_bar()
    shut = k == 1 and others == 1  # the only place belongs to another leg's first memory
    others += agreed
    last_possible = 0 if shut else min(over_bar, k)
    guaranteed = max(
        last_where(min(k - others, contest.depth), lambda r: contest.guaranteed(r, k - others)), int(reserved)
    )
    headline: ReachClass = "guaranteed" if guaranteed else "possible" if last_possible else "boost-only"
    worst = contest.class_of(floor, k)
    with_prior: ReachClass = "guaranteed" if reserved else "boost-only" if shut else worst
    if with_prior == "guaranteed" and not reserved and others:
        with_prior = contest.class_of(floor, k - others)
    tie: Literal["lower_bar", "upper_bar"] | None = None
    if contest.best_value() == lower:
        tie = "lower_bar"
    elif value == upper and not contest.outnumbers(1, k):
        tie = "upper_bar"
    tails = contest.tails()
    can_enter = bare != "boost-only" and not shut
    return LegReach(
        leg,
        headline,
        bare,
        with_prior,
        worst,
        contest.class_of(1 / floor, k) if floor else "guaranteed" if bare == "guaranteed" else "possible",
        "guaranteed" if headline == "guaranteed" else "possible",
        _certificate(contest, bare, place if reserved else None, shut),
        k,
        weight=contest.weight,
        rank_constant=contest.constant,
        depth=contest.depth,
        reserve=place,
        value=value,
        lower_bar=lower,
        upper_bar=upper,
        base_bar=contest.base_bar(k),
        tie=tie,
        last_rank_over_bar=over_bar,
        last_possible_rank=last_possible,
        guaranteed_ranks=guaranteed,
        base_guaranteed_ranks=last_where(
            min(k, contest.depth), lambda r: contest.value(r) > contest.base_bar(k - r + 1) or contest.outnumbers(r, k)
        ),
        possible_above_weight=lower * (contest.constant + 1) / (1 + contest.own_bonus),
        guaranteed_above_weight=contest.guaranteed_above_weight(),
        possible_up_to_constant=contest.possible_up_to_constant(),
        guaranteed_up_to_constant=contest.guaranteed_up_to_constant(),
        sparse=not tails,
        vacuous=scope is not None and scope <= k,
        leg_only_impossible=scope is not None
        and any(b.leg in endless and recipe.depths.get(b.leg, _DEPTH) >= scope for b in contest.bases),
        witness=witness(leg, contest.bases, k, tails, value <= lower) if can_enter else None,
        counter_witness=counter_witness(
            leg,
            contest.weight,
            contest.constant,
            contest.depth,
            contest.bases,
            k,
            contest.rival_bonus(contest.constant),
        )
        if bare == "possible"
        else None,
    )


def _contest(
    recipe: Recipe, leg: str, constants: Mapping[str, float], k: int, scope: int | None, sizes: Mapping[str, int]
) -> Contest:
    weights = {name: as_written(recipe.weights[name]) for name in constants}
    exact = {name: as_written(constant) for name, constant in constants.items()}
    depths = {name: recipe.depths.get(name, _DEPTH) for name in constants}
    bases = []
    for name in constants:
        if name != leg:
            # the studied memory is in no other list, so a list is at most the rest of the scope
            cap = min(depths[name], sizes.get(name, depths[name]), depths[name] if scope is None else scope - 1)
            bases.append(Base(name, weights[name], exact[name], min(k, cap), cap))
    bonus = as_written(recipe.exact_bonus) if "lexical" in constants else Fraction(0)
    return Contest(
        leg,
        weights[leg],
        exact[leg],
        depths[leg] if scope is None else min(depths[leg], scope),
        tuple(bases),
        k,
        scope,
        bonus=Fraction(0) if leg == "lexical" or not bonus else bonus * weights["lexical"] / (exact["lexical"] + 1),
        own_bonus=bonus if leg == "lexical" else Fraction(0),
    )


def _certificate(contest: Contest, bare: ReachClass, place: int | None, shut: bool) -> str:
    """Return the sum, in words, that forces or forbids; for a leg in between, where it stands."""
    c, k = contest, contest.k
    said = [] if place is None else [f"The reserve gives the first memory of {c.leg} place {place} or better of {k}."]
    if shut:
        said.append(f"The only place belongs to the first memory of another leg, so {c.leg} brings in none of its own.")
    elif bare == "guaranteed" and c.outnumbers(1, k):
        said.append(f"Fewer than {k} other memories can be ahead of the first of {c.leg}.")
    elif bare == "guaranteed":
        said.append(forces(c.leg, c.weight, c.constant, c.value(), c.upper_bar(1, k), c.bases, k))
    elif bare == "boost-only":
        said.append(forbids(c.leg, c.weight, c.constant, c.best_value(), c.lower_bar(), c.bases, k))
    else:
        said.append(
            f"The first place of {c.leg} earns {c.value()} = {float(c.value()):.5f}, above the lower bar "
            f"{float(c.lower_bar()):.5f} and not above the upper bar {float(c.upper_bar(1, k)):.5f}: the lists decide."
        )
    return " ".join(said)


def _unreachable(recipe: Recipe, leg: str, k: int) -> LegReach:
    weight = recipe.weights.get(leg, 0)
    if not weight:
        why = "has weight 0" if leg in recipe.weights else "is not part of the recipe"
    else:
        why = "has depth 0" if recipe.depths.get(leg, _DEPTH) == 0 else "has no memory in scope"
    none: ReachClass = "unreachable"
    return LegReach(leg, none, none, none, none, none, none, f"The leg {leg} {why}, so it returns nothing.", k)
