"""What else moves a class: importance, the exact bonus, depth, scope, and places reserved for others."""

from __future__ import annotations

from fractions import Fraction

import pytest

from semmem.model.recipe import RECIPES, recipe
from semmem.rank_cap import reach, reach_in, reach_of
from semmem.rank_cap.places import Listed, Lists
from semmem.rank_cap.report import LegReach


def graph(weight: float, constant: float, k: int, base: float = 60.0) -> LegReach:
    return reach_of((1, 1, weight), (base, base, constant), k).regimes["any"].legs["graph"]


def test_importance_moves_the_threshold_from_610_to_1245() -> None:
    # k = 60, cut-off 10: 61/70 = .871; x .7 = .610, / .7 = 1.245
    assert graph(0.62, 60, 10).class_with_best_prior == "possible"
    assert graph(0.60, 60, 10).class_with_best_prior == "boost-only"
    assert graph(1.24, 60, 10).class_with_prior == "boost-only"
    assert graph(1.25, 60, 10).class_with_prior == "possible"


def test_a_reserved_leg_is_guaranteed_whatever_the_importance() -> None:
    leg = reach(RECIPES["default"], 5).regimes["unnamed"].legs["lexical"]
    assert (leg.class_with_prior, leg.class_with_prior_without_reserve) == ("guaranteed", "boost-only")


def test_a_recipe_without_prior_has_one_class() -> None:
    leg = reach(recipe("seed", prior=False, weights={"graph": 0.9}), 10).regimes["any"].legs["graph"]
    assert leg.class_ == leg.class_with_prior == leg.class_with_best_prior == "possible"


def test_the_exact_bonus_of_the_competitors_raises_the_upper_bar() -> None:
    plain = reach(recipe("default-0.1", reserve={}), 5).regimes["named"].legs["graph"]
    bonus = reach(recipe("default-0.1", reserve={}, exact_bonus=2.0), 5).regimes["named"].legs["graph"]
    assert bonus.upper_bar - plain.upper_bar == Fraction(2, 61)
    assert bonus.lower_bar == plain.lower_bar
    assert (
        reach(recipe("default-0.1", reserve={}, exact_bonus=10), 5).regimes["named"].legs["graph"].class_
        == "guaranteed"
    )
    # .35 against .1333 + 10/61 = .2972; with k_g = 1 .175 against .0951 + .1639 = .259
    one = recipe("default-0.1", reserve={}, exact_bonus=10, rank_constants={"graph": 1})
    assert reach(one, 5).regimes["any"].legs["graph"].class_ == "possible"


def test_the_exact_bonus_of_the_leg_itself_counts_in_the_numbers_that_would_open_it() -> None:
    def lexical(weight: float, constant: float = 60.0) -> LegReach:
        numbers = {"weights": {"lexical": weight}, "rank_constants": {"lexical": constant}}
        found = reach(recipe("hybrid", reserve={}, exact_bonus=0.5, **numbers), 10)  # type: ignore[arg-type]
        return found.regimes["any"].legs["lexical"]

    leg = lexical(0.5)
    assert leg.possible_above_weight == Fraction(61, 105)  # 1.5 w/61 = 1/70
    assert [lexical(weight).class_ for weight in (0.58, 0.582)] == ["boost-only", "possible"]
    assert leg.possible_up_to_constant == 51  # .75/(51 + 1) > 1/70 > .75/(52 + 1)
    assert [lexical(0.5, constant).class_ for constant in (51, 52)] == ["possible", "boost-only"]


def test_a_leg_that_is_off_is_unreachable() -> None:
    for changed in (recipe("default", weights={"graph": 0}), recipe("default", depths={"graph": 0})):
        found = reach(changed, 10)
        for regime in found.regimes.values():
            assert regime.legs["graph"].class_ == "unreachable"
            assert regime.legs["graph"].class_at(1) == "unreachable"
        assert found.worst == "unreachable"
    absent = reach(RECIPES["hybrid"], 10, also=("graph",)).regimes["any"].legs["graph"]
    assert absent.class_ == "unreachable"
    assert absent.certificate == "The leg graph is not part of the recipe, so it returns nothing."


