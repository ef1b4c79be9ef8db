"""Reach in a fusion that reads scores: what bounded shares alone can prove, and nothing more.

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
from semmem.reach_bounds import agreed_places, as_written, exact_floor
from semmem.reach_report import LegReach, ReachClass, Witness
from semmem.reach_witness import plain
from semmem.score_bounds import (
    LARGEST_CONSTANT,
    Rival,
    ScoreContest,
    guaranteed_above,
    guaranteed_up_to,
    last_over,
    ranks_without_own,
)

__all__ = ["rank_scaled", "reordered", "score_reach"]

_RANKED = "graph"
_MEEK = "lexical"
"""Of the scaled legs, the one whose first place may earn less than the weight in ``scored``."""
_DEPTH = 100
_NOTHING = 1e-9
"""A score next to nothing beside one of 1."""


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
    c = _contest(recipe, leg, constants, k, scope, sizes)
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
        _certificate(c, bare, k, place if reserved else None, shut),
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


def _contest(
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


def _witness(c: ScoreContest, k: int) -> Witness:
    """Lists and scores that let the memory in: the others agree on a first, and the rest score next to nothing."""
    only = f"only-{c.leg}"
    rankings: dict[str, tuple[str, ...]] = {}
    scores: dict[str, tuple[float, ...]] = {}
    heads = c.heads() if k == 1 else {}
    for r in c.rivals:
        if r.least:
            nothing = -1.0 if r.leg == "dense" else _NOTHING
            rankings[r.leg] = tuple(f"m{heads.get(r.leg, 0) + i}" for i in range(1, r.least + 1))
            scores[r.leg] = (1.0 if r.sure or k > 1 else nothing, *[nothing] * (r.least - 1))
    rankings[c.leg], scores[c.leg] = (only,), (1.0,)
    most = {_MEEK: 2.0} if not all((c.sure, *(r.sure for r in c.rivals))) else {}  # so half of it is 1
    return Witness(only, True, rankings, (only,) if c.own_bonus and c.weight <= c.lower_bar(k) else (), scores, most)


def _counter_witness(c: ScoreContest, k: int) -> Witness | None:
    """Lists and scores that keep the memory out, or None when this construction does not (which proves nothing).

    k rivals are first in every other scaled leg at once, and stand behind the memory in its own, close by.
    """
    only = f"only-{c.leg}"
    behind = min(k, c.depth - 2)  # and one more, last, for the least score
    close = Fraction(999, 1000)
    sums: list[Fraction] = []
    for i in range(1, k + 1):
        total = Fraction(0)
        for r in c.rivals:
            if i <= r.most:
                total += r.share(i) if r.constant is not None else r.weight
                total += c.bonus if r.leg == _MEEK else 0
        if i <= behind:
            total += c.own_bonus + c.weight * (close if c.constant is None else (c.constant + 1) / (c.constant + 1 + i))
        sums.append(total)
    if min(sums) <= c.weight:
        return None
    ids = [f"m{i}" for i in range(1, k + 1)]
    rankings = {r.leg: tuple(ids[: r.most]) for r in c.rivals}
    scores = {leg: (1.0,) * len(keys) for leg, keys in rankings.items()}
    rankings[c.leg] = (only, *ids[: max(behind, 0)], *(["last"] if c.depth > 1 else []))
    least = -1.0 if c.leg == "dense" else 0.0
    near = float(close) * (1.0 - least) + least
    scores[c.leg] = (1.0, *[near] * max(behind, 0), *([least] if c.depth > 1 else []))
    return Witness(only, False, rankings, tuple(ids) if c.bonus or c.own_bonus else (), scores)


def _certificate(c: ScoreContest, bare: ReachClass, k: int, place: int | None, shut: bool) -> str:
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
