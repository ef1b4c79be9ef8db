from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.fusion import Fused, rank, rank_as, scaled, shares_of
from semmem.list_fusion import Entry, fuse_scores
from semmem.model.errors import InvalidInput
from semmem.model.recipe import RECIPES, Fusion, recipe

LEGS = ("lexical", "dense", "graph")
ONE = dict.fromkeys(LEGS, 1.0)
SIXTY = dict.fromkeys(LEGS, 60.0)
FUSIONS: tuple[Fusion, ...] = get_args(Fusion)
SCALED: tuple[Fusion, ...] = ("convex", "tm2c2", "scored")

Lists = dict[str, list[tuple[str, float]]]


def fused(fusion: Fusion, lists: Lists, **changes: Any) -> list[Fused[str]]:
    rankings = {leg: [key for key, _ in pairs] for leg, pairs in lists.items()}
    scores = {leg: [score for _, score in pairs] for leg, pairs in lists.items()}
    plan: dict[str, Any] = {"weights": ONE, "rank_constants": SIXTY, "planned": tuple(lists), **changes}
    return list(rank_as(fusion, rankings, scores, **plan))


def scores_of(found: list[Fused[str]]) -> dict[str, float]:
    return {f.key: f.score for f in found}


# --- the formulas, by hand ---------------------------------------------------------------------------------------

TWO: Lists = {
    "lexical": [("a", 9.0), ("b", 6.0), ("c", 3.0)],
    "dense": [("b", 0.8), ("d", 0.4), ("c", 0.3)],
}


def test_convex_scales_each_list_by_its_own_least_and_best() -> None:
    found = fused("convex", TWO, weights={"lexical": 1.0, "dense": 3.0})
    # a: 1 x (9-3)/6 = 1; b: (6-3)/6 + 3 x 1 = 3.5; c: 0 + 0; d: 3 x (.4-.3)/.5 = .6; all divided by 1 + 3
    assert scores_of(found) == pytest.approx({"b": 0.875, "a": 0.25, "d": 0.15, "c": 0.0})
    assert [f.key for f in found] == ["b", "a", "d", "c"]
    assert found[0].components == {"lexical": pytest.approx(0.125), "dense": pytest.approx(0.75)}
    assert found[0].ranks == {"lexical": 2, "dense": 1}


def test_convex_leaves_the_last_of_a_list_in_the_answer_at_score_zero() -> None:
    assert fused("convex", TWO)[-1].key == "c"
    assert fused("convex", TWO)[-1].components == {"lexical": 0.0, "dense": 0.0}


@pytest.mark.parametrize("fusion", ["convex", "tm2c2"])
@pytest.mark.parametrize("values", [[3.0], [3.0, 3.0], [0.0, 0.0], [0.7, 0.7 - 1e-13]])
def test_one_memory_or_all_equal_is_one(fusion: Fusion, values: list[float]) -> None:
    found = fused(fusion, {"lexical": [(f"m{i}", v) for i, v in enumerate(values)]})
    assert [f.score for f in found] == [1.0] * len(values)


def test_tm2c2_scales_from_the_least_a_leg_can_give() -> None:
    found = scores_of(fused("tm2c2", TWO))
    # lexical from 0: 9/9, 6/9, 3/9; dense from -1: 1.8/1.8, 1.4/1.8, 1.3/1.8; divided by 2
    expected = {"a": 0.5, "b": (6 / 9 + 1) / 2, "c": (3 / 9 + 1.3 / 1.8) / 2, "d": 1.4 / 1.8 / 2}
    assert found == pytest.approx(expected)


def test_rank_scaled_divides_the_rank_by_the_weight() -> None:
    lists: Lists = {"lexical": [("a", 1.0), ("b", 0.5)], "graph": [("c", 1.0), ("b", 0.5)]}
    found = fused("rank-scaled", lists, weights={"lexical": 1.0, "graph": 0.5})
    # a: 1/(60 + 1/1 - 1) = 1/60; b: 1/(60 + 2 - 1) + 1/(60 + 2/.5 - 1) = 1/61 + 1/63; c: 1/(60 + 1/.5 - 1) = 1/61
    most = 1 / 60 + 1 / 61
    expected = {"a": 1 / 60 / most, "b": (1 / 61 + 1 / 63) / most, "c": 1 / 61 / most}
    assert scores_of(found) == pytest.approx(expected)


def test_rank_scaled_is_weighted_rrf_with_the_constant_w_times_k_minus_one() -> None:
    # 1/(60 + r/.35 - 1) = .35/(.35 x 59 + r) = .35/(20.65 + r)
    assert scaled({"graph": 0.35}, {"graph": 60.0}) == {"graph": pytest.approx(20.65)}
    assert scaled({"graph": 2.0}, {"graph": 0.0}) == {"graph": 0.0}  # below 1 the constant counts as 1