def test_a_depth_caps_the_ranks_that_can_enter() -> None:
    legs = reach(recipe("seed", rank_constants={"graph": 2}, depths={"graph": 7}), 10).regimes["any"].legs
    assert (legs["graph"].last_rank_over_bar, legs["graph"].last_possible_rank) == (7, 7)
    assert legs["graph"].class_at(8) == "unreachable"
    # a graph of 7 memories cannot fill the top 10, so the other legs face only each other: 1/61 > 1/70
    assert legs["lexical"].class_ == "possible"


@pytest.mark.parametrize("name", ["lexical", "dense", "graph"])
def test_a_single_leg_is_guaranteed_down_to_the_cut_off(name: str) -> None:
    leg = reach(RECIPES[name], 10).regimes["any"].legs[name]
    assert (leg.class_, leg.guaranteed_ranks, leg.last_possible_rank, leg.sparse) == ("guaranteed", 10, 10, True)
    assert [leg.class_at(r) for r in (10, 11)] == ["guaranteed", "boost-only"]
    # a memory of importance 0 at rank 1 (.7/61) is behind ten of importance 1 (1/71)
    assert leg.class_with_prior == "possible"
    # the bounded prior: .992/61 stays before an importance of 1 at rank 2 (1/62)
    assert reach(recipe(name, prior_floor=None), 10).regimes["any"].legs[name].class_with_prior == "guaranteed"


def test_short_lists_let_anything_in() -> None:
    sparse = reach(RECIPES["seed"], 10, base_sizes={"lexical": 9, "dense": 9}).regimes["any"].legs["graph"]
    assert (sparse.class_, sparse.sparse, sparse.lower_bar) == ("possible", True, 0)
    full = reach(RECIPES["seed"], 10, base_sizes={"lexical": 9, "dense": 10}).regimes["any"].legs["graph"]
    assert (full.class_, full.sparse, full.class_when_sparse) == ("boost-only", False, "possible")
    few = reach(RECIPES["seed"], 10, base_sizes={"lexical": 4, "dense": 5}).regimes["any"].legs["graph"]
    assert few.class_ == "guaranteed"  # at most 9 others can be ahead
    assert few.certificate == "Fewer than 10 other memories can be ahead of the first of graph."


def test_a_scope_no_larger_than_the_cut_off_is_vacuous() -> None:
    leg = reach(RECIPES["seed"], 10, scope_size=10).regimes["any"].legs["graph"]
    assert (leg.class_, leg.vacuous, leg.leg_only_impossible) == ("guaranteed", True, True)
    leg = reach(RECIPES["seed"], 10, scope_size=11).regimes["any"].legs["graph"]
    assert (leg.class_, leg.vacuous) == ("boost-only", False)
    assert reach(RECIPES["seed"], 10, scope_size=0).worst == "unreachable"


def test_in_a_scope_no_larger_than_the_cut_off_no_leg_has_a_full_list_of_others() -> None:
    # of ten memories nine are others: nobody's list sets a bar of ten
    leg = reach(RECIPES["seed"], 10, scope_size=10).regimes["any"].legs["graph"]
    assert (leg.lower_bar, leg.sparse, leg.possible_above_weight) == (0, True, 0)
    others = 2 * sum(Fraction(1, 60 + place) for place in range(1, 10))
    assert leg.upper_bar == (others + Fraction(7, 20) * sum(Fraction(1, 60 + place) for place in range(2, 11))) / 10


def test_where_all_importances_are_alike_they_change_no_class() -> None:
    # 65/61 = 1.0656 is above 1/61 + 65/62 = 1.0648, by less than a factor that only one side had would leave of it
    plan = recipe(
        "lexical", weights={"lexical": 1, "graph": 65}, rank_constants={"lexical": 60, "graph": 60}, prior=True
    )
    for importance in (0.0, 0.5, 1.0):
        lists = {
            leg: Listed.of(keys, importance=dict.fromkeys("ab", importance))
            for leg, keys in {"lexical": "b", "graph": "ab"}.items()
        }
        found = reach_in(plan, Lists.at(1, lists), 1).regimes["any"].legs
        assert (found["graph"].class_, found["lexical"].class_) == ("guaranteed", "boost-only")


