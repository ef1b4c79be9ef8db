"""How deep each leg of a recall goes: as deep as the hits that are wanted, deeper where folding took some. Pure."""

from __future__ import annotations

from dataclasses import replace

from semmem.candidates import Candidates
from semmem.model.recipe import Recipe

__all__ = ["USUAL_DEPTH", "deep_enough", "deeper"]

USUAL_DEPTH = 100
_DEEPEST = 1_000


def deep_enough(recipe: Recipe, wanted: int) -> Recipe:
    """Let every leg go at least as deep as the hits that are wanted, unless the recipe keeps it shallow on purpose.

    A recipe with headroom wants a multiple of them, of every leg.
    """
    legs = recipe.legs if recipe.headroom else tuple(_full_depths(recipe))
    least = dict.fromkeys(legs, max(recipe.headroom, 1) * wanted)
    raised = {leg: n for leg, n in least.items() if recipe.depths.get(leg, USUAL_DEPTH) < n}
    return replace(recipe, depths={**recipe.depths, **raised}) if raised else recipe


def deeper(found: Candidates) -> Recipe | None:
    """Return the recipe with the depth of the legs that were cut raised eightfold; None when no leg was cut.

    Folding (copies of one text, parts of one memory) can leave fewer hits than were asked for.
    """
    depths = _full_depths(found.recipe)
    cut_off = {leg: 8 * depths[leg] for leg, r in found.rankings.items() if leg in depths and len(r) >= depths[leg]}
    short = {leg: depth for leg, depth in cut_off.items() if depths[leg] < _DEEPEST}
    return replace(found.recipe, depths={**found.recipe.depths, **short}) if short else None


def _full_depths(recipe: Recipe) -> dict[str, int]:
    return {leg: n for leg in recipe.legs if (n := recipe.depths.get(leg, USUAL_DEPTH)) >= USUAL_DEPTH}
