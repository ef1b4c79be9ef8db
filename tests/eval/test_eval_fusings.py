"""Fusing cached lists: each formula by hand, and what all of them share."""

from __future__ import annotations

import pytest

from eval.experiments.fusion import fused_places, lists_of, regime_of
from eval.experiments.lists import Asked, Found, Key
from semmem.model.recipe import RECIPES, Recipe, recipe


def keys(*ids: str) -> list[tuple[Key, float]]:
    return [((id, 0), 10.0 - i) for i, id in enumerate(ids)]


def known(**content: str) -> dict[Key, Found]:
    return {(id, 0): Found(0.5, text) for id, text in content.items()}


LISTS = Asked("q", "named", {"lexical": keys("a", "b"), "dense": keys("b", "c"), "graph": keys("d", "a")})
FOUND = known(a="1", b="2", c="3", d="4")
PLAIN = Recipe(
    "plain", {"lexical": 1.0, "dense": 1.0, "graph": 0.35}, {"lexical": 60.0, "dense": 60.0, "graph": 60.0}, prior=False
)


def test_weighted_rrf_by_hand() -> None:
    # a 1/61 + .35/62 = .0220; b 1/62 + 1/61 = .0325; c 1/62 = .0161; d .35/61 = .0057
    assert fused_places(PLAIN, LISTS, FOUND).places == ("b", "a", "c", "d")


def test_components_come_with_the_places_and_sum_as_recall_has_them() -> None:
    fused = fused_places(PLAIN, LISTS, FOUND)
    # first in every planned leg would get 2/61 + .35/61 = 2.35/61; c has 1/62 of it from dense alone
    assert fused.components[2] == pytest.approx({"dense": (1 / 62) / (2.35 / 61)})


def test_a_private_rank_constant_depends_on_the_regime_of_the_question() -> None:
    default = RECIPES["default"]
    assert regime_of(default, LISTS) == "named"
    assert regime_of(RECIPES["seed"], LISTS) == "any"
    # named: k_g = 0, so d has .35/1 and a has .35/2 + 1/61 = .191; b .0325
    assert fused_places(default, LISTS, FOUND).places[:3] == ("d", "a", "b")


def test_a_leg_that_is_left_out_contributes_no_memory() -> None:
    assert fused_places(RECIPES["hybrid"], LISTS, FOUND).places == ("b", "a", "c")


def test_an_excluded_leg_has_neither_finds_nor_votes() -> None:
    excluded = fused_places(PLAIN, LISTS, FOUND, excluded="graph").places
    assert excluded == fused_places(recipe(PLAIN, weights={"graph": 0.0}), LISTS, FOUND).places == ("b", "a", "c")


def test_a_list_is_cut_to_the_depth_of_the_recipe() -> None:
    shallow = recipe(PLAIN, depths={"lexical": 1, "dense": 1, "graph": 1})
    assert fused_places(shallow, LISTS, FOUND).places == ("a", "b", "d")


def test_the_prior_multiplies_and_importance_can_turn_the_order() -> None:
    lists = Asked("q", "any", {"lexical": keys("a", "b")})
    memories = {("a", 0): Found(0.0, "1"), ("b", 0): Found(1.0, "2")}
    with_prior = recipe("lexical", prior_floor=0.7)
    # a .7/61 = .01148, b 1/62 = .01613
    assert fused_places(with_prior, lists, memories).places == ("b", "a")
    assert fused_places(recipe("lexical", prior=False), lists, memories).places == ("a", "b")


def test_equal_contents_fold_into_the_first_and_come_along() -> None:
    memories = known(a="same", b="2", c="same", d="4")
    assert fused_places(PLAIN, LISTS, memories).places == ("b", ("a", "c"), "d")
    assert fused_places(recipe(PLAIN, dedup=False), LISTS, memories).places == ("b", "a", "c", "d")


def test_parts_of_one_memory_give_it_its_best_place_alone() -> None:
    lists = Asked("q", "any", {"lexical": [(("m", 2), 3.0), (("x", 0), 2.0), (("m", 1), 1.0)]})
    memories = {("m", 2): Found(0.5, "1"), ("x", 0): Found(0.5, "2"), ("m", 1): Found(0.5, "3")}
    assert fused_places(RECIPES["lexical"], lists, memories).places == ("m", "x")


