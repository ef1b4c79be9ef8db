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

Reach in a fusion that reads scores: what bounded shares alone can prove, and nothing more.

Two kinds of legs. A *scaled* leg of weight w gives its first memory w (its best score is 1 after scaling; in ``scored``
the lexical leg may give less) and each later one anything from that down to 0. A *ranked* leg (the graph in
``scored``) gives rank r exactly w(k + 1)/(k + r). For a memory that only the studied leg found, at cut-off K:

* lower bar: the least that the K-th best of the others can score. For K >= 2 every scaled leg may name one and the
  same memory first and give the rest next to nothing, so only a ranked leg that returns K holds a bar, its K-th share.
  For K = 1 the first memory of each leg stands alone: the bar is the largest share a first place is sure of;
* upper bar: the most that K rivals can all score. With equal scores K memories can be first in every scaled leg at
  once, so it is W, the sum of the other legs' weights, plus what the studied leg gives its rivals.

``value <= lower``: never (boost-only). ``value > upper``, or fewer than K rivals that could be ahead: always
(guaranteed). Else ``possible``: some scores let it in, and whether those of a corpus do is to be counted there. A share
of 1 is the *best* a scaled leg can give, so a memory at a rank below the first may earn as much, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from semmem.model.recipe import Recipe
from semmem.rank_cap.bounds import (
    _MEEK,
    LARGEST_CONSTANT,
    Base,
    Contest,
    Rival,
    ScoreContest,
    agreed_places,
    as_written,
    exact_floor,
    guaranteed_above,
    guaranteed_up_to,
    last_over,
    last_where,
    ranks_without_own,
)
from semmem.rank_cap.report import LegReach, ReachClass
from semmem.rank_cap.witness import _certificate, _counter_witness, _witness, counter_witness, plain, witness

__all__ = ["rank_scaled", "reordered", "score_reach"]

_DEEPEST = 10_000

_DEPTH = 100


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


_RANKED = "graph"


def score_reach(
    recipe: Recipe,
    leg: str,
    constants: Mapping[str, float],
    k: int,
    scope: int | None,
    sizes: Mapping[str, int],
    endless: Collection[str],
) -> LegReach:
    """Return the reach of a called leg of a recipe whose fusion is ``convex``, ``tm2c2`` or ``scored``."""
    c = _score_contest(recipe, leg, constants, k, scope, sizes)
    place = recipe.reserve.get(leg)
    reserved = place is not None and place <= k
    others = sum(1 for r in c.rivals if recipe.reserve.get(r.leg, k + 1) <= k)
    shut = k == 1 and others == 1
    others += agreed_places(recipe, len(c.rivals), k)
    floor = exact_floor(recipe, constants)
    lower, upper = c.lower_bar(k), c.upper_bar(1, k)
    bare = c.class_of(Fraction(1), k)
    over = 0 if c.best() <= lower else c.depth if c.constant is None or not lower else last_over(c, lower)
    last_possible = 0 if shut else min(over, k)
    free = k - others
    sure = 0
    while sure < min(free, c.depth) and c.guaranteed(sure + 1, free):
        sure += 1
    sure = max(sure, int(reserved))
    headline: ReachClass = "guaranteed" if sure else "possible" if last_possible else "boost-only"
    worst = c.class_of(floor, k)
    with_prior: ReachClass = "guaranteed" if reserved else "boost-only" if shut else c.class_of(floor, k)
    if with_prior == "guaranteed" and not reserved and others and not c.guaranteed(1, free, floor):
        with_prior = "possible" if floor * c.best() > lower else "boost-only"
    tie: Literal["lower_bar", "upper_bar"] | None = None
    if lower and c.best() == lower:
        tie = "lower_bar"
    elif c.constant is not None and c.best() == upper and not c.outnumbers(1, k, worst=False):
        tie = "upper_bar"
    return LegReach(
        leg,
        headline,
        bare,
        with_prior,
        worst,
        c.class_of(1 / floor, k) if floor else "guaranteed" if bare == "guaranteed" else "possible",
        "guaranteed" if headline == "guaranteed" else "possible",
        _score_certificate(c, bare, k, place if reserved else None, shut),
        k,
        weight=c.weight,
        rank_constant=c.constant,
        depth=c.depth,
        reserve=place,
        value=c.weight,
        lower_bar=lower,
        upper_bar=upper,
        base_bar=c.others(),
        tie=tie,
        last_rank_over_bar=over,
        last_possible_rank=last_possible,
        guaranteed_ranks=sure,
        base_guaranteed_ranks=ranks_without_own(c, k),
        possible_above_weight=lower / (1 + c.own_bonus / c.weight),
        guaranteed_above_weight=guaranteed_above(c, k),
        possible_up_to_constant=LARGEST_CONSTANT if c.constant is not None and c.best() > lower else None,
        guaranteed_up_to_constant=guaranteed_up_to(c, k),
        sparse=not any(r.least >= k for r in c.rivals),
        vacuous=scope is not None and scope <= k,
        leg_only_impossible=scope is not None
        and any(r.leg in endless and recipe.depths.get(r.leg, _DEPTH) >= scope for r in c.rivals),
        witness=_witness(c, k) if bare != "boost-only" and not shut else None,
        counter_witness=_counter_witness(c, k) if bare == "possible" else None,
    )


