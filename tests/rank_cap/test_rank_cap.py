from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.fusion import fuse, rank
from semmem.model.errors import InvalidInput
from semmem.model.recipe import RECIPES, Fusion, recipe
from semmem.rank_cap import reach, reach_in, reach_of
from semmem.rank_cap.guaranteed_slots import exact_floor
from semmem.rank_cap.places import Listed, Lists
from semmem.rank_cap.report import CLASSES, LegReach, Witness, describe

LEGS = ("lexical", "dense", "graph")
REGIMES = ["anchored", "described", "named", "unnamed"]


def graph(weight: float, constant: float, k: int, base: float = 60.0) -> LegReach:
    return reach_of((1, 1, weight), (base, base, constant), k).regimes["any"].legs["graph"]


def classes(name: str, k: int) -> dict[str, dict[str, str]]:
    found = reach(RECIPES[name], k)
    return {name: {leg: r.class_ for leg, r in regime.legs.items()} for name, regime in found.regimes.items()}


# --- the statements the project exists for -----------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5, 10, 20, 50])
def test_the_seed_graph_is_boost_only_for_every_cut_off_up_to_fifty(k: int) -> None:
    assert classes("seed", k)["any"]["graph"] == "boost-only"


def test_the_seed_reach_at_ten() -> None:
    assert classes("seed", 10) == {"any": {"lexical": "possible", "dense": "possible", "graph": "boost-only"}}
    leg = reach(RECIPES["seed"], 10).regimes["any"].legs["graph"]
    assert leg.value == Fraction(35, 6100)  # .35/61
    assert leg.lower_bar == Fraction(1, 70)
    assert leg.certificate == (
        "The first place of graph earns 0.35/(60 + 1) = 7/1220 = 0.00574; the first 10 of lexical earn at least "
        "1/(60 + 10) = 1/70 = 0.01429 each, which is more."
    )
    assert leg.witness is None


@pytest.mark.parametrize("k", [5, 6, 7, 8, 9, 10, 20, 50, 100])
def test_every_leg_of_the_default_is_guaranteed_in_every_regime_from_five_on(k: int) -> None:
    everyone = dict.fromkeys(LEGS, "guaranteed")
    assert classes("default", k) == dict.fromkeys(("anchored", "described", "named", "unnamed"), everyone)
    assert reach(RECIPES["default"], k).worst == "guaranteed"


def test_the_former_default_without_its_reserve_locks_out_what_only_a_full_leg_found() -> None:
    bare = reach(recipe("default-0.1", reserve={}), 5)
    # .35/(8 + 5) = .0269 > 1/61 = .0164: five memories of the graph stand above a first lexical place
    assert {leg: r.class_ for leg, r in bare.regimes["unnamed"].legs.items()} == {
        "lexical": "boost-only",
        "dense": "boost-only",
        "graph": "possible",
    }
    # named: .35/(0 + 1) = .35 against at most (2 x .31742 + .35 x (1/2 + .. + 1/6))/5 < .14
    assert bare.regimes["named"].legs["graph"].class_ == "guaranteed"
    kept = reach(RECIPES["default-0.1"], 5).regimes["unnamed"].legs["lexical"]
    assert (kept.class_, kept.class_without_reserve) == ("guaranteed", "boost-only")
    assert kept.certificate.startswith("The reserve gives the first memory of lexical place 4 or better of 5.")


def test_the_default_without_its_reserve_locks_out_lexical_finds_of_five_and_dense_ones_where_a_name_is_known() -> None:
    bare = reach(recipe("default", reserve={}), 5)
    # unnamed: .1/5 = .02 is below .35/(8 + 5) = .0269, and .35/9 = .0389 above it; named: the graph holds .35/5 = .07
    assert {leg: r.class_ for leg, r in bare.regimes["unnamed"].legs.items()} == {
        "lexical": "boost-only",
        "dense": "possible",
        "graph": "possible",
    }
    assert {leg: r.class_ for leg, r in bare.regimes["named"].legs.items()} == {
        "lexical": "boost-only",
        "dense": "boost-only",
        "graph": "guaranteed",
    }


def test_a_place_kept_for_what_most_legs_put_first_costs_a_leg_one_guaranteed_place_and_the_only_one() -> None:
    kept, bare = (reach(recipe("default", reserve=r), 1).regimes["named"].legs for r in ({"agreed": 1}, {}))
    assert (bare["graph"].class_, kept["graph"].class_) == ("guaranteed", "possible")
    of_two = reach(recipe("hybrid", reserve={"agreed": 1}), 1).regimes["any"].legs["dense"]
    assert of_two.class_ == reach(RECIPES["hybrid"], 1).regimes["any"].legs["dense"].class_


