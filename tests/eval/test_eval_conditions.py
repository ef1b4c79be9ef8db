"""Conditions and plans: what a person writes, and what is measured then."""

from __future__ import annotations

import pytest

from eval.experiments.conditions import ConditionError, ablations, fusions, named, sweep
from eval.experiments.lists import asking, group_key, grouped, shallow
from eval.experiments.plan import of_ablation, of_run, of_sweep
from semmem.model.errors import InvalidInput, UnknownRecipe
from semmem.model.recipe import RECIPES, recipe


def test_a_leg_that_is_left_out_is_absent_and_not_of_weight_zero() -> None:
    without = named("default~graph").recipe
    assert "graph" not in without.weights
    assert "graph" not in without.rank_constants
    assert without.reserve == {"agreed": 1, "lexical": 4, "dense": 5}
    assert without.legs == ("lexical", "dense")


def test_a_condition_can_drop_finds_and_change_the_formula() -> None:
    assert (named("default!graph").excluded, named("seed+convex").recipe.fusion) == ("graph", "convex")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("seed~nose", "seed has no leg 'nose' to leave out"),
        ("lexical~lexical", "has the leg lexical alone"),
        ("hybrid!graph", "hybrid has no leg 'graph'"),
        ("seed+sum", "There is no fusion 'sum'; choose one of convex, rank-scaled, rrf, scored, tm2c2"),
        ("~graph", "is no condition"),
    ],
)
def test_a_condition_that_does_not_exist_is_refused_in_a_sentence(name: str, sentence: str) -> None:
    with pytest.raises(ConditionError) as caught:
        named(name)
    assert sentence in str(caught.value)


def test_an_unknown_recipe_is_semmems_own_error() -> None:
    with pytest.raises(UnknownRecipe):
        named("nonesuch")


def test_a_range_is_decimal_and_has_both_ends() -> None:
    points = sweep(named("seed"), "graph.weight=0.05:0.35:0.05")
    # in floats .05 + 6 * .05 is .35000000000000003, which is another reach at a tie
    assert [c.recipe.weights["graph"] for c in points] == [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35]
    assert points[0].values == {"graph.weight": 0.05}


def test_a_swept_weight_of_zero_leaves_the_leg_out() -> None:
    assert "graph" not in sweep(named("seed"), "graph.weight=0,1")[0].recipe.weights


@pytest.mark.parametrize(
    ("setting", "read", "expected"),
    [
        ("graph.k=8", lambda r: r.rank_constants["graph"], 8.0),
        ("k=10", lambda r: dict(r.rank_constants), {"lexical": 10.0, "dense": 10.0, "graph": 10.0}),
        ("depth=15", lambda r: r.depths["dense"], 15),
        ("graph.depth=7", lambda r: (r.depths["graph"], r.depths["dense"]), (7, 100)),
        ("graph.reserve=2", lambda r: r.reserve["graph"], 2),
        ("graph.reserve=0", lambda r: dict(r.reserve), {"agreed": 1, "lexical": 4, "dense": 5}),
        ("reserve=0", lambda r: dict(r.reserve), {}),
        ("prior=0", lambda r: r.prior, False),
        ("exact_bonus=0.5", lambda r: r.exact_bonus, 0.5),
        ("dedup=0", lambda r: r.dedup, False),
        ("graph.seeds=3", lambda r: r.graph.seeds, 3),
        ("graph.max_df=50", lambda r: r.graph.max_df, 50),
        ("lexical.b=.75", lambda r: r.lexical.b, 0.75),
        ("lexical.match=all", lambda r: r.lexical.match, "all"),
        ("graph.alpha=0.3", lambda r: r.graph.alpha, 0.3),
        ("graph.walk=pagerank", lambda r: r.graph.walk, "pagerank"),
        ("graph.lower_case=0", lambda r: r.graph.lower_case, False),
        ("graph.known_names=0", lambda r: r.graph.known_names, False),
        ("fusion=convex", lambda r: r.fusion, "convex"),
        ("rerank=composite", lambda r: r.rerank, "composite"),
        ("rerank=cross_encoder:some/model", lambda r: r.rerank, "cross_encoder:some/model"),
        ("rerank=none", lambda r: r.rerank, None),
        ("rerank_depth=50", lambda r: r.rerank_depth, 50),
        ("conversation=0", lambda r: r.conversation, None),
        ("conversation=1", lambda r: r.conversation == RECIPES["default"].conversation, True),
        ("conversation.previous=.4", lambda r: r.conversation.previous, 0.4),
        ("conversation.collecting=0", lambda r: r.conversation.collecting, False),
    ],
)
def test_every_setting_turns_what_it_names(setting: str, read: object, expected: object) -> None:
    walk = ("graph.walk=pagerank",) if "alpha" in setting else ()  # the damping of a walk that is not walked is refused
    assert read(sweep(named("default"), *walk, setting)[0].recipe) == expected  # type: ignore[operator]