def test_at_equal_weights_of_one_rank_scaled_is_rrf_with_one_less() -> None:
    lists = {"lexical": ["a", "b", "c"], "dense": ["c", "d"]}
    plan = {"weights": ONE, "planned": LEGS}
    theirs = rank_as("rank-scaled", lists, {}, rank_constants=SIXTY, **plan)  # type: ignore[arg-type]
    ours = rank(lists, rank_constants=dict.fromkeys(LEGS, 59.0), **plan)  # type: ignore[arg-type]
    assert list(theirs) == list(ours)


def test_scored_counts_a_lexical_list_against_half_of_the_best_that_the_question_allows() -> None:
    # most 20, half 10; fewer than twenty, so from 0: 4/10, 2/10. A leg whose best is past half counts in full: 16/16
    assert shares_of("scored", "lexical", [4.0, 2.0], 2, 60, {"lexical": 20.0}) == pytest.approx([0.4, 0.2])
    assert shares_of("scored", "lexical", [16.0, 4.0], 2, 60, {"lexical": 20.0}) == pytest.approx([1.0, 0.25])


def test_scored_takes_the_least_of_a_long_lexical_list_and_of_every_dense_one() -> None:
    long = [float(s) for s in range(24, 4, -1)]  # twenty scores, 24 to 5; half of 58 is 29
    got = shares_of("scored", "lexical", long, 20, 60, {"lexical": 58.0})
    assert (got[0], got[-1]) == (pytest.approx(19 / 24), 0.0)
    assert shares_of("scored", "dense", [0.6, 0.5, 0.4], 3, 60) == pytest.approx([1.0, 0.5, 0.0])


def test_scored_scales_by_the_first_hundred_and_gives_the_others_nothing() -> None:
    values = [1 - i / 200 for i in range(120)]
    got = shares_of("scored", "dense", values, 120, 60)
    assert (got[0], got[99], got[100], got[119]) == (1.0, 0.0, 0.0, 0.0)


def test_scored_takes_the_graph_by_rank() -> None:
    # named: 12 x 3/(2 + r): 12, 9, 7.2; unnamed: 9/(8 + r): 1, .9, .818
    chosen = RECIPES["scored"]
    assert (chosen.weights_in("named")["graph"], chosen.constants("named")["graph"]) == (12.0, 2.0)
    assert (chosen.weights_in("unnamed")["graph"], chosen.constants("unnamed")["graph"]) == (1.0, 8.0)
    assert [12 * s for s in shares_of("scored", "graph", (), 3, 2)] == pytest.approx([12, 9, 7.2])
    assert shares_of("scored", "graph", (), 3, 8) == pytest.approx([1, 0.9, 9 / 11])


def test_scored_adds_the_three() -> None:
    lists: Lists = {
        "lexical": [("a", 8.0), ("b", 4.0)],
        "dense": [("b", 0.5), ("c", 0.3), ("a", 0.1)],
        "graph": [("c", 0.2), ("a", 0.1)],
    }
    found = fused("scored", lists, rank_constants={**SIXTY, "graph": 8.0}, most={"lexical": 20.0})
    # lexical: .8, .4; dense: b 1, c .5, a 0; graph: c 1, a .9; divided by 3
    assert scores_of(found) == pytest.approx({"a": 1.7 / 3, "b": 1.4 / 3, "c": 1.5 / 3})


def test_noise_below_twelve_digits_is_not_stretched_to_the_whole_range() -> None:
    noisy = [0.5 + 3e-16, 0.5, 0.5 - 3e-16]
    assert shares_of("convex", "dense", noisy, 3, 60) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("apart", "shares"), [(5e-10, [1.0, 1.0]), (2e-9, [1.0, 0.0])])
def test_scores_that_differ_by_less_than_a_part_in_ten_to_the_ninth_are_equal(
    apart: float, shares: list[float]
) -> None:
    assert shares_of("convex", "dense", [1.0, 1.0 - apart], 2, 0) == shares


def test_scored_takes_the_least_of_the_first_hundred_of_a_longer_list() -> None:
    scores = [1.0 - at * 0.005 for at in range(100)] + [0.0]  # the hundredth has .505
    shares = shares_of("scored", "dense", scores, 101, 0)
    assert (shares[0], shares[99], shares[100]) == (1.0, 0.0, 0.0)


def test_a_key_that_a_list_names_twice_counts_at_its_first_place() -> None:
    fused = rank_as(
        "convex",
        {"lexical": ["a", "b", "a"]},
        {"lexical": [1.0, 0.5, 0.0]},
        weights={"lexical": 1.0},
        rank_constants={"lexical": 60.0},
        planned=("lexical",),
    )
    assert [(f.key, f.score, f.ranks) for f in fused] == [("a", 1.0, {"lexical": 1}), ("b", 0.5, {"lexical": 2})]


