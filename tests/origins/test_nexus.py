"""What is arithmetic in statement 23 of our origins: two weights from 0 to 5, and 0 means that a leg is absent."""

from __future__ import annotations

import pytest

from semmem.config import RECIPES, recipe
from semmem.rank_cap import reach
from semmem.score_fusion import rank_as
from semmem.types import Recipe


def ranked(chosen: Recipe, lists: dict[str, list[str]]) -> list[str]:
    plan = {"weights": chosen.weights_in(), "rank_constants": chosen.constants(), "planned": chosen.legs}
    return [f.key for f in rank_as(chosen.fusion, lists, {}, **plan)]  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [0, 0.5, 1, 5])
def test_23_each_weight_is_a_setting_from_zero_to_five(weight: float) -> None:
    changed = recipe("nexus", weights={"dense": weight})
    assert changed.weights["dense"] == weight
    assert changed.legs == (("lexical", "dense") if weight else ("lexical",))


def test_23_a_leg_of_weight_zero_contributes_no_memory_not_even_at_score_zero() -> None:
    lists = {"lexical": ["a", "b"], "dense": ["c", "a"]}
    # both: a has 1/61 + 1/62, c 1/61, b 1/62
    assert ranked(RECIPES["nexus"], lists) == ["a", "c", "b"]
    assert ranked(recipe("nexus", weights={"dense": 0}), lists) == ["a", "b"]
    assert ranked(recipe("nexus", weights={"lexical": 0}), lists) == ["c", "a"]
    assert reach(recipe("nexus", weights={"dense": 0})).regimes["any"].legs["dense"].class_ == "unreachable"


def test_23_a_weight_decides_by_how_much_a_leg_counts() -> None:
    lists = {"lexical": ["a"], "dense": ["c"]}
    assert ranked(recipe("nexus", weights={"lexical": 5}), lists) == ["a", "c"]
    assert ranked(recipe("nexus", weights={"dense": 5}), lists) == ["c", "a"]


def test_24_a_leg_fetches_twice_the_ten_that_are_shown() -> None:
    assert dict(RECIPES["nexus"].depths) == {"lexical": 20, "dense": 20}