def scored(fusion: str, lists: dict[str, list[tuple[Key, float]]], **weights: float) -> tuple[object, ...]:
    ids = {key: Found(0.5, key[0]) for pairs in lists.values() for key, _ in pairs}
    form = Recipe("x", weights, dict.fromkeys(weights, 60.0), prior=False, fusion=fusion)  # type: ignore[arg-type]
    return fused_places(form, Asked("q", "any", lists), ids).places


def test_convex_scales_each_list_to_its_own_minimum_and_maximum() -> None:
    lists = {
        "lexical": [(("a", 0), 30.0), (("b", 0), 15.0), (("c", 0), 10.0)],
        "dense": [(("c", 0), 0.9), (("b", 0), 0.8)],
    }
    # a 1; b (15 - 10)/20 = .25 + .5 * 0 = .25; c 0 + .5 * 1 = .5
    assert scored("convex", lists, lexical=1.0, dense=0.5) == ("a", "c", "b")


def test_tm2c2_scales_a_cosine_from_minus_one_and_bm25_from_zero() -> None:
    lists = {
        "lexical": [(("a", 0), 30.0), (("b", 0), 15.0), (("c", 0), 10.0)],
        "dense": [(("c", 0), 0.9), (("b", 0), 0.8)],
    }
    # a 1; b 15/30 + .5 * 1.8/1.9 = .974; c 10/30 + .5 = .833: b passes c, as the last of a list keeps a share
    assert scored("tm2c2", lists, lexical=1.0, dense=0.5) == ("a", "b", "c")


def test_scored_counts_a_lexical_score_against_the_best_that_the_question_allows() -> None:
    form = recipe("scored", prior=False, exact_bonus=0.0, reserve={})
    memories, legs = known(a="1"), {"lexical": [(("a", 0), 10.0)]}
    alone = fused_places(form, Asked("q", "any", legs), memories).components[0]["lexical"]
    weak = fused_places(form, Asked("q", "any", legs, most={"lexical": 80.0}), memories).components[0]["lexical"]
    # alone 10/10; of 80 half counts, so 10/40
    assert weak == pytest.approx(alone / 4)


def test_rank_scaled_lets_the_weight_stretch_the_ranks() -> None:
    lists = {"lexical": keys("a", "b", "d", "e"), "graph": keys("c")}
    # the graph's first stands where a rank of 1/.35 = 2.86 would: behind b, before d
    assert scored("rank-scaled", lists, lexical=1.0, graph=0.35) == ("a", "b", "c", "d", "e")
    # plain RRF at the same weight puts it last: .35/61 is less than 1/64
    assert scored("rrf", lists, lexical=1.0, graph=0.35) == ("a", "b", "d", "e", "c")


@pytest.mark.parametrize("fusion", ["rrf", "convex", "tm2c2", "rank-scaled"])
def test_the_reserve_gives_every_formula_the_same_promise(fusion: str) -> None:
    lists = Asked("q", "any", {"lexical": keys(*"abcdefgh"), "dense": keys(*"abcdefgh"), "graph": keys("z")})
    memories = known(**{c: c for c in "abcdefghz"})
    reserved = recipe(PLAIN, reserve={"graph": 3}, weights={"graph": 0.01}, fusion=fusion)
    assert fused_places(reserved, lists, memories).places[2] == "z"


def test_what_reach_may_know_of_cached_lists_is_where_each_memory_begins_when_copies_are_folded() -> None:
    lists = Asked("q", "named", {"lexical": keys("a", "b", "c", "d", "e", "f")})
    alone = Recipe("alone", {"lexical": 1.0}, {"lexical": 60.0}, prior=False)
    copies = known(a="1", b="1", c="1", d="2", e="3", f="3")
    told = lists_of(alone, lists, copies, 2)
    assert (told.lists["lexical"].firsts, told.places, told.folded, told.decided) == ((1, 4, 5), 3, 3, 2)
    assert lists_of(recipe(alone, dedup=False), lists, copies, 2).lists["lexical"].firsts == (1, 2, 3, 4, 5, 6)


def test_the_scores_of_cached_lists_are_known_to_reach_where_the_formula_reads_them() -> None:
    lists = Asked("q", "named", {"lexical": [(("a", 0), 6.0), (("b", 0), 3.0), (("c", 0), 2.0)]})
    alone = Recipe("alone", {"lexical": 1.0}, {"lexical": 60.0}, prior=False)
    memories = known(a="1", b="2", c="3")
    assert lists_of(recipe(alone, fusion="convex"), lists, memories, 2).lists["lexical"].shares == (1.0, 0.25, 0.0)
    assert lists_of(alone, lists, memories, 2).lists["lexical"].shares is None
