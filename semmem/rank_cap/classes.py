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
scores see ``score_bounds``. Where a reranker orders the first memories anew, reach is asked of what it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from semmem.model.leg_scores import BONUS_LEG, BY_RANK
from semmem.model.recipe import USUAL_DEPTH, Recipe
from semmem.rank_cap.bounds import RankContest, RankScaledContest
from semmem.rank_cap.contest import Contest, OtherLeg
from semmem.rank_cap.guaranteed_slots import Facts, GuaranteedSlots, noise
from semmem.rank_cap.report import LegReach, ReachClass
from semmem.rank_cap.score_bounds import ScoreContest
from semmem.rank_cap.shares import as_written, by_rank, earned

__all__ = ["leg_reach", "with_notes"]


def leg_reach(recipe: Recipe, leg: str, constants: Mapping[str, float], facts: Facts) -> LegReach:
    """Return the reach of a called leg of a recipe, whatever its fusion; ``constants`` are those of the called legs."""
    c = contest_of(recipe, leg, constants, facts)
    k, sure_places = facts.k, facts.kept
    slots = facts.reserved(recipe, leg, {other.leg: (other.least, other.most) for other in c.others})
    free = sure_places - slots.others
    floor = facts.floor
    over = c.last_possible_rank()
    surely = facts.all_shown or c.guaranteed(1, sure_places)
    bare: ReachClass = "guaranteed" if surely else "possible" if over else "boost-only"
    last_possible = 0 if slots.shut else max(over, int(slots.place is not None))
    sure = facts.sure_ranks(leg, max(c.guaranteed_ranks(free), int(slots.sure)))
    headline: ReachClass = "guaranteed" if sure else "possible" if last_possible else "boost-only"
    scope = facts.scope
    shown = facts.plain and not facts.all_shown and not slots.shut and bare != "boost-only"
    return LegReach(
        leg,
        headline,
        bare,
        slots.class_of(c, floor, free),
        c.class_of(floor, sure_places),
        slots.class_of(c, 1 / floor if floor else None, free),
        "guaranteed" if headline == "guaranteed" else "possible",
        _certificate(c, bare, slots, facts),
        k,
        weight=c.weight,
        rank_constant=c.constant,
        depth=c.depth,
        reserve=recipe.reserve.get(leg),
        value=c.earns.most(1),
        lower_bar=c.lower_bar(),
        upper_bar=c.upper_bar(1, k),
        base_bar=c.base_bar(k),
        tie=c.tie(),
        last_rank_over_bar=c.last_rank_over_bar(),
        last_possible_rank=last_possible,
        guaranteed_ranks=sure,
        base_guaranteed_ranks=c.ranks_without_own(sure_places),
        possible_above_weight=c.possible_above_weight(),
        guaranteed_above_weight=c.guaranteed_above_weight() if sure_places >= k else None,
        possible_up_to_constant=c.possible_up_to_constant(),
        guaranteed_up_to_constant=c.guaranteed_up_to_constant() if sure_places >= k else None,
        sparse=all(other.kth is None for other in c.others),
        vacuous=scope is not None and scope <= k,
        leg_only_impossible=scope is not None
        and any(o.leg in facts.endless and recipe.depths.get(o.leg, USUAL_DEPTH) >= scope for o in c.others),
        witness=c.witness() if shown else None,
        counter_witness=c.counter_witness() if facts.plain and bare == "possible" else None,
    )


def contest_of(recipe: Recipe, leg: str, constants: Mapping[str, float], facts: Facts) -> Contest[Any]:
    """Return the contest of ``leg`` in the fusion of ``recipe``, which is where fusions differ."""
    weights = {name: as_written(recipe.weights[name]) for name in constants}
    if recipe.fusion in BY_RANK:
        earns: Mapping[str, Any] = {
            name: by_rank(recipe.fusion, weights[name], as_written(constant)) for name, constant in constants.items()
        }
        kind: type[Contest[Any]] = RankScaledContest if recipe.fusion == "rank-scaled" else RankContest
    else:
        deep = facts.k + 1
        earns = {
            name: earned(
                recipe.fusion,
                name,
                weights[name],
                as_written(constant),
                facts.shares(name, max(recipe.depths.get(name, USUAL_DEPTH), deep)),
            )
            for name, constant in constants.items()
        }
        kind = ScoreContest
    firsts = {name: of.first for name, of in earns.items()}
    unit = as_written(recipe.exact_bonus) if BONUS_LEG in constants else Fraction(0)
    bonus = unit * firsts.get(BONUS_LEG, Fraction(0))
    _, depth, kth = facts.rows(recipe, leg, other=False)
    return kind(
        leg=leg,
        weight=weights[leg],
        earns=earns[leg],
        others=tuple(OtherLeg(n, earns[n], *facts.rows(recipe, n, other=True)) for n in constants if n != leg),
        depth=depth,
        k=facts.k,
        scope=facts.scope,
        unit=unit if leg == BONUS_LEG else Fraction(0),
        kth=kth,
        slack=noise(firsts, bonus),
        **facts.bonuses(leg, bonus),
        **facts.factors(recipe, constants, leg),
    )


def _certificate(c: Contest[Any], bare: ReachClass, slots: GuaranteedSlots, facts: Facts) -> str:
    """Return the sum, in words, that forces or forbids the outcome; for a leg in between, where it stands.

    What decides before any bar comes first: everything is shown, a guaranteed slot, or another leg's only place.
    """
    if facts.all_shown:
        said = "All that was found is shown."
    elif slots.shut:
        said = f"The only place belongs to the first memory of another leg, so {c.leg} brings in none of its own."
    else:
        slot = f"The reserve gives the first memory of {c.leg} place {slots.place} or better of {facts.k}."
        said = " ".join([*([] if slots.place is None else [slot]), _proof(c, bare, facts.kept)])
    return f"{c.preface} {said}" if c.preface else said


def _proof(c: Contest[Any], bare: ReachClass, kept: int) -> str:
    if bare == "guaranteed" and c.outnumbers(1, kept):
        return f"Fewer than {kept} other memories can be ahead of the first of {c.leg}."
    if bare == "guaranteed":
        return c.forces()
    return c.forbids() if bare == "boost-only" else c.leaves_open(tied=c.tie() == "lower_bar")


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
