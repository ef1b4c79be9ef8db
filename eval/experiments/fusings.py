"""Fuse cached lists as recall would: the same functions, the same order of steps, any number of recipes.

``semmem.fusion.rank_as`` and ``semmem.read.steps.fold`` are what recall itself calls, so an experiment cannot
drift from the product; a sample of every experiment is recalled for comparison all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from eval.experiments.lists import Asked, Found, Key
from eval.statistics.measures import Place
from semmem.fusion import Fused, rank_as
from semmem.model.exchange import Head
from semmem.model.recipe import Recipe
from semmem.read.candidates import Priors
from semmem.read.steps import fold

__all__ = ["FUSIONS", "Places", "fused_places", "regime_of", "unfolded"]

FUSIONS = ("rrf", "rank-scaled", "convex", "tm2c2", "scored")
"""The formulas a recipe can name."""
_SPACE = ""  # one question searches one namespace, so its name decides no tie


@dataclass(frozen=True, slots=True)
class Places:
    """One fused list: ``places`` best first (folded ids behind the one shown), components of each shown memory."""

    places: tuple[Place, ...]
    components: tuple[Mapping[str, float], ...]


def regime_of(recipe: Recipe, asked: Asked) -> str:
    """Return the regime whose numbers a recipe uses for this question."""
    return asked.regime if asked.regime in recipe.regimes else recipe.regimes[-1]


def fused_places(
    recipe: Recipe, asked: Asked, found: Mapping[Key, Found], *, limit: int = 100, excluded: str | None = None
) -> Places:
    """Fuse one question's lists as ``recipe`` says; return the first ``limit`` places.

    ``excluded`` names a leg whose own finds are dropped, with its votes, before fusion: only the other legs' lists
    are left, as when that leg's memories were never in the base set. A reranker is not run here.
    """
    return _folded(_ranked(recipe, asked, found, excluded), found, recipe.dedup, limit)


def unfolded(recipe: Recipe, asked: Asked, found: Mapping[Key, Found], k: int, *, excluded: str | None = None) -> int:
    """Return how many of the fused list are looked at until ``k`` are shown, at least ``k``.

    Equal contents and further parts of a memory are folded away, so more than ``k`` may be.
    """
    ranked = _ranked(recipe, asked, found, excluded)
    kept = fold(ranked, _heads(ranked, found), dedup=recipe.dedup, fold_parts=True)
    if len(kept) < k:
        return max(k, len(ranked))
    place = {fused.key: number for number, fused in enumerate(ranked, start=1)}
    return max(k, place[kept[k - 1][0].key])


def _ranked(
    recipe: Recipe, asked: Asked, found: Mapping[Key, Found], excluded: str | None
) -> list[Fused[tuple[str, int, str]]]:
    regime = regime_of(recipe, asked)
    scored = asked.scored(recipe.depths, [leg for leg in recipe.legs if leg != excluded])
    lists = {leg: [(*key, _SPACE) for key, _ in pairs] for leg, pairs in scored.items()}
    known = {(*key, _SPACE): memory for key, memory in found.items()}
    newest = max((known[key].created_at for keys in lists.values() for key in keys), default=0.0)
    priors = Priors.of(recipe, regime, known, newest)
    ranked = rank_as(
        recipe.fusion,
        lists,
        {leg: [score for _, score in pairs] for leg, pairs in scored.items()},
        weights=recipe.weights_in(regime),
        rank_constants=recipe.constants(regime),
        planned=recipe.legs,
        most=asked.most,
        importance=priors.weighed,
        prior_floor=priors.floor,
        exact=[(*key, _SPACE) for key in asked.exact] if recipe.exact_bonus else (),
        exact_bonus=recipe.exact_bonus,
        reserve=recipe.reserve,
    )
    return [priors.apart(fused) for fused in ranked]


def _folded(ranked: list[Fused[tuple[str, int, str]]], found: Mapping[Key, Found], dedup: bool, limit: int) -> Places:
    kept = fold(ranked, _heads(ranked, found), dedup=dedup, fold_parts=True)[:limit]
    return Places(
        places=tuple((f.key[0], *(id for id, _, _ in same)) if same else f.key[0] for f, same in kept),
        components=tuple(f.components for f, _ in kept),
    )


def _heads(
    ranked: list[Fused[tuple[str, int, str]]], found: Mapping[Key, Found]
) -> Mapping[tuple[str, int, str], Head]:
    # fold reads nothing of a head but its content, which is what was kept of it
    return cast("Mapping[tuple[str, int, str], Head]", {f.key: found[f.key[0], f.key[1]] for f in ranked})