def test_a_reserved_place_below_the_cut_guarantees_nothing() -> None:
    legs = reach(RECIPES["default-0.1"], 4).regimes["unnamed"].legs
    assert (legs["dense"].class_, legs["lexical"].class_) == ("boost-only", "guaranteed")


# --- the two tables ----------------------------------------------------------------------------------------------

THRESHOLDS = {
    1: (0.333, 0.182, 0.095, 0.039),
    5: (0.600, 0.400, 0.240, 0.109),
    10: (0.733, 0.550, 0.367, 0.183),
    20: (0.840, 0.700, 0.525, 0.300),
    60: (0.938, 0.871, 0.762, 0.555),
    100: (0.962, 0.918, 0.842, 0.673),
}


@pytest.mark.parametrize("constant", list(THRESHOLDS))
@pytest.mark.parametrize(("column", "k"), list(enumerate((5, 10, 20, 50))))
def test_the_weight_above_which_a_first_place_can_enter(constant: int, column: int, k: int) -> None:
    leg = graph(0.35, constant, k, base=constant)
    assert leg.possible_above_weight == Fraction(constant + 1, constant + k)
    assert round(float(leg.possible_above_weight), 3) == THRESHOLDS[constant][column]


LAST_RANKS = {
    2: {5: (20, 5, 1), 10: (22, 8, 2), 20: (25, 9, 3), 50: (36, 11, 5)},
    4: {5: (18, 5, 0), 10: (20, 6, 1), 20: (23, 7, 2), 50: (34, 9, 4)},
    8: {5: (14, 2, 0), 10: (16, 3, 0), 20: (19, 4, 0), 50: (30, 6, 1)},
    10: {5: (12, 1, 0), 10: (14, 1, 0), 20: (17, 2, 0), 50: (28, 4, 0)},
}


@pytest.mark.parametrize("constant", list(LAST_RANKS))
@pytest.mark.parametrize("k", [5, 10, 20, 50])
def test_the_last_rank_over_the_bar_and_the_ranks_that_are_guaranteed(constant: int, k: int) -> None:
    leg = graph(0.35, constant, k)
    assert (leg.last_rank_over_bar, leg.base_guaranteed_ranks, leg.guaranteed_ranks) == LAST_RANKS[constant][k]
    tied = leg.value and leg.weight / (constant + leg.last_rank_over_bar + 1) == leg.lower_bar  # .35/28 = 1/80
    assert leg.last_possible_rank == min(k, leg.last_rank_over_bar + tied)


@pytest.mark.parametrize(("k", "possible", "guaranteed"), [(5, 21, 3), (10, 23, 4), (20, 26, 5), (50, 37, 8)])
def test_the_largest_rank_constants_at_weight_35(k: int, possible: int, guaranteed: int) -> None:
    leg = graph(0.35, 60, k)
    assert (leg.possible_up_to_constant, leg.guaranteed_up_to_constant) == (possible, guaranteed)
    beyond = graph(0.35, possible + 1, k)
    assert graph(0.35, possible, k).class_ == "possible"
    assert beyond.class_ == ("possible" if beyond.tie else "boost-only")  # at k = 20, .35/28 = 1/80: a tie
    assert [graph(0.35, c, k).class_ for c in (guaranteed, guaranteed + 1)] == ["guaranteed", "possible"]


def test_a_tie_with_the_lower_bar_may_go_either_way_so_it_is_possible_and_says_that_it_is_a_tie() -> None:
    # k = 20, k_g = 27: .35/28 = 1/80 exactly, although the floats differ
    tie = graph(0.35, 27, 20)
    assert (tie.class_, tie.tie, tie.value) == ("possible", "lower_bar", Fraction(1, 80))
    assert (tie.last_possible_rank, tie.last_rank_over_bar) == (1, 0)
    assert "exactly as much as the least that place 20 of the others can have; a tie goes by key" in tie.certificate
    assert (graph(0.3501, 27, 20).class_, graph(0.3501, 27, 20).tie) == ("possible", None)
    assert (graph(0.3499, 27, 20).class_, graph(0.3499, 27, 20).tie) == ("boost-only", None)


@pytest.mark.parametrize(
    ("weight", "class_", "own", "enters"),
    [
        (0.35, "possible", "a", True),
        (0.35, "possible", "z", False),
        # below the bar by less than fusion's rounding to 13 places, so a tie all the same, and by more
        (0.3499999999999, "possible", "a", True),
        (0.3499999999999, "possible", "z", False),
        (0.349999999999, "boost-only", "a", False),
    ],
)
def test_the_key_decides_a_tie_in_the_real_fusion(weight: float, class_: str, own: str, enters: bool) -> None:
    assert graph(weight, 27, 20).class_ == class_
    text = [f"m{i:02}" for i in range(1, 21)]
    constants = {"lexical": 60.0, "dense": 60.0, "graph": 27.0}
    lists = {"lexical": text, "dense": text[:19], "graph": [own]}
    fused = rank(lists, weights={"lexical": 1, "dense": 1, "graph": weight}, rank_constants=constants, planned=LEGS)
    assert (own in [f.key for f in fused[:20]]) == enters


