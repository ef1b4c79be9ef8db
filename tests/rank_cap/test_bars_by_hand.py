"""Weights that a first place needs, worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from semmem.model.recipe import Recipe, recipe
from semmem.rank_cap import reach


def two_legs(lexical: float = 0, **more: Any) -> Recipe:
    """Return a recipe of two legs, without prior; the rank constant of dense is 0."""
    return recipe("hybrid", rank_constants={"lexical": lexical, "dense": 0}, prior=False, reserve={}, **more)


def test_no_weight_guarantees_a_scaled_place_that_the_places_behind_it_may_equal() -> None:
    # two places: the lexical leg fills one, and the second of dense may score as much as its first
    leg = reach(recipe("convex", depths={"lexical": 1}), 2).regimes["any"].legs["dense"]
    assert (leg.class_, leg.guaranteed_above_weight) == ("possible", None)


def test_the_weight_that_guarantees_a_lexical_place_counts_the_bonus_of_the_competitor() -> None:
    # w earned by the first against 1 of dense, w/2 of the second lexical place and the bonus w/4: w > 4
    plan = two_legs(weights={"lexical": 1, "dense": 1}, exact_bonus=0.25)
    leg = reach(plan, 1).regimes["any"].legs["lexical"]
    assert (leg.class_, leg.guaranteed_above_weight) == ("possible", Fraction(4))


def test_the_bonus_raises_the_bar_of_a_leg_and_may_lift_its_own_memory_over_it() -> None:
    # the first of lexical earns 1/2, and 1/8 more with the bonus; dense with the bonus needs 1/(c + 1) > 3/8
    plan = two_legs(lexical=1, exact_bonus=0.25, weights={"lexical": 1, "dense": 1})
    leg = reach(plan, 1).regimes["any"].legs["dense"]
    assert (leg.lower_bar, leg.base_bar, leg.possible_up_to_constant) == (Fraction(1, 2), Fraction(5, 8), 1)


def test_a_constant_at_which_the_first_place_ties_does_not_guarantee_it() -> None:
    # 6/(c + 1) - 6/(c + 2) > 1 holds for c = 0; at c = 1 both sides are 1
    leg = reach(two_legs(weights={"lexical": 1, "dense": 6}), 1).regimes["any"].legs["dense"]
    assert (leg.class_, leg.guaranteed_up_to_constant) == ("guaranteed", 0)


def test_a_leg_of_one_memory_has_nothing_behind_it() -> None:
    # w > 1 with one memory; with another one behind it w > 1 + w/2
    plan = two_legs(weights={"lexical": 1, "dense": 2}, depths={"dense": 1})
    leg = reach(plan, 1).regimes["any"].legs["dense"]
    assert (leg.class_, leg.guaranteed_above_weight) == ("guaranteed", Fraction(1))


def test_a_witness_has_the_bonus_where_only_that_lifts_it_over_the_bar() -> None:
    # .9 of dense against 1 of lexical, and .9 + .25 with every word of the question
    plan = two_legs(weights={"lexical": 1, "dense": 0.9}, exact_bonus=0.25)
    leg = reach(plan, 1).regimes["any"].legs["dense"]
    assert leg.class_ == "possible"
    assert leg.witness is not None
    assert leg.witness.exact == ("only-dense",)