def rank_scaled(found: LegReach, step: Fraction) -> LegReach:
    """Return ``found``, worked out as weighted RRF with the constant w * ``step``, in the recipe's own numbers.

    The weight that guarantees is left out: it also scales the leg's rivals, and more of it is not always better.
    """
    if not found.called:
        return found
    weight, bar = found.weight, found.lower_bar
    room = 1 / bar - step if bar else None  # possible: r/w is below this
    last = None if room is None else math.ceil(room + 1 + step - 1 / weight) - 1
    above = Fraction(0) if room is None else 1 / room if room > 0 else None
    return replace(
        found,
        rank_constant=step + 1,
        certificate=f"As weighted RRF with the constant w(k - 1) = {plain(weight * step)}. {found.certificate}",
        possible_above_weight=above,
        guaranteed_above_weight=None,
        possible_up_to_constant=LARGEST_CONSTANT if last is None else last if last >= 1 else None,
        guaranteed_up_to_constant=None,
    )


def reordered(found: LegReach, reranker: str, k: int, depth: int) -> LegReach:
    """Return ``found``, worked out for what the reranker is shown, for the top ``k`` of what it makes of it.

    It may put any of the ``depth`` first, so what gets that far is possible; guaranteed only where it all is shown.
    """
    if not found.called:
        return found

    def after(class_: ReachClass) -> ReachClass:
        return "possible" if class_ == "guaranteed" and k < depth else class_

    note = f"The reranker {reranker} orders the first {depth} anew, so this is about the top {max(k, depth)}. "
    return replace(
        found,
        k=k,
        class_=after(found.class_),
        class_without_reserve=after(found.class_without_reserve),
        class_with_prior=after(found.class_with_prior),
        class_with_prior_without_reserve=after(found.class_with_prior_without_reserve),
        class_with_best_prior=after(found.class_with_best_prior),
        class_when_sparse=after(found.class_when_sparse),
        guaranteed_ranks=0 if k < depth else found.guaranteed_ranks,
        base_guaranteed_ranks=0 if k < depth else found.base_guaranteed_ranks,
        guaranteed_above_weight=None if k < depth else found.guaranteed_above_weight,
        guaranteed_up_to_constant=None if k < depth else found.guaranteed_up_to_constant,
        certificate=note + found.certificate,
        witness=None if k < depth else found.witness,
        counter_witness=None if k < depth else found.counter_witness,
    )


def _score_contest(
    recipe: Recipe,
    leg: str,
    constants: Mapping[str, float],
    k: int,
    scope: int | None,
    sizes: Mapping[str, int],
) -> ScoreContest:
    def constant(name: str) -> Fraction | None:
        return as_written(constants[name]) if recipe.fusion == "scored" and name == _RANKED else None

    def sure(name: str) -> bool:
        return not (recipe.fusion == "scored" and name == _MEEK)

    rivals = []
    for name in constants:
        depth = recipe.depths.get(name, _DEPTH)
        if name != leg:
            # the studied memory is in no other list, so a list is at most the rest of the scope
            cap = min(depth, sizes.get(name, depth), depth if scope is None else scope - 1)
            rivals.append(Rival(name, as_written(recipe.weights[name]), constant(name), min(k, cap), cap, sure(name)))
    depth = recipe.depths.get(leg, _DEPTH)
    bonus = as_written(recipe.exact_bonus) * as_written(recipe.weights[_MEEK]) if _MEEK in constants else Fraction(0)
    return ScoreContest(
        leg,
        as_written(recipe.weights[leg]),
        constant(leg),
        sure(leg),
        depth if scope is None else min(depth, scope),
        tuple(rivals),
        scope,
        bonus=Fraction(0) if leg == _MEEK else bonus,
        own_bonus=bonus if leg == _MEEK else Fraction(0),
    )


def _score_certificate(c: ScoreContest, bare: ReachClass, k: int, place: int | None, shut: bool) -> str:
    said = [] if place is None else [f"The reserve gives the first memory of {c.leg} place {place} or better of {k}."]
    lower, upper = c.lower_bar(k), c.upper_bar(1, k)
    earns = f"The first place of {c.leg} earns at most {plain(c.best())}"
    if shut:
        said.append(f"The only place belongs to the first memory of another leg, so {c.leg} brings in none of its own.")
    elif bare == "guaranteed" and c.outnumbers(1, k, worst=False):
        said.append(f"Fewer than {k} other memories can be ahead of the first of {c.leg}.")
    elif bare == "guaranteed":
        said.append(f"{earns} by rank, and {k} rivals cannot all have more than {plain(upper)} = {float(upper):.5f}.")
    elif bare == "boost-only":
        said.append(f"{earns}; the {k} best of the others have at least {plain(lower)} each, and a tie is not enough.")
    else:
        said.append(
            f"{earns}; the others' top {k} is sure of {plain(lower)} only, and {k} rivals can all have up to "
            f"{plain(upper)}: the scores decide, so count on the corpus what gets in."
        )
    return " ".join(said)