def test_a_tie_at_a_rank_below_the_first_is_possible_too() -> None:
    # .35/(8 + 20) = 1/80 = 1/(60 + 20)
    leg = graph(0.35, 8, 20)
    assert (leg.class_at(19), leg.class_at(20), leg.class_at(21), leg.tie) == (
        "possible",
        "possible",
        "boost-only",
        None,
    )


def test_a_tie_with_the_upper_bar_is_not_guaranteed() -> None:
    # one other leg, k = 1: B_max = 1/(0 + 1) + w/(0 + 2) = w/(0 + 1) at w = 2
    tie = reach_of((1, 2), (0, 0), 1, names=("lexical", "graph")).regimes["any"].legs["graph"]
    assert (tie.class_, tie.tie, tie.guaranteed_above_weight) == ("possible", "upper_bar", Fraction(2))


@pytest.mark.parametrize("k", [1, 5, 10])
@pytest.mark.parametrize("constant", [0, 8, 60])
def test_the_weight_thresholds_are_where_the_class_changes(k: int, constant: int) -> None:
    leg, little = graph(0.35, constant, k), Fraction(1, 10**9)
    possible, guaranteed = leg.possible_above_weight, leg.guaranteed_above_weight
    assert possible is not None
    assert guaranteed is not None
    assert graph(possible - little, constant, k).class_ == "boost-only"  # type: ignore[arg-type]
    assert graph(possible, constant, k).tie == "lower_bar"  # type: ignore[arg-type]
    assert graph(possible + little, constant, k).class_ == "possible"  # type: ignore[arg-type]
    assert graph(guaranteed, constant, k).class_ == "possible"  # type: ignore[arg-type]
    assert graph(guaranteed + 1000 * little, constant, k).class_ == "guaranteed"  # type: ignore[arg-type]


# --- witnesses, as fused by the real thing -----------------------------------------------------------------------


def place(witness: Witness, weights: dict[str, float], constants: dict[str, float]) -> int:
    lists = {leg: list(ids) for leg, ids in witness.rankings.items()}
    return [f.key for f in fuse(lists, weights, constants)].index(witness.memory) + 1


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 50])
@pytest.mark.parametrize("constant", [0, 2, 8, 20, 30, 60])
@pytest.mark.parametrize("weight", [0.35, 0.9, 1.0, 3.0])
def test_the_witnesses_of_every_leg_do_what_they_say(k: int, constant: int, weight: float) -> None:
    weights, constants = (
        {"lexical": 1.0, "dense": 0.8, "graph": weight},
        {"lexical": 60, "dense": 50, "graph": constant},
    )
    for leg in reach_of(weights, constants, k).regimes["any"].legs.values():
        assert (leg.witness is not None) == (leg.class_ in ("possible", "guaranteed"))
        if leg.witness:
            assert place(leg.witness, weights, constants) <= k
            assert [name for name, ids in leg.witness.rankings.items() if leg.witness.memory in ids] == [leg.leg]
        if leg.counter_witness:
            assert leg.class_ == "possible"
            assert place(leg.counter_witness, weights, constants) > k


def test_a_possible_leg_of_the_seed_is_shown_both_ways() -> None:
    leg = reach(RECIPES["seed"], 3).regimes["any"].legs["lexical"]
    assert leg.witness is not None
    assert leg.witness.rankings == {
        "dense": ("m1", "m2", "tail0"),
        "graph": ("m1", "m2", "tail1"),
        "lexical": ("only-lexical",),
    }
    assert leg.counter_witness is not None
    assert leg.counter_witness.rankings["lexical"][0] == "only-lexical"


def test_no_lists_are_shown_in_which_a_memory_that_no_leg_names_has_the_bonus() -> None:
    # on a later page no place is sure, but two competitors do not keep a third memory out of the first three
    plan = recipe("lexical", weights={"lexical": 1, "graph": 1}, rank_constants={"graph": 60}, exact_bonus=2)
    lists = {"lexical": Listed.of("ab", exact="ab"), "graph": Listed.of("c")}
    leg = reach_in(plan, Lists(lists, decided=3), 3).regimes["any"].legs["graph"]
    assert (leg.class_, leg.counter_witness) == ("possible", None)
    two = reach_in(plan, Lists(lists, decided=2), 2).regimes["any"].legs["graph"]
    assert two.counter_witness is not None
    assert two.counter_witness.exact == ("m1", "m2")


