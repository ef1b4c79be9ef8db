"""Ways to fuse cached lists: semmem's own, and the challengers, all at the same leg weights.

``rrf`` calls ``semmem.fusion.rank``, the function recall calls. The others are written from their papers and share
prior, reserve and folding with it, so that only the formula differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from eval.lists import Asked, Found
from eval.measures import Place
from semmem.fusion import fold_duplicates, rank
from semmem.types import Recipe

__all__ = ["FUSIONS", "Fused", "fused_places", "regime_of"]

Scored: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class Fused:
    """One fused list: ``places`` best first (folded ids behind the one shown), components of each shown memory."""

    places: tuple[Place, ...]
    components: tuple[Mapping[str, float], ...]


def regime_of(recipe: Recipe, asked: Asked) -> str:
    """Return the regime whose constants a recipe uses for this question."""
    return asked.regime if asked.regime in recipe.regimes else recipe.regimes[0]


def fused_places(
    recipe: Recipe, asked: Asked, found: Mapping[str, Found], *, fusion: str = "rrf", limit: int = 100
) -> Fused:
    """Fuse one question's lists as ``recipe`` says, by the formula ``fusion``; return the first ``limit`` places."""
    legs = recipe.legs
    constants = recipe.constants(regime_of(recipe, asked))
    importance = {id: m.importance for id, m in found.items()} if recipe.prior else None
    if fusion == "rrf":
        ranked = rank(
            asked.rankings(recipe.depths, legs),
            weights={leg: recipe.weights[leg] for leg in legs},
            rank_constants=constants,
            planned=legs,
            importance=importance,
            prior_floor=recipe.prior_floor,
            exact=asked.exact,
            exact_bonus=recipe.exact_bonus,
            reserve=recipe.reserve,
        )
        content = {id: m.content for id, m in found.items()} if recipe.dedup else {}
        kept = fold_duplicates(ranked, content, limit=limit)
        return Fused(
            places=tuple((f.key, *same) if same else f.key for f, same in kept),
            components=tuple(f.components for f, _ in kept),
        )
    scores = FUSIONS[fusion](asked.scored(recipe.depths, legs), recipe.weights, constants)
    if importance is not None:
        floor = recipe.prior_floor
        scores = {id: s * (floor + (1 - floor) * importance.get(id, 0.5)) for id, s in scores.items()}
    order = sorted(scores, key=lambda id: (-scores[id], id))
    heads = {leg: pairs[0] for leg, pairs in asked.rankings(recipe.depths, legs).items() if pairs}
    order = _reserved(order, heads, recipe.reserve)
    return Fused(places=_folded(order, found if recipe.dedup else {}, limit), components=())


def rank_scaled(lists: Scored, weights: Mapping[str, float], constants: Mapping[str, float]) -> dict[str, float]:
    """Return 1 / (k + r/w - 1) summed over legs, ranks from 1: the weight divides the rank (Qdrant's weighted RRF)."""
    out: dict[str, float] = {}
    for leg, pairs in lists.items():
        for place, (id, _) in enumerate(pairs, start=1):
            # k of at least 1: at k = 0 and w > 1 the first place would be divided by nothing.
            out[id] = out.get(id, 0.0) + 1.0 / (max(constants[leg], 1.0) + place / weights[leg] - 1.0)
    return out


def convex(lists: Scored, weights: Mapping[str, float], constants: Mapping[str, float]) -> dict[str, float]:
    """Return the weighted sum of scores scaled within each list to [0, 1] by its own minimum and maximum.

    A memory a leg did not return gets 0 from it, as the last of the list does.
    """
    return _combined(lists, weights, lambda leg, scores: min(scores))


def tm2c2(lists: Scored, weights: Mapping[str, float], constants: Mapping[str, float]) -> dict[str, float]:
    """Return the weighted sum of scores scaled by theoretical minimum and observed maximum.

    TM2C2 of Bruch, Gai and Ingber (2023): the smallest value a leg can give is -1 for a cosine and 0 for BM25 and
    for a walk's mass; unlike min-max, the last of a list keeps a share.
    """
    return _combined(lists, weights, lambda leg, scores: -1.0 if leg == "dense" else 0.0)


def _combined(
    lists: Scored, weights: Mapping[str, float], least: Callable[[str, Sequence[float]], float]
) -> dict[str, float]:
    out: dict[str, float] = {}
    for leg, pairs in lists.items():
        if not pairs:
            continue
        values = [score for _, score in pairs]
        low, high = least(leg, values), max(values)
        for id, score in pairs:
            # One memory, or all equal: each is the best of its list.
            scaled = (score - low) / (high - low) if high > low else 1.0
            out[id] = out.get(id, 0.0) + weights[leg] * scaled
    return out


FUSIONS: Mapping[str, Callable[[Scored, Mapping[str, float], Mapping[str, float]], dict[str, float]]] = (
    MappingProxyType({"rank-scaled": rank_scaled, "convex": convex, "tm2c2": tm2c2})
)


def _reserved(order: Sequence[str], heads: Mapping[str, str], reserve: Mapping[str, int]) -> list[str]:
    out = list(order)
    for leg, place in sorted(reserve.items(), key=lambda item: item[1]):
        head = heads.get(leg)
        if head is not None and head in out[place:]:
            out.remove(head)
            out.insert(place - 1, head)
    return out


def _folded(order: Sequence[str], found: Mapping[str, Found], limit: int) -> tuple[Place, ...]:
    first: dict[str, int] = {}
    out: list[list[str]] = []
    for id in order:
        content = found[id].content if id in found else None
        if content is not None and content in first:
            out[first[content]].append(id)
            continue
        if content is not None:
            first[content] = len(out)
        out.append([id])
    return tuple(tuple(ids) if len(ids) > 1 else ids[0] for ids in out[:limit])
