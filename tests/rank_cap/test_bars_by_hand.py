"""Weights that a first place needs, worked out by hand."""

from __future__ import annotations

from fractions import Fraction

from semmem.model.recipe import recipe
from semmem.rank_cap import reach


def test_no_weight_guarantees_a_scaled_place_that_the_places_behind_it_may_equal() -> None:
    # two places: the lexical leg fills one, and the second of dense may score as much as its first
    leg = reach(recipe("convex", depths={"lexical": 1}), 2).regimes["any"].legs["dense"]
    assert (leg.class_, leg.guaranteed_above_weight) == ("possible", None)


def test_the_weight_that_guarantees_a_lexical_place_counts_the_bonus_of_the_competitor() -> None:
    # w earned by the first against 1 of dense, w/2 of the second lexical place and the bonus w/4: w > 4
    plan = recipe(
        "hybrid",
        weights={"lexical": 1, "dense": 1},
        rank_constants={"lexical": 0, "dense": 0},
        exact_bonus=0.25,
        prior=False,
    )
    leg = reach(plan, 1).regimes["any"].legs["lexical"]
    assert (leg.class_, leg.guaranteed_above_weight) == ("possible", Fraction(4))
