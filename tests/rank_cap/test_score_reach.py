"""Reach in the fusions that read scores, and of rank-scaled and reranked recipes: by hand, and against random lists."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest

from semmem.fusion import rank_as, shares_of
from semmem.model.leg_scores import reads_scores
from semmem.model.recipe import RECIPES, Fusion, Recipe, recipe
from semmem.rank_cap import reach, reach_in
from semmem.rank_cap.places import Listed, Lists
from semmem.rank_cap.report import LegReach, Reach, Witness, describe
from semmem.rank_cap.several import class_of_find

SCALED: tuple[Fusion, ...] = ("convex", "tm2c2", "scored")
ONLY = "zzz"  # the last key of all: ties lose


def leg_of(chosen: Recipe, name: str, k: int, **sizes: Any) -> LegReach:
    return next(iter(reach(chosen, k, **sizes).regimes.values())).legs[name]


def classes(found: Reach) -> dict[str, dict[str, str]]:
    return {name: {leg: at.class_ for leg, at in regime.legs.items()} for name, regime in found.regimes.items()}


def is_in(
    chosen: Recipe,
    regime: str,
    k: int,
    rankings: Mapping[str, Sequence[str]],
    scores: Mapping[str, Sequence[float]],
    memory: str,
    exact: Sequence[str] = (),
    importance: Mapping[str, float] | None = None,
    most: Mapping[str, float] | None = None,
) -> bool:
    """Fuse for real and look whether ``memory`` is among the first ``k``."""
    fused = rank_as(
        chosen.fusion,
        rankings,
        scores,
        weights=chosen.weights_in(regime),
        rank_constants=chosen.constants(regime),
        planned=chosen.legs,
        most=most,
        importance=importance,
        prior_floor=chosen.floor(regime),
        exact=exact,
        exact_bonus=chosen.exact_bonus,
        reserve=chosen.reserve,
    )
    return memory in [f.key for f in fused[:k]]


def comes_out(chosen: Recipe, regime: str, k: int, witness: Witness) -> bool:
    lists, scores = witness.rankings, witness.scores
    return is_in(chosen, regime, k, lists, scores, witness.memory, witness.exact, most=witness.most)


# --- the recipes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["convex", "tm2c2"])
def test_two_equal_scaled_legs_are_possible_and_tie_for_the_only_place(name: str) -> None:
    both = {"lexical": "possible", "dense": "possible"}
    assert [classes(reach(RECIPES[name], k))["any"] for k in (1, 2, 5, 10)] == [both] * 4
    # k = 1: the first of the other leg earns .5 for sure, and this one no more than .5
    alone = leg_of(RECIPES[name], "dense", 1)
    assert (alone.lower_bar, alone.tie) == (Fraction(1, 2), "lower_bar")
    assert alone.certificate.endswith("exactly what place 1 of the others has at least; a tie goes by key.")
    less = leg_of(recipe(name, weights={"dense": 0.499}), "dense", 1)
    assert (less.class_, less.tie) == ("boost-only", None)


@pytest.mark.parametrize("name", ["convex", "tm2c2"])
@pytest.mark.parametrize(
    ("weight", "class_", "enters"), [(0.49999999999999, "possible", True), (0.49999999999, "boost-only", False)]
)
def test_what_is_below_the_bar_by_less_than_the_rounding_of_fusion_may_tie_too(
    name: str, weight: float, class_: str, enters: bool
) -> None:
    plan = recipe(name, weights={"dense": weight})
    assert leg_of(plan, "dense", 1).class_ == class_
    lists, scores = {"lexical": ["m"], "dense": ["a"]}, {"lexical": [1.0], "dense": [1.0]}
    assert is_in(plan, "any", 1, lists, scores, "a") == enters


def test_a_convex_leg_of_any_weight_is_possible_and_none_is_guaranteed() -> None:
    tiny = recipe("default-0.1", fusion="convex", reserve={}, weights={"graph": 0.001})
    leg = reach(tiny, 10).regimes["named"].legs["graph"]
    assert (leg.class_, leg.lower_bar, leg.last_possible_rank, leg.guaranteed_ranks) == ("possible", 0, 100, 0)
    assert (leg.value, leg.base_bar, leg.upper_bar) == (Fraction(1, 1000), 2, Fraction(2001, 1000))
    assert (leg.possible_above_weight, leg.guaranteed_above_weight) == (0, None)
    assert leg.certificate == (
        "The first place of graph earns at most 0.001; the others' top 10 is sure of 0 only, and 10 "
        "competitors can all have up to 2.001: the scores decide, so count on the corpus what gets in."
    )


def test_a_reserve_guarantees_in_a_scaled_fusion_as_in_any() -> None:
    found = reach(recipe("default", fusion="convex"), 5)
    assert found.worst == "guaranteed"
    assert found.regimes["named"].legs["graph"].class_without_reserve == "possible"


def test_the_reach_of_scored_is_by_rank_for_the_graph_and_by_bounds_for_the_text_legs() -> None:
    found = reach(RECIPES["scored"], 10)
    named, unnamed = found.regimes["named"].legs, found.regimes["unnamed"].legs
    # named: the tenth of the graph earns 12 x 3/12 = 3, more than a text leg can give: they bring in nothing alone
    assert {leg: at.class_ for leg, at in named.items()} == {
        "lexical": "boost-only",
        "dense": "boost-only",
        "graph": "guaranteed",
    }
    assert named["dense"].lower_bar == 3
    # unnamed: the tenth of the graph has 9/18 = .5, less than 1
    assert {leg: at.class_ for leg, at in unnamed.items()} == dict.fromkeys(("lexical", "dense", "graph"), "possible")
    assert unnamed["dense"].lower_bar == Fraction(1, 2)
    assert unnamed["graph"].upper_bar == 2 + Fraction(9, 19)


def test_how_many_ranks_of_a_ranked_leg_are_guaranteed_is_counted() -> None:
    # 36/(2 + r) against competitors at i with 36/(2 + i) + 2 (ties lose), ten places. r = 7: 4; competitors need 36/(2
    # + i) >= 2, so i <= 16, fifteen others: too many. So by hand: r = 4: 6, i <= 7, six others; r = 5: 5.143, i <= 9,
    # eight; r = 6: 4.5, i <= 12, eleven: too many. Five ranks are guaranteed.
    assert reach(RECIPES["scored"], 10).regimes["named"].legs["graph"].guaranteed_ranks == 5


def test_a_competitor_that_ties_can_keep_a_memory_of_a_ranked_leg_out() -> None:
    # 4 against 4 x 2/(1 + i) + 2: 4.67 at rank 2, exactly 4 at rank 3
    plan = recipe("scored", weights={"graph": 4.0}, rank_constants={"graph": 1.0}, regime_weights={})
    assert leg_of(plan, "graph", 2).class_ == "possible"
    assert leg_of(plan, "graph", 3).class_ == "guaranteed"
    lists = {"graph": [ONLY, "a", "b"], "lexical": ["a", "b"], "dense": ["a", "b"]}
    scores = {"graph": [1.0, 0.5, 0.2], "lexical": [1.0, 1.0], "dense": [1.0, 1.0]}
    assert not is_in(plan, "any", 2, lists, scores, ONLY)
    assert leg_of(recipe(plan, weights={"graph": 4.01}), "graph", 2).class_ == "guaranteed"


@pytest.mark.parametrize(("bonus", "said"), [(0.5, "guaranteed"), (1.5, "possible")])
def test_a_competitor_with_the_exact_bonus_can_keep_a_memory_of_a_ranked_leg_out(bonus: float, said: str) -> None:
    # 1 against 1/2 + .2 + .1 and a bonus of .1 or .3 more: .9 is less, 1.1 is not
    weights = {"graph": 1.0, "lexical": 0.2, "dense": 0.1}
    plan = recipe("scored", weights=weights, rank_constants={"graph": 0.0}, regime_weights={}, exact_bonus=bonus)
    assert leg_of(plan, "graph", 1).class_ == said
    lists, scores = {"graph": [ONLY, "a"], "lexical": ["a"], "dense": ["a"]}, {"lexical": [1.0], "dense": [1.0]}
    assert is_in(plan, "any", 1, lists, scores, ONLY, exact=["a"]) == (said == "guaranteed")
    assert is_in(plan, "any", 1, lists, scores, ONLY)


def test_a_first_lexical_place_may_be_worth_little_in_scored_so_a_light_leg_can_pass_it() -> None:
    plan = recipe("scored", weights={"dense": 0.1, "graph": 0.0}, regime_weights={})
    assert (leg_of(plan, "dense", 1).class_, leg_of(plan, "dense", 1).lower_bar) == ("possible", 0)
    lists, scores = {"lexical": ["a"], "dense": [ONLY]}, {"lexical": [1.0], "dense": [0.7]}
    assert is_in(plan, "any", 1, lists, scores, ONLY, most={"lexical": 40.0})  # 1/20 of the best there could be
    assert not is_in(plan, "any", 1, lists, scores, ONLY, most={"lexical": 2.0})


def test_the_weight_that_guarantees_a_ranked_leg_guarantees_it_from_there_on() -> None:
    # five competitors stand at ranks 2 to 6: w > w 3/8 + 2, so w > 3.2
    plan = recipe("scored", weights={"graph": 3.2}, rank_constants={"graph": 2.0}, regime_weights={})
    leg = leg_of(plan, "graph", 5)
    assert (leg.class_, leg.guaranteed_above_weight) == ("possible", Fraction(16, 5))
    assert leg_of(recipe(plan, weights={"graph": 3.21}), "graph", 5).class_ == "guaranteed"


def test_under_the_worst_importance_places_of_others_can_undo_the_guarantee_of_a_ranked_leg() -> None:
    # .7 x 12 = 8.4; competitors at ranks 2 and 3 may have 9 + 2 and 7.2 + 2: two ahead, and of three places one is left
    plan = recipe("scored", reserve={"lexical": 2, "dense": 3})
    leg = reach(plan, 3).regimes["named"].legs["graph"]
    assert (leg.class_with_prior_without_reserve, leg.class_with_prior) == ("guaranteed", "possible")


# --- rank-scaled -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 5, 10, 20, 50])
@pytest.mark.parametrize("weight", ["0.05", "0.2", "0.35", "0.8"])
def test_a_rank_scaled_leg_brings_in_its_ranks_below_weight_times_cut_off(weight: str, k: int) -> None:
    leg = leg_of(recipe("rank-scaled", weights={"graph": float(weight)}), "graph", k)
    bound = Fraction(weight) * k
    last = max(0, -(-bound.numerator // bound.denominator) - 1)  # the last whole rank below w K
    assert leg.last_rank_over_bar == last
    assert leg.class_ == ("possible" if last or bound == 1 else "boost-only")  # at w K = 1 it ties
    # 1 < w K
    assert (leg.possible_above_weight, leg.rank_constant) == (Fraction(1, k), 60)


def test_the_weight_that_opens_a_rank_scaled_leg_opens_it() -> None:
    # k = 10 with other constants: the others' tenth has 1/(60 + 10 - 1) = 1/69; 1/(40 + 1/w - 1) > 1/69 from w > 1/30
    odd = recipe("rank-scaled", rank_constants={"graph": 40.0})
    leg = leg_of(odd, "graph", 10)
    assert leg.possible_above_weight == Fraction(1, 30)
    assert leg_of(recipe(odd, weights={"graph": 0.0333}), "graph", 10).class_ == "boost-only"
    assert leg_of(recipe(odd, weights={"graph": 0.0334}), "graph", 10).class_ == "possible"
    # at w = .35: k - 1 + 1/.35 < 69, so k up to 67
    assert leg.possible_up_to_constant == 67
    for constant, expected in ((67.0, "possible"), (68.0, "boost-only")):
        assert leg_of(recipe(odd, rank_constants={"graph": constant}), "graph", 10).class_ == expected


def test_the_certificate_of_a_rank_scaled_leg_says_how_it_was_worked_out() -> None:
    leg = leg_of(RECIPES["rank-scaled"], "graph", 2)
    assert leg.class_ == "boost-only"
    assert leg.certificate.startswith("As weighted RRF with the constant w(k - 1) = 20.65. The first place of graph")


# --- a reranker --------------------------------------------------------------------------------------------------


def test_with_a_reranker_reach_is_of_what_it_is_shown() -> None:
    seed = RECIPES["seed"]
    assert leg_of(recipe(seed, rerank="composite"), "graph", 10).class_ == "boost-only"  # of 30, .35/61 < 1/90
    wide = leg_of(recipe(seed, rerank="composite", rerank_depth=200), "graph", 10)
    assert (wide.class_, wide.k) == ("possible", 10)  # .35/61 > 1/260: it is shown, and the reranker decides
    assert wide.certificate.startswith("The reranker composite orders the first 200 anew")


def test_no_lists_are_shown_that_let_a_memory_in_where_a_reranker_decides_what_is_returned() -> None:
    wide = recipe("seed", rerank="composite", rerank_depth=200)
    of_shown, of_returned = leg_of(wide, "graph", 200), leg_of(wide, "graph", 10)
    assert (of_shown.class_, of_returned.class_) == ("possible", "possible")
    assert of_shown.witness is not None
    assert of_shown.counter_witness is not None
    assert (of_returned.witness, of_returned.counter_witness) == (None, None)


def test_a_reranker_of_some_regimes_changes_the_reach_of_those_alone() -> None:
    plain = reach("default", 10)
    some = recipe("default", rerank="composite", rerank_regimes=["unnamed", "described"])
    found = reach(some, 10)
    for regime in ("named", "anchored"):
        assert found.regimes[regime] == plain.regimes[regime]
        assert found.regimes[regime].worst == "guaranteed"
    for regime in ("unnamed", "described"):
        assert found.regimes[regime] == reach(recipe("default", rerank="composite"), 10).regimes[regime]
        assert found.regimes[regime].worst == "possible"
    assert "no reranker" in found.assumptions
    every = recipe(some, rerank_regimes=["anchored", "described", "named", "unnamed"])
    assert "no reranker" not in reach(every, 10).assumptions


def test_a_reranker_that_is_shown_less_than_is_returned_orders_only_that() -> None:
    # .9/61 = .0148 is below 1/63, the third of a list, and above 1/70, the tenth
    few = recipe("seed", weights={"graph": 0.9}, rerank="composite", rerank_depth=3)
    assert (leg_of(few, "graph", 3).class_, leg_of(few, "graph", 10).class_) == ("boost-only", "possible")


def test_a_reranker_takes_back_what_the_reserve_guarantees_unless_all_it_is_shown_is_returned() -> None:
    chosen = recipe("default", rerank="composite", rerank_depth=30)
    assert reach(chosen, 10).worst == "possible"
    assert reach(chosen, 30).worst == "guaranteed"
    assert reach(chosen, 50).worst == "guaranteed"


# --- bounds that are easily wrong --------------------------------------------------------------------------------


def test_in_a_small_scope_the_others_must_share_their_first_memory() -> None:
    three = Recipe(
        "three", {"lexical": 0.5, "dense": 0.5, "graph": 0.8}, dict.fromkeys(("lexical", "dense", "graph"), 60.0)
    )
    convex = recipe(three, fusion="convex")
    # with one other memory in scope it is first in both: .5 + .5 > .8
    assert leg_of(convex, "graph", 1, scope_size=2).class_ == "boost-only"
    assert leg_of(convex, "graph", 1, scope_size=3).class_ == "possible"


def test_fewer_competitors_than_places_guarantee() -> None:
    # two of the other leg and one more of its own are three, and four could stand ahead of it
    small = recipe("convex", depths={"lexical": 2, "dense": 2})
    leg = leg_of(small, "dense", 4)
    assert (leg.class_, leg.guaranteed_ranks, leg.sparse) == ("guaranteed", 2, True)
    assert leg.certificate == "Fewer than 4 other memories can be ahead of the first of dense."
    assert leg_of(small, "dense", 3).class_ == "possible"


@pytest.mark.parametrize("fusion", ["rrf", "rank-scaled", "convex"])
def test_the_exact_bonus_of_those_behind_it_can_put_them_ahead(fusion: Fusion) -> None:
    chosen = recipe("hybrid", fusion=fusion, exact_bonus=1.0)
    leg = leg_of(chosen, "lexical", 3, base_sizes={"dense": 1})
    assert leg.class_ == "possible"
    lists = {"lexical": [ONLY, "a", "b", "c", "d"], "dense": ["e"]}
    scores = {"lexical": [1.0, 0.9, 0.9, 0.9, 0.0], "dense": [1.0]}
    assert not is_in(chosen, "any", 3, lists, scores, ONLY, exact=["a", "b", "c"])
    assert is_in(chosen, "any", 3, lists, scores, ONLY)


def test_a_rank_below_the_first_can_enter_since_those_before_it_may_score_the_same() -> None:
    lists = {"lexical": ["a", "b", ONLY, "y"], "dense": ["a", "x", "y", "q"]}
    scores = {"lexical": [1.0, 1.0, 0.9, 0.0], "dense": [1.0, 0.0, 0.0, 0.0]}
    assert leg_of(RECIPES["convex"], "lexical", 3).last_possible_rank == 100
    assert is_in(RECIPES["convex"], "any", 3, lists, scores, ONLY)
    assert not is_in(RECIPES["convex"], "any", 2, lists, scores, ONLY)


# --- against random lists ----------------------------------------------------------------------------------------

LEVELS = (0.0, 0.0, 1e-6, 0.3, 0.5, 0.95, 1.0, 1.0)


def some_recipe(draw: random.Random, fusion: Fusion) -> Recipe:
    names = draw.choice([("lexical", "dense"), ("lexical", "dense", "graph"), ("lexical", "graph"), ("dense", "graph")])
    depths = {name: draw.choice([1, 2, 3, 5, 6]) for name in names}
    places = {name: at for at, name in enumerate(draw.sample(names, len(names)), draw.choice([1, 2]))}
    return recipe(
        Recipe("random", {n: draw.choice([0.1, 0.35, 0.5, 1.0, 12.0]) for n in names}, dict.fromkeys(names, 60.0)),
        rank_constants={n: draw.choice([0.0, 2.0, 8.0]) for n in names},
        depths=depths,
        fusion=fusion,
        exact_bonus=draw.choice([0.0, 0.0, 0.5, 2.0]),
        reserve=draw.choice([{}, {}, places]),
    )


def some_lists(
    draw: random.Random, chosen: Recipe, leg: str, rank: int, k: int, count: int
) -> tuple[dict[str, list[str]], dict[str, list[float]]]:
    ids = [f"m{i}" for i in range(count)]
    lists: dict[str, list[str]] = {}
    for name in chosen.legs:
        depth = min(chosen.depths[name], count)
        size = draw.randint(min(k, depth), depth)
        if name == leg:
            size = draw.randint(rank - 1, chosen.depths[name] - 1)
        fresh = [f"own{i}" for i in range(6)] if name == leg else []
        # competitors at the head, in one order, are what most often decides
        lists[name] = ids[:size] if draw.random() < 0.4 else draw.sample([*ids, *fresh], size)
    lists[leg].insert(rank - 1, ONLY)
    scores: dict[str, list[float]] = {}
    for name, keys in lists.items():
        values = sorted((draw.choice(LEVELS) for _ in keys), reverse=True)
        low = -1.0 if name == "dense" and draw.random() < 0.5 else 0.0
        scores[name] = [low + (1 - low) * value for value in values]
    return lists, scores


@pytest.mark.slow
@pytest.mark.parametrize("fusion", [*SCALED, "rank-scaled"])
@pytest.mark.parametrize("seed", range(3))
def test_no_lists_contradict_a_class(fusion: Fusion, seed: int) -> None:
    draw = random.Random(f"{fusion} {seed}")
    seen: dict[str, set[bool]] = {"boost-only": set(), "possible": set(), "guaranteed": set()}
    for _ in range(80):
        chosen, k = some_recipe(draw, fusion), draw.choice([1, 2, 3])
        leg = draw.choice(chosen.legs)
        found = leg_of(chosen, leg, k)
        for _ in range(12):
            rank = draw.randint(1, min(k + 1, chosen.depths[leg]))
            lists, scores = some_lists(draw, chosen, leg, rank, k, 8)
            exact = draw.choice([[], lists.get("lexical", []), [m for m in lists.get("lexical", []) if m != ONLY]])
            entered = is_in(chosen, "any", k, lists, scores, ONLY, exact)
            said = found.class_at(rank)
            seen[said].add(entered)
            if said == "boost-only":
                assert not entered, (chosen, k, leg, rank, lists, scores)
            elif said == "guaranteed":
                assert entered, (chosen, k, leg, rank, lists, scores, exact)
            if rank > 1:
                continue
            for mine, other, its in ((0.0, 1.0, found.class_with_prior), (1.0, 0.0, found.class_with_best_prior)):
                prior = {m: other for keys in lists.values() for m in keys} | {ONLY: mine}
                with_prior = is_in(chosen, "any", k, lists, scores, ONLY, exact, prior)
                assert with_prior or its != "guaranteed" or other == 0, (chosen, k, leg, lists, scores, exact)
                if not chosen.reserve:
                    assert not with_prior or its != "boost-only", (chosen, k, leg, lists, scores, exact)
    assert seen == {"boost-only": {False}, "possible": {True, False}, "guaranteed": {True}}


@pytest.mark.parametrize("fusion", SCALED)
def test_every_witness_and_counter_witness_comes_out_of_the_real_fusion_as_it_says(fusion: Fusion) -> None:
    draw = random.Random(fusion)
    shown = 0
    for _ in range(250):
        chosen, k = recipe(some_recipe(draw, fusion), reserve={}), draw.choice([1, 2, 3, 5])
        leg = draw.choice(chosen.legs)
        found = leg_of(chosen, leg, k)
        assert (found.witness is None) == (found.class_ == "boost-only")
        if found.witness is not None:
            assert comes_out(chosen, "any", k, found.witness), (chosen, k, found.witness)
        if found.counter_witness is not None:
            assert found.class_ == "possible"
            assert not comes_out(chosen, "any", k, found.counter_witness), (chosen, k, found.counter_witness)
            shown += 1
    assert shown > 50


@pytest.mark.parametrize("fusion", SCALED)
@pytest.mark.parametrize("k", [1, 2])
def test_the_witness_of_a_tie_comes_out_for_lists_of_several_memories_too(fusion: Fusion, k: int) -> None:
    chosen = recipe("seed", fusion=fusion, weights=dict.fromkeys(("lexical", "dense", "graph"), 1), reserve={})
    lists = {"lexical": Listed.of("abc"), "dense": Listed.of("bcd"), "graph": Listed.of("e")}
    found = reach_in(chosen, Lists.at(k, lists), k).regimes["any"].legs["graph"]
    assert found.witness is not None
    assert comes_out(chosen, "any", k, found.witness)


@pytest.mark.parametrize("name", ["convex", "tm2c2", "scored", "rank-scaled", "memini", "nexus"])
def test_every_recipe_says_its_reach_in_a_table_and_as_plain_values(name: str) -> None:
    for k in (1, 5, 10):
        found = reach(RECIPES[name], k)
        assert len(describe(found)) == sum(len(regime.legs) for regime in found.regimes.values())
        assert found.as_dict()["recipe"] == name
        for regime, legs in found.regimes.items():
            for at in legs.legs.values():
                if at.witness is not None:
                    assert comes_out(RECIPES[name], regime, k, at.witness)


# --- lists whose scores are known --------------------------------------------------------------------------------


def known(
    chosen: Recipe,
    lists: Mapping[str, Sequence[str]],
    scores: Mapping[str, Sequence[float]],
    k: int,
    exact: Sequence[str] = (),
) -> Lists:
    """Return what reach may know of these lists: a recall knows it, too."""
    listed = {}
    for leg, keys in lists.items():
        scaled = reads_scores(chosen.fusion, leg)
        shares = shares_of(chosen.fusion, leg, scores[leg], len(keys), 0) if scaled else None
        listed[leg] = Listed.of(keys, exact=exact, shares=shares)
    return Lists.at(k, listed)


def test_a_light_leg_is_boost_only_where_the_scores_of_the_other_leave_it_no_place() -> None:
    plan = recipe("convex", weights={"lexical": 1.0, "dense": 0.3})
    lists = {"lexical": list("abcde"), "dense": [ONLY, "f"]}
    scores = {"lexical": [10.0, 8.0, 6.0, 4.0, 0.0], "dense": [0.7, 0.2]}

    def of_dense(k: int) -> LegReach:
        return reach_in(plan, known(plan, lists, scores, k), k).regimes["any"].legs["dense"]

    # the lexical places earn 1, .8, .6, .4 and 0; the first of dense .3, and its second 0
    assert [(of_dense(k).lower_bar, of_dense(k).class_) for k in (3, 4)] == [
        (Fraction(3, 5), "boost-only"),
        (Fraction(2, 5), "boost-only"),
    ]
    assert (of_dense(5).lower_bar, of_dense(5).class_) == (0, "possible")
    assert [is_in(plan, "any", k, lists, scores, ONLY) for k in (3, 4, 5)] == [False, False, True]
    assert of_dense(3).certificate == (
        "The first place of dense earns at most 0.3; the 3 best of the others have at least 0.6 each, which is more."
    )
    # without the scores nothing is proven: the lexical places after the first may earn next to nothing
    bare = Lists.at(3, {leg: Listed.of(keys) for leg, keys in lists.items()})
    assert reach_in(plan, bare, 3).regimes["any"].legs["dense"].class_ == "possible"


def test_a_first_place_is_guaranteed_where_the_scores_of_all_others_together_are_less() -> None:
    plan = recipe("tm2c2", weights={"lexical": 0.5, "dense": 1.0})
    lists = {"lexical": list("abc"), "dense": [ONLY, "d", "e"]}
    scores = {"lexical": [10.0, 2.0, 1.0], "dense": [0.6, -0.2, -1.0]}
    # lexical: .5, .1, .05; dense from -1: 1, .5, 0. Two competitors share .5 + .1 + .5 + 0 = 1.1, so .55 each
    at = reach_in(plan, known(plan, lists, scores, 2), 2).regimes["any"].legs["dense"]
    assert (at.class_, at.guaranteed_ranks, float(at.upper_bar)) == ("guaranteed", 1, pytest.approx(0.55))
    assert at.certificate.startswith(
        "The first place of dense earns at most 1, and 2 competitors cannot all have more than"
    )
    turned = {"lexical": ["d", "e", "c"], "dense": lists["dense"]}
    assert is_in(plan, "any", 2, turned, scores, ONLY)


def test_the_share_of_a_weak_first_place_counts_and_not_its_weight() -> None:
    # in scored the best lexical score there could be is 40, so 5 is a quarter of half of it. A competitor has .2 + .025
    plan = recipe("scored", weights={"lexical": 1.0, "dense": 0.2, "graph": 0.0}, regime_weights={})
    shares = shares_of("scored", "lexical", [5.0, 0.5], 2, 0, {"lexical": 40.0})
    assert shares == [0.25, 0.025]
    lists = Lists.at(1, {"lexical": Listed.of("ab", shares=shares), "dense": Listed.of("c", shares=[1.0])})
    legs = reach_in(plan, lists, 1).regimes["any"].legs
    assert (legs["lexical"].class_, legs["dense"].class_) == ("guaranteed", "boost-only")
    assert legs["dense"].possible_above_weight == Fraction(1, 4)


@pytest.mark.parametrize(
    ("reserve", "dense", "said"),
    [
        ({"agreed": 2}, [ONLY, "a"], "possible"),  # first in two of three lists
        ({}, [ONLY, "a"], "boost-only"),
        ({"agreed": 2}, ["a", ONLY], "boost-only"),  # first in one of three
        ({"agreed": 3}, [ONLY, "a"], "boost-only"),  # a place beyond the cut
    ],
)
def test_a_memory_that_most_legs_put_first_may_enter_whatever_its_rank_in_another_list(
    reserve: dict[str, int], dense: list[str], said: str
) -> None:
    weights = {"lexical": 1.0, "dense": 1.0, "graph": 100.0}
    plan = Recipe("case", weights, {"lexical": 60.0, "dense": 60.0, "graph": 0.0}, reserve=reserve)
    lists = {"lexical": [ONLY], "dense": dense, "graph": ["b", "c", ONLY]}
    ranks = {leg: keys.index(ONLY) + 1 for leg, keys in lists.items()}
    # the graph's places earn 100, 50 and 33.3; the two first places of 1/61 more are no 50
    told = known(plan, lists, {}, 2)
    assert class_of_find(plan, "any", told, reach_in(plan, told, 2).regimes["any"], ranks) == said
    assert is_in(plan, "any", 2, lists, {}, ONLY) == (said == "possible")


@pytest.mark.parametrize(("k", "said"), [(1, "boost-only"), (2, "possible")])
def test_two_shares_may_bring_in_what_they_lift_to_the_last_place_of_a_list_within_the_cut(k: int, said: str) -> None:
    plan = Recipe("case", {"lexical": 0.3, "dense": 0.3, "graph": 1.0}, {"lexical": 0.0, "dense": 0.0, "graph": 0.0})
    lists = {"lexical": [ONLY], "dense": [ONLY], "graph": ["a", "b", "c"]}
    # its shares of .3 are .6; the graph's places earn 1, 1/2 and 1/3
    told = known(plan, lists, {}, k)
    assert class_of_find(plan, "any", told, reach_in(plan, told, k).regimes["any"], {"lexical": 1, "dense": 1}) == said
    assert is_in(plan, "any", k, lists, {}, ONLY) == (said == "possible")


@pytest.mark.slow
@pytest.mark.parametrize("fusion", SCALED)
@pytest.mark.parametrize("seed", range(3))
def test_no_lists_with_these_scores_contradict_a_class_and_every_class_occurs(fusion: Fusion, seed: int) -> None:
    draw = random.Random(f"known {fusion} {seed}")
    seen: dict[str, set[bool]] = {"boost-only": set(), "possible": set(), "guaranteed": set()}
    several: dict[str, set[bool]] = {"boost-only": set(), "possible": set(), "guaranteed": set()}
    for _ in range(200):
        chosen, k = some_recipe(draw, fusion), draw.choice([1, 2, 3])
        leg = draw.choice(chosen.legs)
        rank = draw.randint(1, min(k + 1, chosen.depths[leg]))
        lists, scores = some_lists(draw, chosen, leg, rank, k, 8)
        exact = draw.choice([[], lists.get("lexical", []), [m for m in lists.get("lexical", []) if m != ONLY]])
        other = draw.choice([name for name in chosen.legs if name != leg])
        twice = draw.random() < 0.5 and len(lists[other]) > 0
        ranks = {leg: rank}
        if twice:
            at = draw.randrange(len(lists[other]))
            lists[other][at] = ONLY
            ranks[other] = at + 1
        told = known(chosen, lists, scores, k, exact)
        said = class_of_find(chosen, "any", told, reach_in(chosen, told, k).regimes["any"], ranks)
        for _ in range(6):
            entered = is_in(chosen, "any", k, lists, scores, ONLY, exact)
            assert entered or said != "guaranteed", (chosen, k, ranks, lists, scores, exact)
            assert not entered or said != "boost-only", (chosen, k, ranks, lists, scores, exact)
            (several if twice else seen)[said].add(entered)
            if exact:  # who has the bonus is one of the facts
                break
            names = {f"m{i}": f"m{at}" for i, at in enumerate(draw.sample(range(8), 8))}
            lists = {
                name: [names.get(m, m) for m in keys] if draw.random() < 0.5 else keys for name, keys in lists.items()
            }
    assert seen == {"boost-only": {False}, "possible": {True, False}, "guaranteed": {True}}
    assert several == seen
