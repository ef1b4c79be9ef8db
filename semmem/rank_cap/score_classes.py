"""Reach in a fusion that reads scores: what follows from bounds on the shares alone.

There are two kinds of legs. A *scaled* leg of weight w gives its first memory w (its best score is 1 after scaling; in
``scored`` the lexical leg may give less) and each later one anything from that down to 0. A *ranked* leg (the graph in
``scored``) gives rank r exactly w(k + 1)/(k + r). For a memory that only the studied leg found, at cut-off K:

* lower bar: the least that the K-th best of the others can score. For K >= 2 every scaled leg may name one and the
  same memory first and give the rest next to nothing, so only a ranked leg that returns K sets a bar, its K-th share.
  For K = 1 the first memory of each leg stands alone: the bar is the largest share that a first place is sure of;
* upper bar: the most that K competitors can all score. With equal scores K memories can be first in every scaled leg at
  once, so it is W, the sum of the other legs' weights, plus what the studied leg gives its competitors.

``value < lower``: never in (boost-only). ``value > upper``, or fewer than K competitors that could be ahead: always in
(guaranteed). Else ``possible``: some scores let it in, and whether those of a corpus do has to be counted there. A
share of 1 is the *best* a scaled leg can give, so a memory at a rank below the first may earn as much, or nothing. A
tie may go either way, as in ``classes``.

``ranges`` bound what a place earns before a question is asked, such as what the places of earlier lists earned. Then
the lower bar is the least share of another leg's K-th place, the upper bar the average of the most that the first K
places of all lists give; the memory itself has the most of its place against the one and the least against the other.
So *boost-only* and *guaranteed* hold for all lists whose places earn no less and no more.

Where the lists are known, so are their scores, and a place of a list earns one share, as in a fusion by rank. Then both
bars are those of ``classes``: the K-th share of another list is the least that the K-th best has, and K competitors
cannot all have more than the first K places of all lists give on average. The classes are those of lists with these
scores at these places, whichever memory stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from semmem.model.leg_scores import BONUS_LEG, MEEK_LEG, RANKED_LEG
from semmem.model.recipe import USUAL_DEPTH, Recipe
from semmem.rank_cap.bounds import LARGEST_CONSTANT, as_written
from semmem.rank_cap.guaranteed_slots import Facts, noise
from semmem.rank_cap.report import LegReach, ReachClass
from semmem.rank_cap.score_bounds import (
    Competitor,
    ScoreContest,
    guaranteed_above,
    guaranteed_up_to,
    last_over,
    last_possible,
    possible_above,
    ranks_without_own,
)
from semmem.rank_cap.witness import score_certificate, score_counter_witness, score_witness

__all__ = ["score_reach"]


def score_reach(recipe: Recipe, leg: str, constants: Mapping[str, float], facts: Facts) -> LegReach:
    """Return the reach of a called leg of a recipe whose fusion is ``convex``, ``tm2c2`` or ``scored``."""
    c = _contest(recipe, leg, constants, facts)
    k, sure_places = facts.k, facts.kept
    reserve = facts.reserved(recipe, leg, {r.leg: (r.least, r.most) for r in c.competitors})
    free = sure_places - reserve.others
    floor = facts.floor
    lower, upper = c.lower_bar(), c.upper_bar(1, k)
    over = last_possible(c)
    surely = facts.all_shown or c.guaranteed(1, sure_places)
    bare: ReachClass = "guaranteed" if surely else "possible" if over else "boost-only"
    last = 0 if reserve.shut else max(over, int(reserve.place is not None))
    sure = 0
    while sure < min(free, c.depth) and c.guaranteed(sure + 1, free):
        sure += 1
    sure = facts.sure_ranks(leg, max(sure, int(reserve.sure)))
    headline: ReachClass = "guaranteed" if sure else "possible" if last else "boost-only"
    tie: Literal["lower_bar", "upper_bar"] | None = None
    if lower and c.ties(c.own_most * c.best(), c.competitor_least * lower):
        tie = "lower_bar"
    elif c.constant is not None and c.ties(c.best(), upper) and not c.outnumbers(1, k, worst=False):
        tie = "upper_bar"

    # a witness is made of scores of its own: where the scores are known it would show nothing
    open_ = facts.plain and not facts.all_shown and not reserve.shut and not c.known
    return LegReach(
        leg,
        headline,
        bare,
        reserve.class_of(c, floor, free),
        c.class_of(floor, sure_places),
        reserve.class_of(c, 1 / floor if floor else None, free),
        "guaranteed" if headline == "guaranteed" else "possible",
        score_certificate(c, bare, reserve, facts),
        k,
        weight=c.weight,
        rank_constant=c.constant,
        depth=c.depth,
        reserve=recipe.reserve.get(leg),
        value=c.share(),
        lower_bar=lower,
        upper_bar=upper,
        base_bar=c.others(),
        tie=tie,
        last_rank_over_bar=0 if c.best() <= lower else c.depth if c.loose else last_over(c, lower),
        last_possible_rank=last,
        guaranteed_ranks=sure,
        base_guaranteed_ranks=ranks_without_own(c, sure_places) if sure_places else 0,
        possible_above_weight=possible_above(c, lower),
        guaranteed_above_weight=guaranteed_above(c, k) if sure_places >= k else None,
        possible_up_to_constant=LARGEST_CONSTANT if c.constant is not None and c.best() > lower else None,
        guaranteed_up_to_constant=guaranteed_up_to(c, k) if sure_places >= k else None,
        sparse=all(r.kth is None for r in c.competitors),
        vacuous=facts.scope is not None and facts.scope <= k,
        leg_only_impossible=facts.scope is not None
        and any(r.leg in facts.endless and recipe.depths.get(r.leg, USUAL_DEPTH) >= facts.scope for r in c.competitors),
        witness=score_witness(c, k, tied=tie == "lower_bar") if open_ and bare != "boost-only" else None,
        counter_witness=score_counter_witness(c, k) if facts.plain and bare == "possible" and not c.known else None,
    )


def _contest(recipe: Recipe, leg: str, constants: Mapping[str, float], facts: Facts) -> ScoreContest:
    def constant(name: str) -> Fraction | None:
        return as_written(constants[name]) if recipe.fusion == "scored" and name == RANKED_LEG else None

    def sure(name: str) -> bool:
        return not (recipe.fusion == "scored" and name == MEEK_LEG)

    def shares(name: str) -> tuple[tuple[Fraction, ...] | None, tuple[Fraction, ...] | None]:
        known = (
            None
            if constant(name) is not None
            else facts.shares(name, max(recipe.depths.get(name, USUAL_DEPTH), facts.k + 1))
        )
        if known is None:
            return None, None
        most, least = (tuple(weights[name] * as_written(share) for share in of) for of in known)
        return most, least

    weights = {name: as_written(recipe.weights[name]) for name in constants}
    competitors = [
        Competitor(
            name, weights[name], constant(name), *facts.rows(recipe, name, other=True), sure(name), *shares(name)
        )
        for name in constants
        if name != leg
    ]
    most, least = shares(leg)
    _, depth, kth = facts.rows(recipe, leg, other=False)
    unit = as_written(recipe.exact_bonus) if BONUS_LEG in constants else Fraction(0)
    bonus = unit * weights.get(BONUS_LEG, Fraction(0))
    return ScoreContest(
        leg=leg,
        weight=weights[leg],
        constant=constant(leg),
        sure=sure(leg),
        shares=most,
        sure_shares=least,
        depth=depth,
        competitors=tuple(competitors),
        k=facts.k,
        scope=facts.scope,
        unit=unit if leg == BONUS_LEG else Fraction(0),
        kth=kth,
        slack=noise(weights, bonus),
        **facts.bonuses(leg, bonus),
        **facts.factors(recipe, constants, leg),
    )
