"""Reach: what a leg can do to the top k, read off a recipe before any query is run.

A memory that only leg g found, at its rank r, scores ``v = w/(k_g + r)``. Two bars decide, both exact fractions:

* the lower bar, ``B_min = max over other legs that return k memories of w_s/(k_s + k)``: the k-th best of the others
  never scores less, and lists exist for which it scores no more. ``v < B_min``: it can never come in (boost-only);
* the upper bar, ``B_max = (sum of the first k terms of every other leg + first k terms of g without rank r) / k``: k
  memories that all beat v must share k*v, and k distinct memories cannot collect more. ``v > B_max``: guaranteed.

Between them some lists let it in (the witness) and, where the upper bar is tight, some keep it out (the
counter-witness). The upper bar is exact for k = 1; beyond, it is above the exact one where places are worth very
different amounts (by up to a quarter over all lists for k = 2), so ``guaranteed`` is always true, and ``possible`` with
no counter-witness may be guaranteed in truth. A tie goes by key, so it may go either way: it is ``possible``, and
neither ``boost-only`` nor ``guaranteed`` claims it.

The exact-match bonus is granted to all competitors for the upper bar and to none for the lower one; the memory itself
has it only where the studied leg is the lexical one, since what matches word for word is a lexical find.

Where the lists are known (``Lists``), the same two bars hold with what is known of them: the k-th memory of a list may
stand below rank k, because rows before it fold into one; a leg returns as many as it returned; and importance
multiplies by no less and no more than what was found. Folding takes rows away and adds none, so what fewer than k rows
can beat fewer than k memories can beat, and the upper bar stands as it is.

That is weighted RRF. ``rank-scaled`` is the same sum with other constants, so as exact; for the fusions that read
scores see ``score_classes``. Where a reranker orders the first memories anew, reach is asked of what it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from semmem.model.leg_scores import BONUS_LEG
from semmem.model.recipe import USUAL_DEPTH, Recipe
from semmem.rank_cap.bounds import LARGEST_CONSTANT, Base, Contest, as_written, last_where
from semmem.rank_cap.guaranteed_slots import Facts, noise
from semmem.rank_cap.report import LegReach, ReachClass
from semmem.rank_cap.witness import certificate, counter_witness, plain, witness

__all__ = ["leg_reach", "rank_scaled", "with_notes"]


def leg_reach(recipe: Recipe, leg: str, constants: Mapping[str, float], facts: Facts) -> LegReach:
    """Return the reach of a called leg of a recipe whose fusion is a sum by rank with ``constants``."""
    contest = _contest(recipe, leg, constants, facts)
    k, sure_places = facts.k, facts.kept
    others = {b.leg: (b.least, b.most) for b in contest.bases}
    reserve = facts.reserved(recipe, leg, others)
    free = sure_places - reserve.others
    floor = facts.floor

    value, lower, upper = contest.value(), contest.lower_bar(), contest.upper_bar(1, k)
    over = contest.last_possible_rank()
    surely = facts.all_shown or contest.guaranteed(1, sure_places)
    bare: ReachClass = "guaranteed" if surely else "possible" if over else "boost-only"
    last_possible = 0 if reserve.shut else max(over, int(reserve.place is not None))
    sure = last_where(min(free, contest.depth), lambda r: contest.guaranteed(r, free))
    sure = facts.sure_ranks(leg, max(sure, int(reserve.sure)))
    headline: ReachClass = "guaranteed" if sure else "possible" if last_possible else "boost-only"
    tie: Literal["lower_bar", "upper_bar"] | None = None
    if lower and contest.ties(contest.own_most * contest.best_value(), contest.competitor_least * lower):
        tie = "lower_bar"
    elif contest.ties(value, upper) and not contest.outnumbers(1, k):
        tie = "upper_bar"

    tails = contest.tails()
    shown = facts.plain and not facts.all_shown and not reserve.shut and bare != "boost-only"
    return LegReach(
        leg,
        headline,
        bare,
        reserve.class_of(contest, floor, free),
        contest.class_of(floor, sure_places),
        reserve.class_of(contest, 1 / floor if floor else None, free),
        "guaranteed" if headline == "guaranteed" else "possible",
        certificate(contest, bare, reserve, facts),
        k,
        weight=contest.weight,
        rank_constant=contest.constant,
        depth=contest.depth,
        reserve=recipe.reserve.get(leg),
        value=value,
        lower_bar=lower,
        upper_bar=upper,
        base_bar=contest.base_bar(k),
        tie=tie,
        last_rank_over_bar=contest.last_rank_over_bar(),
        last_possible_rank=last_possible,
        guaranteed_ranks=sure,
        base_guaranteed_ranks=last_where(
            min(sure_places, contest.depth),
            lambda r: contest.value(r) > contest.base_bar(sure_places - r + 1) or contest.outnumbers(r, sure_places),
        ),
        possible_above_weight=contest.possible_above_weight(),
        guaranteed_above_weight=contest.guaranteed_above_weight() if sure_places >= k else None,
        possible_up_to_constant=contest.possible_up_to_constant(),
        guaranteed_up_to_constant=contest.guaranteed_up_to_constant() if sure_places >= k else None,
        sparse=not tails,
        vacuous=facts.scope is not None and facts.scope <= k,
        leg_only_impossible=facts.scope is not None
        and any(b.leg in facts.endless and recipe.depths.get(b.leg, USUAL_DEPTH) >= facts.scope for b in contest.bases),
        witness=witness(leg, contest.bases, k, tails, value <= lower) if shown else None,
        counter_witness=counter_witness(
            leg,
            contest.weight,
            contest.constant,
            contest.depth,
            contest.bases,
            k,
            contest.bonus,
        )
        if facts.plain and bare == "possible"
        else None,
    )


def _contest(recipe: Recipe, leg: str, constants: Mapping[str, float], facts: Facts) -> Contest:
    weights = {name: as_written(recipe.weights[name]) for name in constants}
    exact = {name: as_written(constant) for name, constant in constants.items()}
    firsts = {name: weights[name] / (exact[name] + 1) for name in constants}
    bases = [
        Base(name, weights[name], exact[name], *facts.rows(recipe, name, other=True))
        for name in constants
        if name != leg
    ]
    _, depth, kth = facts.rows(recipe, leg, other=False)
    unit = as_written(recipe.exact_bonus) if BONUS_LEG in constants else Fraction(0)
    bonus = unit * firsts.get(BONUS_LEG, Fraction(0))
    return Contest(
        leg=leg,
        weight=weights[leg],
        constant=exact[leg],
        depth=depth,
        bases=tuple(bases),
        k=facts.k,
        scope=facts.scope,
        unit=unit if leg == BONUS_LEG else Fraction(0),
        kth=kth,
        slack=noise(firsts, bonus),
        **facts.bonuses(leg, bonus),
        **facts.factors(recipe, constants, leg),
    )


def rank_scaled(result: LegReach, step: Fraction) -> LegReach:
    """Return ``result``, worked out as weighted RRF with the constant w * ``step``, in the recipe's own numbers.

    The weight that guarantees is left out: it also scales the leg's competitors, and more of it is not always better.
    """
    if not result.called:
        return result
    weight, bar = result.weight, result.lower_bar
    room = 1 / bar - step if bar else None  # possible: r/w is below this
    last = None if room is None else math.ceil(room + 1 + step - 1 / weight) - 1
    above = Fraction(0) if room is None else 1 / room if room > 0 else None
    return replace(
        result,
        rank_constant=step + 1,
        certificate=f"As weighted RRF with the constant w(k - 1) = {plain(weight * step)}. {result.certificate}",
        possible_above_weight=above,
        guaranteed_above_weight=None,
        possible_up_to_constant=LARGEST_CONSTANT if last is None else last if last >= 1 else None,
        guaranteed_up_to_constant=None,
    )


def with_notes(result: LegReach, k: int, notes: Sequence[str]) -> LegReach:
    """Return ``result``, computed for the list before a later step, for the top ``k`` after that step.

    ``notes`` say what the step does. No witness is shown where the step decides.
    """
    last = result.k == k
    return replace(
        result,
        k=k,
        certificate=" ".join([*notes, result.certificate]),
        witness=result.witness if last else None,
        counter_witness=result.counter_witness if last else None,
    )
