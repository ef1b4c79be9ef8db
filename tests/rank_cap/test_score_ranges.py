"""Reach of a fusion that reads scores before a question, where the shares of its places have a range."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from semmem.fusion import shares_of
from semmem.model.errors import InvalidInput
from semmem.model.leg_scores import reads_scores
from semmem.model.recipe import RECIPES, Recipe, recipe
from semmem.rank_cap import reach
from semmem.rank_cap.places import WITHIN_RANGES
from semmem.rank_cap.report import LegReach
from semmem.rank_cap.score_ranges import ShareRange, seen, within
from tests.rank_cap.test_score_reach import ONLY, SCALED, is_in, some_lists, some_recipe


def of(plan: Recipe, leg: str, k: int, ranges: Mapping[str, ShareRange]) -> LegReach:
    return next(iter(reach(plan, k, ranges=ranges).regimes.values())).legs[leg]


# --- by hand -----------------------------------------------------------------------------------------------------


def test_cosines_above_nought_give_every_dense_place_of_tm2c2_half_a_share() -> None:
    cosines = within("tm2c2", "dense", 0.0, 1.0, 100)
    assert (cosines.least[:3], cosines.most[:3]) == ((1.0, 0.5, 0.5), (1.0, 1.0, 1.0))
    # the tenth of the dense leg has .5 of its weight 1, so a lexical leg of weight .4 brings in nothing of its own
    plan = recipe("tm2c2", weights={"lexical": 0.4, "dense": 1.0})
    assert of(plan, "lexical", 10, {}).class_ == "possible"
    leg = of(plan, "lexical", 10, {"dense": cosines})
    assert (leg.class_, leg.lower_bar) == ("boost-only", Fraction(1, 2))
    assert leg.certificate == (
        "The first place of lexical earns at most 0.4; the 10 best of the others have at least 0.5 each, which is more."
    )
    assert of(recipe(plan, weights={"lexical": 0.5}), "lexical", 10, {"dense": cosines}).class_ == "possible"


def test_a_first_place_is_guaranteed_where_later_places_fall_off_far_enough() -> None:
    # places 2 and 3 of the dense leg earn .2 at most, those of the lexical leg, of weight .3, no more than .3, .15, .15
    falls = {
        "dense": ShareRange((1.0, 0.0, 0.0), (1.0, 0.2, 0.2)),
        "lexical": ShareRange((1.0, 0.0, 0.0), (1.0, 0.5, 0.5)),
    }
    plan = recipe("convex", weights={"lexical": 0.3, "dense": 1.0}, depths={"lexical": 100, "dense": 100})
    leg = of(plan, "dense", 2, falls)
    # two competitors share .3 + .15 from the lexical leg and .2 + .2 from this one: .425 each
    assert (leg.class_, leg.upper_bar, leg.guaranteed_ranks) == ("guaranteed", Fraction(17, 40), 1)
    assert leg.certificate.startswith(
        "The first place of dense earns at most 1, and 2 competitors cannot all have more than"
    )
    assert of(plan, "dense", 2, {"dense": falls["dense"]}).class_ == "possible"
    # a first place that may earn as little as .4 is not sure
    weak = {**falls, "dense": ShareRange((0.4, 0.0, 0.0), (1.0, 0.2, 0.2))}
    assert of(plan, "dense", 2, weak).class_ == "possible"
    enough = of(plan, "dense", 2, {**falls, "dense": ShareRange((0.5, 0.0, 0.0), (1.0, 0.2, 0.2))})
    assert enough.class_ == "guaranteed"
    assert enough.certificate.startswith("The first place of dense earns at least 0.5, and 2 competitors")


def test_the_ranges_are_named_among_the_assumptions_and_lists_beyond_them_contradict_the_class() -> None:
    plan = recipe("convex", weights={"lexical": 1.0, "dense": 0.3})
    slow = {"lexical": ShareRange((1.0, 0.8, 0.6), (1.0, 1.0, 1.0))}
    assert WITHIN_RANGES in reach(plan, 3, ranges=slow).assumptions
    assert WITHIN_RANGES not in reach(plan, 3).assumptions
    assert of(plan, "dense", 3, slow).class_ == "boost-only"
    lists = {"lexical": list("abcd"), "dense": [ONLY, "e"]}
    inside = {"lexical": [10.0, 8.0, 6.0, 0.0], "dense": [0.9, 0.1]}
    beyond = {"lexical": [10.0, 8.0, 2.0, 0.0], "dense": [0.9, 0.1]}
    assert [is_in(plan, "any", 3, lists, scores, ONLY) for scores in (inside, beyond)] == [False, True]


def test_what_was_seen_is_the_least_and_the_most_of_each_place_and_nothing_where_a_list_ends() -> None:
    assert seen([[1.0, 0.5, 0.0], [1.0, 0.75]]) == ShareRange((1.0, 0.5, 0.0), (1.0, 0.75, 0.0))
    assert seen([[1.0], [1.0, 0.75, 0.25]]) == ShareRange((1.0, 0.0, 0.0), (1.0, 0.75, 0.25))
    assert seen([[1.0], [1.0, 0.75, 0.25]]).to(5) == ((1.0, 0.75, 0.25, 0.25, 0.25), (1.0, 0.0, 0.0, 0.0, 0.0))


# --- what is no range --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        ((), (), "a least and a most share for each place"),
        ((1.0,), (1.0, 0.5), "a least and a most share for each place"),
        ((0.9,), (0.8,), "the least no larger than the most"),
        ((0.5,), (1.5,), "between 0 and 1"),
        ((0.1, 0.2), (1.0, 1.0), "a later place cannot earn more"),
    ],
)
def test_shares_that_no_list_can_have_are_refused(
    least: tuple[float, ...], most: tuple[float, ...], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        ShareRange(least, most)


def test_a_range_is_refused_where_it_says_nothing() -> None:
    some = ShareRange((1.0,), (1.0,))
    with pytest.raises(InvalidInput, match="The fusion rrf reads no scores"):
        reach("default", ranges={"dense": some})
    with pytest.raises(InvalidInput, match="The recipe asks no leg graph; give ranges for lexical, dense"):
        reach("convex", ranges={"graph": some})
    with pytest.raises(InvalidInput, match="must be a range such as 0:1"):
        within("tm2c2", "dense", 1.0, 0.0, 10)
    assert seen([[1.0, 0.0]]).least == within("convex", "dense", 0.2, 0.9, 2).least == (1.0, 0.0)


# --- against random lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("leg", ["lexical", "dense", "graph"])
def test_no_list_whose_scores_are_in_the_range_earns_less_or_more_than_its_shares_say(leg: str) -> None:
    draw = random.Random(leg)
    low = -1.0 if leg == "dense" else 0.0
    for _ in range(300):
        least, most = sorted(draw.choice([low, low / 2, 0.0, 0.2, 0.5, 1.0]) for _ in range(2))
        scores = sorted((draw.uniform(least, most) for _ in range(6)), reverse=True)
        for fusion in SCALED:
            if reads_scores(fusion, leg):
                top, bottom = within(fusion, leg, least, most, 6).to(6)
                for share, low_share, high_share in zip(shares_of(fusion, leg, scores, 6, 0), bottom, top, strict=True):
                    assert low_share - 1e-9 <= share <= high_share, (fusion, least, most, scores)


def shares(plan: Recipe, leg: str, scores: Sequence[float]) -> list[float]:
    return shares_of(plan.fusion, leg, scores, len(scores), 0)


@pytest.mark.slow
@pytest.mark.parametrize("fusion", SCALED)
@pytest.mark.parametrize("seed", range(3))
def test_no_lists_within_the_ranges_contradict_a_class_and_every_class_occurs(fusion: str, seed: int) -> None:
    draw = random.Random(f"ranges {fusion} {seed}")
    met: dict[str, set[bool]] = {"boost-only": set(), "possible": set(), "guaranteed": set()}
    for _ in range(150):
        plan, k = some_recipe(draw, fusion), draw.choice([1, 2, 3])  # type: ignore[arg-type]
        leg = draw.choice(plan.legs)
        rank = draw.randint(1, min(k + 1, plan.depths[leg]))
        asked = [some_lists(draw, plan, leg, rank, k, 8) for _ in range(draw.choice([1, 2, 3]))]
        ranges = {}
        for name in plan.legs:
            lists = [shares(plan, name, scores[name]) for _, scores in asked if scores[name]]
            if lists and reads_scores(plan.fusion, name):
                ranges[name] = seen(lists)
        said = of(plan, leg, k, ranges).class_at(rank)
        for lists, scores in asked:
            exact = draw.choice([[], lists.get("lexical", []), [m for m in lists.get("lexical", []) if m != ONLY]])
            entered = is_in(plan, "any", k, lists, scores, ONLY, exact)
            met[said].add(entered)
            assert entered or said != "guaranteed", (plan, k, rank, lists, scores, exact)
            assert not entered or said != "boost-only", (plan, k, rank, lists, scores, exact)
    assert met == {"boost-only": {False}, "possible": {True, False}, "guaranteed": {True}}


@pytest.mark.parametrize("name", ["convex", "tm2c2", "scored"])
def test_ranges_that_allow_everything_change_no_class(name: str) -> None:
    plan = RECIPES[name]
    ranges = {leg: within("convex", leg, 0.0, 1.0, 100) for leg in ("lexical", "dense")}
    if name == "scored":
        ranges["lexical"] = within("scored", "lexical", 0.0, 1.0, 100)
    for k in (1, 3, 10):
        bare, told = (
            {(regime, at): leg.class_ for regime, legs in found.regimes.items() for at, leg in legs.legs.items()}
            for found in (reach(plan, k), reach(plan, k, ranges=ranges))
        )
        assert bare == told