@pytest.mark.parametrize("fusion", ["rrf", "convex"])
def test_where_all_that_was_found_is_shown_no_lists_are(fusion: Fusion) -> None:
    # both legs found the one memory that there is; lists of two memories would show another thing
    plan = recipe("hybrid", weights={"lexical": 1, "dense": 3}, fusion=fusion)
    lists = Lists({leg: Listed.of("a") for leg in ("lexical", "dense")}, decided=1, kept=1, places=1)
    leg = reach_in(plan, lists, 1).regimes["any"].legs["lexical"]
    assert (leg.class_, leg.witness, leg.counter_witness) == ("guaranteed", None, None)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["named", "unnamed"]), st.sampled_from(["default", "unreserved"]))
def test_no_lists_keep_guaranteed_ranks_out_of_the_real_pipeline(data: st.DataObject, regime: str, which: str) -> None:
    k = data.draw(st.integers(5, 12))
    settings: dict[str, object] = {} if which == "default" else {"reserve": {"lexical": 4, "dense": 5}}
    used = recipe("default", **settings)
    memories = st.permutations([f"m{i:02d}" for i in range(16)])
    rankings = {leg: data.draw(memories) for leg in LEGS}
    constants = used.constants(regime)
    fused = rank(rankings, weights=used.weights, rank_constants=constants, planned=LEGS, reserve=used.reserve)
    top = [f.key for f in fused[:k]]
    for name, leg in reach(used, k).regimes[regime].legs.items():
        assert set(rankings[name][: leg.guaranteed_ranks]) <= set(top)


# --- what is reported --------------------------------------------------------------------------------------------


def test_the_report_is_json_of_the_promised_shape() -> None:
    told = json.loads(json.dumps(reach(RECIPES["default"], 10).as_dict()))
    assert list(told) == ["recipe", "k", "regimes", "assumptions"]
    assert (told["recipe"], told["k"], list(told["regimes"])) == ("default", 10, REGIMES)
    for regime in told["regimes"].values():
        assert list(regime) == ["legs"]
        assert all(leg["class"] in CLASSES for leg in regime["legs"].values())
    graph = told["regimes"]["unnamed"]["legs"]["graph"]
    assert (graph["value"], graph["exact"]["value"]) == (pytest.approx(0.35 / 9), "7/180")


def test_legs_that_fall_short_of_what_is_required_are_named() -> None:
    assert reach(RECIPES["seed"], 10).short_of("possible") == [("any", "graph", "boost-only")]
    assert reach(RECIPES["default"], 5).short_of("guaranteed") == []
    off = reach(recipe("default", weights={"graph": 0}, reserve={}), 10)
    assert [leg for _, leg, _ in off.short_of()] == ["graph"]
    assert off.short_of(called=True) == []


def test_the_table_has_a_row_for_every_leg_of_every_regime() -> None:
    rows = describe(reach(RECIPES["default"], 4))
    assert [(row["regime"], row["leg"]) for row in rows] == [(r, leg) for r in REGIMES for leg in LEGS]
    seed = describe(reach(RECIPES["seed"], 10))[2]
    assert seed["class"] == "boost-only"
    assert seed["what would change it"] == (
        "possible: weight > 0.871 or rank constant <= 23 or a guaranteed slot <= 10"
    )


def test_bare_numbers_are_checked() -> None:
    with pytest.raises(InvalidInput, match="one rank constant per weight: 3 weights, 2 constants"):
        reach_of((1, 1, 0.35), (60, 60), 10)
    with pytest.raises(InvalidInput, match="The weight of dense must be 0 or more, not -1"):
        reach_of((1, -1), (60, 60), 10)
    with pytest.raises(InvalidInput, match="The cut-off k must be at most 2000, not 2001"):
        reach("seed", 2_001)
    with pytest.raises(InvalidInput, match="The cut-off k must be 1 or more, not 0"):
        reach(RECIPES["seed"], 0)
    assert list(reach_of((1, 1, 1, 1), (60, 60, 60, 60), 10).regimes["any"].legs) == [*LEGS, "leg4"]


def test_the_least_factor_of_an_importance_is_exact_and_that_of_the_recipe() -> None:
    bounded = replace(RECIPES["seed"], prior_floor=None)  # every rank constant is 60, so 1 - 1/2 / 62
    assert exact_floor(bounded, bounded.constants()) == Fraction(123, 124)
    assert bounded.floor() == pytest.approx(123 / 124)
    assert exact_floor(RECIPES["seed"], {"dense": 60.0}) == Fraction(7, 10)
