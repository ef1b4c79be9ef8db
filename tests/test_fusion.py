from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semmem
from semmem.fusion import EXACT, IMPORTANCE, RESERVE, Fused, fold_duplicates, fuse, rank, rank_as
from semmem.model.errors import InvalidInput
from semmem.rank_cap import reach

WEIGHTS = {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
SIXTY = {"lexical": 60.0, "dense": 60.0, "graph": 60.0}
LEGS = ("lexical", "dense", "graph")
RESERVED = {"graph": 3, "lexical": 4, "dense": 5}

ids = st.integers(0, 40).map(lambda i: f"m{i:02d}")
lists = st.lists(ids, unique=True, max_size=25)
rankings_of_three = st.fixed_dictionaries({"lexical": lists, "dense": lists, "graph": lists})
weight = st.sampled_from([0.0, 0.05, 0.35, 1.0, 2.5])
constant = st.sampled_from([0.0, 1.0, 4.0, 8.0, 60.0])
weights_of_three = st.fixed_dictionaries(dict.fromkeys(LEGS, weight))
constants_of_three = st.fixed_dictionaries(dict.fromkeys(LEGS, constant))


def keys(fused: Sequence[Fused[str]]) -> list[str]:
    return [f.key for f in fused]


def recall(rankings: dict[str, list[str]], **changes: object) -> Sequence[Fused[str]]:
    settings: dict[str, object] = {"weights": WEIGHTS, "rank_constants": SIXTY, "planned": LEGS, **changes}
    return rank(rankings, **settings)  # type: ignore[arg-type]


def test_a_score_is_the_sum_of_weight_over_rank_constant_plus_rank() -> None:
    fused = fuse({"lexical": ["a", "b"], "dense": ["b"], "graph": ["c", "a"]}, WEIGHTS, {**SIXTY, "graph": 8.0})
    by_key = {f.key: f for f in fused}
    # a: 1/61 + .35/10 = .016393 + .035 = .051393; c: .35/9 = .038889; b: 1/62 + 1/61 = .016129 + .016393 = .032522
    assert keys(fused) == ["a", "c", "b"]
    assert by_key["a"].score == pytest.approx(0.051393442, abs=1e-9)
    assert by_key["b"].score == pytest.approx(0.032522475, abs=1e-9)
    assert by_key["c"].score == pytest.approx(0.038888889, abs=1e-9)
    assert by_key["a"].components == {"lexical": pytest.approx(1 / 61), "graph": pytest.approx(0.035)}
    assert by_key["a"].ranks == {"lexical": 1, "graph": 2}


def test_the_seed_graph_adds_less_than_any_two_first_places_of_a_full_leg() -> None:
    # .35/61 = .0057 against 1/70 = .0143: the tenth of one full leg stays ahead of the graph's first
    tenth = [f"m{i:02d}" for i in range(10)]
    fused = fuse({"lexical": tenth, "dense": [], "graph": ["only"]}, WEIGHTS, SIXTY)
    assert keys(fused)[-1] == "only"


def test_a_leg_with_weight_zero_contributes_no_memory() -> None:
    fused = fuse({"lexical": ["a"], "dense": ["b"]}, {"lexical": 1.0, "dense": 0.0}, SIXTY)
    assert keys(fused) == ["a"]
    assert fused[0].components == {"lexical": pytest.approx(1 / 61)}


def test_a_leg_without_a_weight_or_without_a_ranking_contributes_no_memory() -> None:
    assert keys(fuse({"lexical": ["a"], "other": ["b"]}, {"lexical": 1.0, "dense": 1.0}, SIXTY)) == ["a"]


def test_equal_scores_are_ordered_by_key() -> None:
    assert keys(fuse({"lexical": ["b"], "dense": ["a"]}, WEIGHTS, SIXTY)) == ["a", "b"]


def test_scores_that_are_equal_on_paper_tie_although_floats_differ() -> None:
    # .35/(8 + 20) = 1/80 = 1/(60 + 20), but 0.35/28 != 1/80 in binary
    assert 0.35 / 28 != 1 / 80
    fillers = [f"z{i:02d}" for i in range(19)]
    rankings = {"lexical": [*fillers, "b"], "graph": [*fillers, "a"]}
    fused = fuse(rankings, WEIGHTS, {**SIXTY, "graph": 8.0})
    assert keys(fused)[-2:] == ["a", "b"]
    assert fused[-1].score == fused[-2].score
    swapped = fuse({"lexical": [*fillers, "a"], "graph": [*fillers, "b"]}, WEIGHTS, {**SIXTY, "graph": 8.0})
    assert keys(swapped)[-2:] == ["a", "b"]
    for lexical, graph in (("a", "b"), ("b", "a")):
        lists = {"lexical": [*fillers, lexical], "graph": [*fillers, graph]}
        assert keys(recall(lists, rank_constants={**SIXTY, "graph": 8.0}))[-2:] == ["a", "b"]


@pytest.mark.parametrize(("more", "first"), [(3e-14, "a"), (4e-13, "b")])
def test_scores_that_differ_by_less_than_a_part_in_ten_to_the_thirteenth_tie(more: float, first: str) -> None:
    # a has 1/(2 + more) = .5 - more/4 of all there is to have, b .5 + more/4
    weights, constants = {"lexical": 1.0, "dense": 1.0 + more}, {"lexical": 0.0, "dense": 0.0}
    lists = {"lexical": ["a"], "dense": ["b"]}
    assert keys(fuse(lists, weights, constants))[0] == first
    assert keys(rank(lists, weights=weights, rank_constants=constants, planned=weights))[0] == first


def test_the_order_of_the_legs_does_not_change_a_tie() -> None:
    # a has ranks 1, 2, 3 and b has 3, 1, 2: the same shares, added in another order
    rankings = {"x": ["a", "p", "b"], "y": ["q", "a"], "z": ["b", "r", "a"], "w": ["s", "b"]}
    even = dict.fromkeys("xyzw", 1.0)
    fused = fuse(rankings, even, dict.fromkeys("xyzw", 7.0))
    by_key = {f.key: f.score for f in fused}
    assert by_key["a"] == by_key["b"]  # 1/8 + 1/9 + 1/10 = 1/10 + 1/8 + 1/9


def test_a_key_named_twice_by_a_leg_counts_at_its_first_place() -> None:
    fused = fuse({"lexical": ["a", "b", "a"]}, WEIGHTS, SIXTY)
    assert [(f.key, f.ranks) for f in fused] == [("a", {"lexical": 1}), ("b", {"lexical": 2})]


def test_keys_may_be_pairs_of_namespace_and_id() -> None:
    fused = fuse({"lexical": [("n", "b")], "dense": [("m", "c")]}, WEIGHTS, SIXTY)
    assert [f.key for f in fused] == [("m", "c"), ("n", "b")]


def test_numbers_that_cannot_be_used_are_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="weight and the rank constant of lexical must be 0 or more"):
        fuse({"lexical": ["a"]}, {"lexical": -1.0}, SIXTY)
    with pytest.raises(InvalidInput, match="The leg dense has a weight but no rank constant"):
        fuse({}, {"dense": 1.0}, {})
    with pytest.raises(InvalidInput, match="a place of its own"):
        recall({"lexical": ["a"]}, reserve={"graph": 3, "dense": 3})


