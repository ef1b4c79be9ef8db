"""A recall answered again by another recipe from its own lists: the same as the recall by that recipe."""

from __future__ import annotations

import random
from typing import Any

import pytest

import semmem
from semmem.model.types import Hit
from tests.read.harbour import HARBOUR, fleet

QUESTIONS = ("ferry tide", "Who sails with the crew of Ana Roth at dawn?", "storm", "engine chart mast Kestrel")


def scored(result: semmem.Recall) -> list[tuple[Any, ...]]:
    def of(hit: Hit) -> tuple[Any, ...]:
        components = {name: round(share, 12) for name, share in hit.components.items()}
        return (
            hit.id,
            hit.rank,
            round(hit.score, 12),
            components,
            hit.legs,
            hit.superseded_by,
            hit.duplicates,
            hit.matches,
        )

    return [of(hit) for hit in result]


def drawn(rng: random.Random, plan: semmem.Recipe) -> semmem.Recipe:
    """Return a recipe that differs from ``plan`` in what fusion reads, often with a leg without a weight."""
    legs = ("lexical", "dense", "graph")
    weights = {leg: rng.choice((0.0, 0.1, 0.35, 1.0, 5.0)) for leg in legs}
    if not any(weights.values()):
        weights["dense"] = 1.0
    constants = {leg: rng.choice((0, 4, {"named": 2, "unnamed": 40})) for leg in legs}
    places = zip(legs, rng.sample(range(1, 6), 3), strict=True)
    reserve = {leg: place for leg, place in places if weights[leg] and rng.random() < 0.5}
    return semmem.recipe(
        plan, weights=weights, rank_constants=constants, reserve=reserve, prior=rng.random() < 0.5,
        recency_half_life=rng.choice((None, 30.0)),
    )  # fmt: skip


@pytest.mark.slow
def test_a_recall_again_is_the_recall_by_that_recipe_without_asking_a_leg(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(80))
    mem.remember("The Kestrel is a ferry. Ana Roth sails it.", id="k", title="Kestrel")
    mem.remember("Ana Roth keeps bees above the harbour.", id="a", title="Ana Roth")
    mem.link("k", "supersedes", mem.recall("ferry tide", limit=3)[2].id)
    rng = random.Random(7)
    answered = refused = 0
    for _ in range(30):
        question, limit, offset = rng.choice(QUESTIONS), rng.choice((1, 5, 20)), rng.choice((0, 0, 3))
        how: dict[str, Any] = {
            "limit": limit,
            "offset": offset,
            "exclude": rng.sample(["007", "008"], rng.randint(0, 2)),
        }
        before = mem.recall(question, **how)
        plan = drawn(rng, before.recipe)
        try:
            again = before.again(plan)
        except semmem.InvalidInput as error:
            refused += "needs other lists" in str(error)
            continue
        anew = mem.recall(question, recipe=plan, **how)
        assert scored(again) == scored(anew)
        assert (again.regime, again.total, again.total_is_exact) == (anew.regime, anew.total, anew.total_is_exact)
        assert again.confidence == anew.confidence
        assert again.reach.as_dict() == anew.reach.as_dict()
        answered += 1
    assert answered > 15
    assert refused > 0


def test_a_recall_again_keeps_its_floor_and_its_budget(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(30))
    before = mem.recall("ferry tide", token_budget=60)
    plan = semmem.recipe(before.recipe, weights={"lexical": 5.0})
    anew = mem.recall("ferry tide", token_budget=60, recipe=plan)
    assert (scored(before.again(plan)), before.again(plan).left_out) == (scored(anew), anew.left_out)
    unsure = mem.recall("zebra ferry", min_confidence=1)
    assert (len(unsure.again(plan)), unsure.again(plan).withheld) == (0, unsure.withheld)


@pytest.mark.parametrize(
    "change", [{"depths": {"lexical": 300}}, {"graph": {"hops": 2}}, {"fusion": "convex"}, {"exact_bonus": 1.0}]
)
def test_a_recipe_whose_legs_search_in_another_way_needs_another_recall(mem: semmem.Semmem, change: Any) -> None:
    mem.remember_many(fleet(10))
    before = mem.recall(HARBOUR[0])
    with pytest.raises(semmem.InvalidInput, match="That recipe needs other lists than those of this recall"):
        before.again(semmem.recipe(before.recipe, **change))
    alone = mem.recall(HARBOUR[0], recipe=semmem.recipe(weights={"dense": 0, "graph": 0}))
    with pytest.raises(semmem.InvalidInput, match="recall with it"):
        alone.again("default")


def test_a_reserve_of_a_regime_is_fused_again_without_asking_a_leg(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(40))
    before = mem.recall("ferry tide", limit=5)
    plan = semmem.recipe(before.recipe, regime_reserve={before.regime: {"graph": 2}})
    anew = mem.recall("ferry tide", recipe=plan, limit=5)
    assert scored(before.again(plan)) == scored(anew)