def test_names_can_be_swept_like_numbers() -> None:
    points = sweep(named("default"), "graph.walk=gated,pagerank", "rerank=none,composite")
    assert [c.name for c in points] == [
        "graph.walk=gated rerank=none",
        "graph.walk=gated rerank=composite",
        "graph.walk=pagerank rerank=none",
        "graph.walk=pagerank rerank=composite",
    ]
    assert points[3].values == {"graph.walk": "pagerank", "rerank": "composite"}


def test_pagerank_is_swept_over_its_damping() -> None:
    points = sweep(named("default"), "graph.walk=pagerank", "graph.alpha=.1:.9:.4")
    assert [c.recipe.graph.alpha for c in points] == [0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("graph.alpha=.3", "turns nothing else; add graph.walk=pagerank"),
        ("graph.lower_case=2", "graph.lower_case is a switch: 0 or 1, not 2"),
        ("graph.seeds=2.5", "graph.seeds is a whole number, not 2.5"),
        ("graph.colour=1", "graph has no setting 'colour' to turn; it has seeds, subject_share"),
        ("graph.seeders=1", "graph.seeders is a list and cannot be swept"),
        ("conversation.colour=1", "conversation has no setting 'colour' to turn; it has dialogue, author_lexical"),
    ],
)
def test_a_setting_that_cannot_be_turned_so_is_refused_in_a_sentence(setting: str, sentence: str) -> None:
    with pytest.raises(ConditionError) as caught:
        sweep(named("default"), setting)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("setting", ["graph.walk=random", "rerank=best", "fusion=sum", "graph.anchor_share=-1"])
def test_a_value_out_of_range_is_semmems_own_error(setting: str) -> None:
    with pytest.raises(InvalidInput):
        sweep(named("default"), setting)


def test_a_leg_that_is_not_called_has_no_settings_to_turn() -> None:
    with pytest.raises(ConditionError, match="hybrid has no leg 'graph'"):
        sweep(named("hybrid"), "graph.gate=0")


def test_two_settings_give_every_combination() -> None:
    points = sweep(named("seed"), "graph.weight=0,.5,1", "graph.k=4,60")
    assert [c.name for c in points][:3] == [
        "graph.weight=0 graph.k=4",
        "graph.weight=0 graph.k=60",
        "graph.weight=0.5 graph.k=4",
    ]
    assert len(points) == 6


@pytest.mark.parametrize("setting", ["graph.weight", "graph.weight=a:b:c", "graph.weight=2:1:1", "nose=1", "nose.k=1"])
def test_a_sweep_that_cannot_be_read_is_refused(setting: str) -> None:
    with pytest.raises(ConditionError):
        sweep(named("seed"), setting)


def test_a_setting_that_is_swept_twice_is_refused_instead_of_taken_once() -> None:
    with pytest.raises(ConditionError, match=r"^graph\.weight stands there twice; write all its values after one"):
        sweep(named("seed"), "graph.weight=0,.5", "graph.weight=1,2")


@pytest.mark.parametrize("values", ["0:1:.0000001", "0:inf:1"])
def test_a_range_of_more_values_than_anybody_waits_for_is_refused_at_once(values: str) -> None:
    with pytest.raises(ConditionError, match=r"take larger steps|are no numbers"):
        sweep(named("seed"), f"graph.weight={values}")