def test_nothing_found_is_an_empty_list() -> None:
    assert recall({"lexical": [], "dense": []}) == []
    assert recall({}, planned=()) == []


def test_first_in_every_planned_leg_with_importance_one_scores_one() -> None:
    fused = recall({leg: ["a", "b"] for leg in LEGS}, importance={"a": 1.0, "b": 1.0})
    assert fused[0].score == 1.0
    assert fused[0].components["graph"] == pytest.approx(0.85 * 0.35 / 2.35)
    assert fused[0].components[IMPORTANCE] == pytest.approx(0.15)


def test_a_degraded_leg_leaves_the_scores_of_the_others_as_they_were() -> None:
    alone = recall({"lexical": ["a"]}, planned=LEGS)
    both = recall({"lexical": ["a"], "dense": ["b"]}, planned=LEGS)
    # divisor 1/61 + 1/61 + .35/61 = 2.35/61, so a first place in one leg of weight 1 is 1/2.35
    assert alone[0].score == pytest.approx(1 / 2.35)
    assert [f.score for f in both if f.key == "a"] == [alone[0].score]


def test_a_leg_that_was_not_planned_does_not_lower_the_scores() -> None:
    assert recall({"lexical": ["a"]}, planned=("lexical",))[0].score == 1.0


def test_importance_multiplies_the_score_between_the_floor_and_one_and_shows_what_it_changed() -> None:
    fused = recall({"lexical": ["a", "b", "c"]}, planned=("lexical",), importance={"a": 0.0, "b": 1.0, "c": 0.5})
    # a: .7 x 1 = .7; b: 61/62 = .98387; c: .85 x 61/63 = .82302; the leg has what importance .5 gives: .85 of its place
    assert [(f.key, round(f.score, 5)) for f in fused] == [("b", 0.98387), ("c", 0.82302), ("a", 0.7)]
    assert fused[0].components == pytest.approx({"lexical": 0.83629, IMPORTANCE: 0.14758}, abs=1e-5)
    assert fused[2].components == pytest.approx({"lexical": 0.85, IMPORTANCE: -0.15})
    assert set(fused[1].components) == {"lexical"}
    assert recall({"lexical": ["a"]}, planned=("lexical",), importance={})[0].score == pytest.approx(0.85)