def test_two_list_convex_is_the_fuse_scores_of_memini() -> None:
    theirs = fuse_scores([[Entry(k, s) for k, s in TWO[leg]] for leg in ("lexical", "dense")], [0.5, 0.5])
    ours = scores_of(fused("convex", TWO, weights=RECIPES["convex"].weights))
    assert ours == pytest.approx({e.id: e.score for e in theirs})


# --- what all fusions share --------------------------------------------------------------------------------------

values = st.floats(-1, 1, allow_nan=False) | st.sampled_from([0.0, 0.5, 1.0])
pairs = st.lists(
    st.tuples(st.integers(0, 30).map(lambda i: f"m{i:02d}"), values), max_size=25, unique_by=lambda p: p[0]
)
some_lists = st.fixed_dictionaries({leg: pairs.map(lambda of: sorted(of, key=lambda p: -p[1])) for leg in LEGS})
weight = st.sampled_from([0.0, 0.05, 0.35, 1.0, 12.0])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(FUSIONS),
    some_lists,
    st.fixed_dictionaries(dict.fromkeys(LEGS, weight)),
    st.fixed_dictionaries(dict.fromkeys(LEGS, st.sampled_from([0.0, 2.0, 60.0]))),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([{}, {"graph": 3, "lexical": 4, "dense": 5}]),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.5, 30.0]),
)
def test_every_score_is_in_zero_to_one_and_the_sum_of_its_components(
    fusion: Fusion,
    lists: Lists,
    weights: dict[str, float],
    constants: dict[str, float],
    bonus: float,
    reserve: dict[str, int],
    importance: float,
    most: float,
) -> None:
    if not any(weights.values()):
        return
    found = fused(
        fusion,
        lists,
        weights=weights,
        rank_constants=constants,
        planned=LEGS,
        exact=[key for key, _ in lists["lexical"][:3]],
        exact_bonus=bonus,
        reserve=reserve,
        importance={"m00": importance, "m01": 1.0},
        most={"lexical": most},
    )
    called = [leg for leg in LEGS if weights[leg]]
    assert {f.key for f in found} == {key for leg in called for key, _ in lists[leg]}
    for f in found:
        assert -1e-12 <= f.score <= 1 + 1e-12
        assert abs(math.fsum(f.components.values()) - f.score) <= 1e-12
        assert set(f.ranks) == {leg for leg in called if f.key in [key for key, _ in lists[leg]]}
    assert [f.score for f in found] == sorted((f.score for f in found), reverse=True)


@pytest.mark.parametrize("fusion", SCALED)
@settings(max_examples=60, deadline=None)
@given(some_lists)
def test_places_of_a_list_earn_falling_shares_from_one_to_zero(fusion: Fusion, lists: Lists) -> None:
    for leg, of_leg in lists.items():
        if not of_leg:
            continue
        got = shares_of(fusion, leg, [s for _, s in of_leg], len(of_leg), 8.0)
        assert got == sorted(got, reverse=True)
        assert all(0 <= share <= 1 for share in got)
        if (fusion, leg) != ("scored", "lexical"):
            assert got[0] == 1.0


@settings(max_examples=60, deadline=None)
@given(some_lists, st.floats(0.01, 100), st.floats(-50, 50))
def test_convex_does_not_see_the_units_of_a_leg(lists: Lists, factor: float, shift: float) -> None:
    lists = {leg: [(key, round(s, 6)) for key, s in of_leg] for leg, of_leg in lists.items()}
    moved = {leg: [(key, s * factor + shift) for key, s in of_leg] for leg, of_leg in lists.items()}
    assert scores_of(fused("convex", moved)) == pytest.approx(scores_of(fused("convex", lists)), abs=1e-4)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_rrf_and_every_other_fusion_take_the_same_reserve_prior_and_bonus(fusion: Fusion) -> None:
    lists: Lists = {
        "lexical": [(f"l{i}", 10.0 - i) for i in range(5)],
        "dense": [(f"l{i}", 0.9 - i / 10) for i in range(5)],
        "graph": [("g", 1.0)],
    }
    weights = {"lexical": 1.0, "dense": 1.0, "graph": 0.01}
    plain = fused(fusion, lists, weights=weights)
    assert plain[0].key == "l0"
    kept = fused(fusion, lists, weights=weights, reserve={"graph": 1})
    assert kept[0].key == "g"
    assert kept[0].components["reserve"] == pytest.approx(plain[0].score - scores_of(plain)["g"])
    # importance 0 takes a tenth away, 1 nothing, 1/2 half of it
    priors = fused(fusion, lists, weights=weights, importance={"l0": 0.0, "l1": 1.0}, prior_floor=0.9)
    ratios = {key: score / scores_of(plain)[key] for key, score in scores_of(priors).items() if scores_of(plain)[key]}
    assert (ratios["l0"], ratios["l1"], ratios["g"]) == pytest.approx((0.9, 1.0, 0.95))
    # a bonus of one first place, of which l4 has the whole
    bonus = fused(fusion, lists, weights=weights, exact=["l4"], exact_bonus=1.0)
    first = {f.key: f for f in bonus}["l0"].components["lexical"]
    assert {f.key: f for f in bonus}["l4"].components["exact"] == pytest.approx(first)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_leg_that_failed_leaves_the_other_scores_as_they_were(fusion: Fusion) -> None:
    both = fused(fusion, {"lexical": [("a", 2.0), ("b", 1.0)], "dense": []}, planned=LEGS)
    assert both == fused(fusion, {"lexical": [("a", 2.0), ("b", 1.0)]}, planned=LEGS)
    assert both[0].score < 0.5


