"""What the places of each leg earned in lists that were asked, for a reach before the next question."""

from __future__ import annotations

from collections.abc import Collection

from eval.experiments.fusion import regime_of
from eval.experiments.lists import Asked
from semmem.fusion import shares_of
from semmem.model.leg_scores import reads_scores
from semmem.model.recipe import Recipe
from semmem.rank_cap.score_ranges import ShareRange, seen

__all__ = ["ranges_of"]


def ranges_of(recipe: Recipe, asked: Collection[Asked]) -> dict[str, ShareRange]:
    """Return between which shares each place of a leg earned, for the legs whose scores the recipe reads."""
    out = {}
    for leg in recipe.legs:
        if reads_scores(recipe.fusion, leg):
            lists = [shares for one in asked if (shares := _shares(recipe, one, leg))]
            if lists:
                out[leg] = seen(lists)
    return out


def _shares(recipe: Recipe, asked: Asked, leg: str) -> list[float]:
    scores = [score for _, score in asked.scored(recipe.depths, [leg]).get(leg, ())]
    constant = recipe.constants(regime_of(recipe, asked))[leg]
    return shares_of(recipe.fusion, leg, scores, len(scores), constant, asked.most)