@given(st.sampled_from(["default", "hybrid", "lexical", "dense"]), rankings_of_three, st.data())
def test_what_is_first_in_every_leg_stays_first_whatever_importance_says(
    name: str, rankings: dict[str, list[str]], data: st.DataObject
) -> None:
    recipe = semmem.recipe(name, prior_floor=None)
    regime = data.draw(st.sampled_from(recipe.regimes))
    whole = {leg: ["first", *rankings[leg]] for leg in recipe.legs if data.draw(st.booleans())} or {"dense": ["first"]}
    weighed = {key: data.draw(st.sampled_from([0.0, 0.2, 1.0])) for keys_ in whole.values() for key in keys_}
    fused = rank_as(
        recipe.fusion,
        whole,
        {},
        weights=recipe.weights_in(regime),
        rank_constants=recipe.constants(regime),
        planned=recipe.legs,
        importance={**dict.fromkeys(weighed, 1.0), **weighed, "first": 0.0},
        prior_floor=recipe.floor(regime),
    )
    assert not set(whole) & set(recipe.legs) or fused[0].key == "first"


def test_the_bounded_prior_is_worth_half_of_the_flattest_step_from_first_to_second() -> None:
    # the flattest leg has 8: 1/9 to 1/10 is a tenth, and half of it .05; at 60 it is 1/62, and half of it 1/124
    assert semmem.recipe("default").floor("named") == semmem.recipe("default").floor("unnamed") == 0.95
    assert semmem.recipe("hybrid", prior_floor=None).floor() == pytest.approx(1 - 1 / 124)
    assert semmem.recipe("seed").floor() == semmem.recipe("default-0.1").floor("named") == 0.7


def test_what_most_legs_put_first_has_the_place_that_is_kept_for_it() -> None:
    lists = {"lexical": ["a", "b"], "dense": ["a", "c"], "graph": ["b", "c", "a"]}
    steep = {"lexical": 60.0, "dense": 60.0, "graph": 0.0}
    assert keys(recall(lists, rank_constants=steep)) == ["b", "c", "a"]
    kept = recall(lists, rank_constants=steep, reserve={"agreed": 1})
    assert keys(kept) == ["a", "b", "c"]
    assert kept[0].score == kept[1].score == pytest.approx(sum(kept[0].components.values()))
    assert kept[0].components[RESERVE] > 0
    # two of three disagree, or one of two: nobody's place
    assert keys(recall(lists | {"dense": ["c"]}, rank_constants=steep, reserve={"agreed": 1}))[0] == "b"
    assert keys(recall({"lexical": ["a"], "graph": ["b"]}, rank_constants=steep, reserve={"agreed": 1}))[0] == "b"


@given(rankings_of_three, st.integers(1, 12), st.sampled_from(LEGS), st.sampled_from(["named", "unnamed"]))
def test_a_leg_that_reach_calls_guaranteed_is_in_the_top_k_though_a_place_is_kept_for_what_others_agree_on(
    rankings: dict[str, list[str]], k: int, leg: str, regime: str
) -> None:
    recipe = semmem.recipe("default")
    of_leg = reach(recipe, k).regimes[regime].legs[leg]
    found = {name: list(ids_) for name, ids_ in rankings.items()}
    for at in range(of_leg.guaranteed_ranks):
        found[leg] = [*rankings[leg][:at], "only", *rankings[leg][at:]]
        if found[leg].index("only") != at:  # the list is too short
            continue
        fused = rank(
            found,
            weights=recipe.weights_in(regime),
            rank_constants=recipe.constants(regime),
            planned=recipe.legs,
            reserve=recipe.reserve,
        )
        assert "only" in keys(fused)[:k]