def test_an_ablation_compares_the_recipe_to_itself_without_the_leg() -> None:
    conditions, comparisons = of_ablation("default", ["graph"], controls=())
    assert [c.name for c in conditions] == ["default", "default~graph"]
    # above 0 must mean that the leg is worth having
    assert (comparisons[0].base, comparisons[0].other, comparisons[0].leg) == ("default~graph", "default", "graph")
    assert [c.leg for c in of_ablation("default", [], controls=())[1]] == ["lexical", "dense", "graph"]


def test_what_is_left_out_of_a_condition_that_drops_finds_drops_none() -> None:
    assert [one.excluded for one in ablations(named("seed!graph"))] == [None, None, None]


def test_a_run_studies_the_leg_in_which_two_recipes_differ() -> None:
    _, comparisons = of_run(["default", "hybrid", "seed", "default~graph"])
    assert [(c.other, c.leg) for c in comparisons] == [("hybrid", "graph"), ("seed", None), ("default~graph", "graph")]


def test_a_sweep_of_a_leg_is_compared_to_the_recipe_without_it() -> None:
    conditions, comparisons = of_sweep("seed", ["graph.weight=0:1:.5"])
    assert [c.name for c in conditions] == ["seed~graph", "graph.weight=0.5", "graph.weight=1"]
    assert {(c.base, c.leg) for c in comparisons} == {("seed~graph", "graph")}
    # what does not decide reach is compared to its own value
    assert {(c.base, c.leg) for c in of_sweep("seed", ["graph.gate=0,1"])[1]} == {("seed", None)}
    _, comparisons = of_sweep("seed", ["prior=0,1"])
    assert {(c.base, c.leg) for c in comparisons} == {("seed", None)}


def test_fusions_are_set_head_to_head_with_and_without_the_reserve() -> None:
    base = named("default")
    others = fusions(base)
    assert all(c.recipe.weights == base.recipe.weights for c in others)
    assert len(others) == 11  # five formulas and RRF at 60, twice, less the recipe itself
    assert sum(not c.recipe.reserve for c in others) == 6
    assert len(fusions(named("seed"))) == 4  # it has no reserve, and is RRF at 60 already


def test_recipes_that_differ_only_after_the_legs_share_their_lists() -> None:
    recipes = {
        "default": RECIPES["default"],  # its rules for authors and for names are its own
        "former": RECIPES["default-0.1"],
        "seed": RECIPES["seed"],
        "hybrid": RECIPES["hybrid"],
        "deeper": recipe("hybrid", depths={"dense": 150}),
        "no prior": recipe("seed", prior=False),
        "seeds": recipe("seed", graph={"seeds": 3}),
        "b": recipe("hybrid", lexical={"b": 0.75}),
    }
    groups = [sorted(g) for g in grouped(recipes)]
    assert sorted(groups) == [["b"], ["deeper", "former", "hybrid", "no prior", "seed"], ["default"], ["seeds"]]
    assert asking([recipes["seed"], recipes["deeper"]]).depths == {"dense": 150, "graph": 100, "lexical": 100}


def test_a_graph_that_other_legs_seed_is_another_list() -> None:
    assert group_key(RECIPES["seed"]) != group_key(ablations(named("seed"), ["dense"])[0].recipe)


def test_the_lists_are_asked_for_without_anything_that_comes_after_the_legs() -> None:
    wide = asking([RECIPES["default"]])
    assert (wide.prior, wide.dedup, dict(wide.reserve)) == (False, False, {})
    assert wide.exact_bonus > 0  # so that the lists say which memories would earn it
    assert wide.regimes == ("anchored", "described", "named", "unnamed")


def test_a_store_smaller_than_the_depth_is_asked_at_depth_fifteen() -> None:
    assert dict(shallow(RECIPES["seed"], 60).depths) == {"lexical": 15, "dense": 15, "graph": 15}
    assert shallow(RECIPES["seed"], 1_000) is RECIPES["seed"]