def test_a_leg_that_returns_the_whole_scope_leaves_nothing_for_one_leg_alone() -> None:
    def alone(size: int, leg: str) -> bool:
        return reach(RECIPES["seed"], 10, scope_size=size).regimes["any"].legs[leg].leg_only_impossible

    assert alone(100, "graph")
    assert alone(100, "lexical")
    assert not alone(101, "graph")
    assert not alone(100, "dense")  # the lexical leg ends where nothing matches


def test_in_a_scope_of_one_more_than_the_cut_off_the_lists_must_share_their_last_memory() -> None:
    # 11 memories, one of them only in the graph: both legs end with the same tenth, 1/70 + 1/70
    leg = reach(RECIPES["seed"], 10, scope_size=11).regimes["any"].legs["graph"]
    assert leg.lower_bar == Fraction(2, 70)
    assert reach(RECIPES["seed"], 10, scope_size=12).regimes["any"].legs["graph"].lower_bar == Fraction(1, 70)


def test_a_place_reserved_for_another_leg_can_undo_a_guarantee() -> None:
    used = recipe("seed", rank_constants={"graph": 4}, reserve={"lexical": 4, "dense": 5})
    leg = reach(used, 10).regimes["any"].legs["graph"]
    # .35/5 = .07 clears the bar of ten, (.3057 + .3622)/10 = .0668; but two places are taken, and the bar of eight is
    # (2 (1/61 + .. + 1/68) + .35 (1/6 + .. + 1/13))/8 = (.2482 + .3138)/8 = .0703
    assert (leg.class_without_reserve, leg.class_, leg.guaranteed_ranks) == ("guaranteed", "possible", 0)
    assert leg.upper_bar == pytest.approx(0.0668, abs=1e-4)
    only_place = reach(recipe("seed", rank_constants={"graph": 0}, reserve={"lexical": 1}), 1)
    assert only_place.regimes["any"].legs["graph"].class_ == "boost-only"
    assert only_place.regimes["any"].legs["graph"].class_without_reserve == "guaranteed"


def test_under_the_worst_importance_too_places_of_others_can_undo_a_guarantee() -> None:
    # as above, times .99: .0693 clears the bar of ten, .0668, and not that of the eight that are left, .0703
    used = recipe("seed", rank_constants={"graph": 4}, reserve={"lexical": 4, "dense": 5}, prior_floor=0.99)
    leg = reach(used, 10).regimes["any"].legs["graph"]
    assert (leg.class_with_prior_without_reserve, leg.class_with_prior) == ("guaranteed", "possible")


def test_a_scope_is_the_deepest_that_a_leg_can_go() -> None:
    legs = reach(RECIPES["seed"], 5, scope_size=20).regimes["any"].legs
    assert [legs[leg].depth for leg in ("lexical", "dense", "graph")] == [20, 20, 20]
    # two of the nineteen others stand ahead of rank 3 of one leg: with one other leg of one memory that is all
    alone = reach(recipe("hybrid", depths={"dense": 1}), 4, scope_size=4).regimes["any"].legs["lexical"]
    assert (alone.depth, alone.guaranteed_ranks) == (4, 4)


def test_lists_that_are_short_give_their_competitors_less_to_share() -> None:
    leg = reach(RECIPES["seed"], 3, base_sizes={"lexical": 2, "dense": 2}).regimes["any"].legs["graph"]
    own = Fraction(7, 20) * (Fraction(1, 62) + Fraction(1, 63) + Fraction(1, 64))
    assert leg.upper_bar == (2 * (Fraction(1, 61) + Fraction(1, 62)) + own) / 3