def test_the_exact_bonus_is_a_component_in_units_of_a_first_lexical_place() -> None:
    fused = recall({"lexical": ["a", "b"]}, planned=("lexical",), exact=("b", "nowhere"), exact_bonus=0.5)
    # divisor (1 + .5)/61; b: (1/62 + .5/61)/(1.5/61) = (61/62 + .5)/1.5 = .98925, a: 1/1.5 = .66667
    assert [(f.key, round(f.score, 5)) for f in fused] == [("b", 0.98925), ("a", 0.66667)]
    assert fused[0].components[EXACT] == pytest.approx(1 / 3)
    assert EXACT not in fused[1].components


def test_without_the_lexical_leg_there_is_no_exact_bonus() -> None:
    fused = recall({"dense": ["a"]}, weights={"dense": 1.0}, planned=("dense",), exact=("a",), exact_bonus=0.5)
    assert fused[0].components == {"dense": 1.0}


def test_the_reserve_moves_each_head_up_to_its_place_and_says_so() -> None:
    both = [f"b{i}" for i in range(8)]
    rankings = {"lexical": ["lex", *both], "dense": ["den", *both], "graph": ["gra"]}
    plain = recall(rankings)
    # in each base leg b_i stands at i + 2; every b beats a single first place: 2/70 > 1/61 > .35/61
    assert keys(plain) == [*both, "den", "lex", "gra"]
    fused = recall(rankings, reserve=RESERVED)
    assert keys(fused) == ["b0", "b1", "gra", "lex", "den", "b2", "b3", "b4", "b5", "b6", "b7"]
    assert [f.score for f in fused[2:6]] == [plain[2].score] * 4
    gra = fused[2]
    assert gra.components[RESERVE] == pytest.approx(plain[2].score - plain[10].score)
    assert sum(gra.components.values()) == pytest.approx(gra.score, abs=1e-12)


def test_places_of_a_reserve_are_served_from_the_top_however_they_are_written() -> None:
    both = [f"b{i}" for i in range(8)]
    rankings = {"lexical": ["lex", *both], "dense": ["den", *both], "graph": ["gra"]}
    fused = recall(rankings, reserve={"dense": 5, "lexical": 4, "graph": 3})
    assert keys(fused)[:5] == ["b0", "b1", "gra", "lex", "den"]


def test_a_head_that_has_earned_a_better_place_keeps_it_and_has_no_reserve_component() -> None:
    fused = recall({"lexical": ["a", "b"], "dense": ["a"], "graph": ["a"]}, reserve=RESERVED)
    assert keys(fused) == ["a", "b"]
    assert all(RESERVE not in f.components for f in fused)


def test_a_reserve_of_a_leg_that_is_switched_off_or_empty_is_ignored() -> None:
    fused = recall({"lexical": ["a", "b", "c"], "graph": []}, reserve={"graph": 1, "dense": 2})
    assert keys(fused) == ["a", "b", "c"]


def test_a_later_reserve_does_not_push_an_earlier_head_below_its_place() -> None:
    # the lexical head stands 4th by itself; the graph's head, moved in at 3, would push it to 5th
    rankings = {
        "lexical": ["lex", "p", "q", "r", "s"],
        "dense": ["p", "q", "r", "s", "t"],
        "graph": ["gra", "t"],
    }
    assert keys(recall(rankings)) == ["p", "q", "r", "s", "t", "lex", "gra"]
    assert keys(recall(rankings, reserve={"graph": 3, "lexical": 4})) == ["p", "q", "gra", "lex", "r", "s", "t"]