@pytest.mark.parametrize("fusion", FUSIONS)
def test_equal_scores_are_ordered_by_key_and_nothing_fuses_to_nothing(fusion: Fusion) -> None:
    assert [f.key for f in fused(fusion, {"lexical": [("b", 1.0)], "dense": [("a", 1.0)]})] == ["a", "b"]
    assert fused(fusion, {"lexical": [], "dense": []}) == []


@pytest.mark.parametrize("fusion", SCALED)
def test_a_leg_with_too_few_scores_or_one_that_is_no_number_is_refused(fusion: Fusion) -> None:
    with pytest.raises(InvalidInput, match="The leg lexical has 2 memories and 1 scores"):
        rank_as(fusion, {"lexical": ["a", "b"]}, {"lexical": [1.0]}, weights=ONE, rank_constants=SIXTY, planned=LEGS)
    with pytest.raises(InvalidInput, match="not a finite number"):
        fused(fusion, {"dense": [("a", math.nan), ("b", 0.0)]})
    with pytest.raises(InvalidInput, match="weight of dense must be 0 or more"):
        fused(fusion, {"dense": [("a", 1.0)]}, weights={"dense": -1.0})


# --- recipes -----------------------------------------------------------------------------------------------------


def test_a_recipe_says_which_fusion() -> None:
    assert recipe("default").fusion == "rrf"
    fusions = {name: RECIPES[name].fusion for name in ("convex", "tm2c2", "rank-scaled", "scored", "memini", "nexus")}
    assert fusions == {
        **{name: name for name in ("convex", "tm2c2", "rank-scaled", "scored")},
        "memini": "rrf",
        "nexus": "rrf",
    }
    with pytest.raises(InvalidInput, match="fusion must be one of rrf, convex, tm2c2, rank-scaled, scored, not 'sum'"):
        recipe("default", fusion="sum")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"regime_weights": {"nameless": {"graph": 2.0}}}, "a regime 'nameless' that no rank constant names"),
        ({"regime_weights": {"named": {"regex": 2.0}}}, "a leg 'regex' that has no weight"),
        ({"regime_weights": {"named": {"graph": 0}}}, "regime_weights.named.graph must be a number from 0.001"),
        ({"rerank_depth": 0}, "rerank_depth must be a whole number from 1 to 1000"),
    ],
)
def test_settings_out_of_range_are_refused_with_a_sentence(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        recipe("default", **changes)


def test_scored_takes_the_least_score_of_the_first_hundred() -> None:
    # 110 falling scores: the 100th, 11, is the zero; what stands behind it counts nothing
    falling = [float(110 - place) for place in range(110)]
    shares = shares_of("scored", "dense", falling, 110, 60)
    assert shares[0] == 1.0
    assert shares[98] == pytest.approx(1 / 99)
    assert shares[99] == shares[109] == 0.0


def test_of_a_few_lexical_memories_the_last_is_no_zero() -> None:
    assert shares_of("scored", "lexical", [float(15 - place) for place in range(15)], 15, 60)[-1] == pytest.approx(
        1 / 15
    )
    assert shares_of("scored", "lexical", [float(20 - place) for place in range(20)], 20, 60)[-1] == 0.0


def test_what_a_list_names_twice_counts_at_its_first_place() -> None:
    numbers = {"weights": {"dense": 1.0}, "rank_constants": {"dense": 60}, "planned": ["dense"]}
    found = rank_as("convex", {"dense": ["a", "b", "a"]}, {"dense": [3.0, 2.0, 1.0]}, **numbers)  # type: ignore[arg-type]
    assert [(one.key, one.ranks) for one in found] == [("a", {"dense": 1}), ("b", {"dense": 2})]
    assert found[0].score == 1.0