@settings(max_examples=120, deadline=None)
@given(rankings_of_three, weights_of_three, constants_of_three, st.data())
def test_components_sum_to_a_score_in_the_unit_interval_and_scores_never_rise(
    rankings: dict[str, list[str]], weights: dict[str, float], constants: dict[str, float], data: st.DataObject
) -> None:
    importance = data.draw(st.none() | st.dictionaries(ids, st.floats(0, 1)))
    bonus = data.draw(st.sampled_from([0.0, 0.5, 3.0]))
    reserve = data.draw(st.sampled_from([{}, RESERVED, {"dense": 1, "graph": 2}]))
    exact = data.draw(st.sets(ids))
    fused = rank(
        rankings,
        weights=weights,
        rank_constants=constants,
        planned=LEGS,
        importance=importance,
        exact=exact,
        exact_bonus=bonus,
        reserve=reserve,
    )
    assert sorted(keys(fused)) == sorted({key for leg in LEGS if weights[leg] for key in rankings[leg]})
    for f in fused:
        assert 0.0 <= f.score <= 1.0
        assert abs(sum(f.components.values()) - f.score) <= 1e-12
        assert f.ranks == {
            leg: rankings[leg].index(f.key) + 1 for leg in LEGS if weights[leg] and f.key in rankings[leg]
        }
    scores = [f.score for f in fused]
    assert scores == sorted(scores, reverse=True)
    earned = [f for f in fused if RESERVE not in f.components]
    assert earned == sorted(earned, key=lambda f: (-f.score, f.key))


@settings(max_examples=120, deadline=None)
@given(rankings_of_three, weights_of_three, constants_of_three, st.dictionaries(ids, st.floats(0, 1)))
def test_every_legs_head_is_in_the_top_k_for_every_k_from_five_on(
    rankings: dict[str, list[str]], weights: dict[str, float], constants: dict[str, float], importance: dict[str, float]
) -> None:
    fused = recall(rankings, weights=weights, rank_constants=constants, importance=importance, reserve=RESERVED)
    for leg, place in RESERVED.items():
        if weights[leg] and rankings[leg]:
            assert rankings[leg][0] in keys(fused)[:place]


@settings(max_examples=80, deadline=None)
@given(rankings_of_three, st.dictionaries(ids, st.integers(0, 5), min_size=10))
def test_folding_keeps_every_head_or_its_twin_in_the_top_five(
    rankings: dict[str, list[str]], content: dict[str, int]
) -> None:
    kept = fold_duplicates(recall(rankings, reserve=RESERVED), content)
    in_top_five = {key for fused, folded in kept[:5] for key in (fused.key, *folded)}
    assert all(rankings[leg][0] in in_top_five for leg in LEGS if rankings[leg])
    assert len({content.get(f.key, f.key) for f, _ in kept}) == len(kept)


def test_folding_keeps_the_first_of_equal_content_and_reports_the_others() -> None:
    ranked = recall({"lexical": ["a", "b", "c", "d", "e"]})
    kept = fold_duplicates(ranked, {"a": "x", "b": "y", "c": "x", "d": "x"})
    assert [(f.key, folded) for f, folded in kept] == [("a", ("c", "d")), ("b", ()), ("e", ())]
    assert kept[0][0] == ranked[0]


def test_folding_has_no_cap_at_a_limit_of_zero_or_less() -> None:
    ranked = recall({"lexical": ["a", "b", "c"]})
    assert [len(fold_duplicates(ranked, {}, limit=limit)) for limit in (-1, 0, 1, 2, 9)] == [3, 3, 1, 2, 3]


def test_a_folded_head_gives_back_the_place_that_was_reserved_for_it() -> None:
    rankings = {"lexical": ["a", "b", "c", "d"], "graph": ["copy"]}
    kept = fold_duplicates(recall(rankings, reserve={"graph": 3}), {"a": 1, "copy": 1})
    assert [(f.key, folded) for f, folded in kept] == [("a", ("copy",)), ("b", ()), ("c", ()), ("d", ())]


def test_with_dense_and_graph_empty_fusion_returns_exactly_the_lexical_order() -> None:
    order = [f"m{i:03d}" for i in range(100)]
    random.Random(7).shuffle(order)
    assert keys(recall({"lexical": order, "dense": [], "graph": []}, reserve=RESERVED)) == order


def test_there_is_no_place_before_the_first() -> None:
    for place in (0, -1):
        with pytest.raises(InvalidInput, match="from 1 on"):
            rank({"a": ["x"]}, weights={"a": 1}, rank_constants={"a": 60}, planned=["a"], reserve={"a": place})
