"""Ways to fuse cached lists: semmem's own, and the challengers, all at the same leg weights.

``rrf`` calls ``semmem.fusion.rank``, the function recall calls. The others are written from their papers and share
prior, reserve and folding with it, so that only the formula differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from eval.lists import Asked, Found, Key
from eval.measures import Place
from semmem.fusion import rank
from semmem.types import Recipe

__all__ = ["FUSIONS", "Fused", "fused_places", "regime_of"]

Scored: TypeAlias = Mapping[str, Sequence[tuple[Key, float]]]


@dataclass(frozen=True, slots=True)
class Fused:
    """One fused list: ``places`` best first (folded ids behind the one shown), components of each shown memory."""

    places: tuple[Place, ...]
    components: tuple[Mapping[str, float], ...]


def regime_of(recipe: Recipe, asked: Asked) -> str:
    """Return the regime whose constants a recipe uses for this question."""
    return asked.regime if asked.regime in recipe.regimes else recipe.regimes[-1]


def fused_places(
    recipe: Recipe,
    asked: Asked,
    found: Mapping[Key, Found],
    *,
    fusion: str = "rrf",
    limit: int = 100,
    excluded: str | None = None,
) -> Fused:
    """Fuse one question's lists as ``recipe`` says, by the formula ``fusion``; return the first ``limit`` places.

    ``excluded`` names a leg whose own finds are dropped, with its votes, before fusion: only the other legs' lists
    are left, as when that leg's memories were never in the base set.
    """
    legs = [leg for leg in recipe.legs if leg != excluded]
    constants = recipe.constants(regime_of(recipe, asked))
    rankings = asked.rankings(recipe.depths, legs)
    importance = {key: m.importance for key, m in found.items()} if recipe.prior else None
    if fusion == "rrf":
        ranked = rank(
            rankings,
            weights={leg: recipe.weights[leg] for leg in recipe.legs},
            rank_constants=constants,
            planned=recipe.legs,
            importance=importance,
            prior_floor=recipe.prior_floor,
            exact=asked.exact if recipe.exact_bonus else (),
            exact_bonus=recipe.exact_bonus,
            reserve=recipe.reserve,
        )
        order = [f.key for f in ranked]
        components = {f.key: f.components for f in ranked}
    else:
        scores = FUSIONS[fusion](asked.scored(recipe.depths, legs), recipe.weights, constants)
        if importance is not None:
            floor = recipe.prior_floor
            scores = {key: s * (floor + (1 - floor) * importance.get(key, 0.5)) for key, s in scores.items()}
        order = sorted(scores, key=lambda key: (-scores[key], key))
        heads = {leg: keys[0] for leg, keys in rankings.items() if keys}
        order, components = _reserved(order, heads, recipe.reserve), {}
    folded = _folded(order, found if recipe.dedup else {})[:limit]
    return Fused(
        places=tuple(tuple(id for id, _ in keys) if len(keys) > 1 else keys[0][0] for keys in folded),
        components=tuple(components.get(keys[0], {}) for keys in folded),
    )


def rank_scaled(lists: Scored, weights: Mapping[str, float], constants: Mapping[str, float]) -> dict[Key, float]:
    """Return 1 / (k + r/w - 1) summed over legs, ranks from 1: the weight divides the rank (Qdrant's weighted RRF)."""
    out: dict[Key, float] = {}
    for leg, pairs in lists.items():
        for place, (key, _) in enumerate(pairs, start=1):
            # k of at least 1: at k = 0 and w > 1 the first place would be divided by nothing.
            out[key] = out.get(key, 0.0) + 1.0 / (max(constants[leg], 1.0) + place / weights[leg] - 1.0)
    return out


def convex(lists: Scored, weights: Mapping[str, float], constants: Mapping[str, float]) -> dict[Key, float]:
    """Return the weighted sum of scores scaled within each list to [0, 1] by its own minimum and maximum.

    A memory a leg did not return gets 0 from it, as the last of the list does.
    """
    return _combined(lists, weights, lambda leg, scores: min(scores))


def tm2c2(lists: Scored, weights: Mapping[str, float], constants: Mapping[str, float]) -> dict[Key, float]:
    """Return the weighted sum of scores scaled by theoretical minimum and observed maximum.

    TM2C2 of Bruch, Gai and Ingber (2023): the smallest value a leg can give is -1 for a cosine and 0 for BM25 and
    for a walk's mass; unlike min-max, the last of a list keeps a share.
    """
    return _combined(lists, weights, lambda leg, scores: -1.0 if leg == "dense" else 0.0)


def _combined(
    lists: Scored, weights: Mapping[str, float], least: Callable[[str, Sequence[float]], float]
) -> dict[Key, float]:
    out: dict[Key, float] = {}
    for leg, pairs in lists.items():
        if not pairs:
            continue
        values = [score for _, score in pairs]
        low, high = least(leg, values), max(values)
        for key, score in pairs:
            # One memory, or all equal: each is the best of its list.
            scaled = (score - low) / (high - low) if high > low else 1.0
            out[key] = out.get(key, 0.0) + weights[leg] * scaled
    return out


FUSIONS: Mapping[str, Callable[[Scored, Mapping[str, float], Mapping[str, float]], dict[Key, float]]] = (
    MappingProxyType({"rank-scaled": rank_scaled, "convex": convex, "tm2c2": tm2c2})
)


def _reserved(order: Sequence[Key], heads: Mapping[str, Key], reserve: Mapping[str, int]) -> list[Key]:
    out = list(order)
    for leg, place in sorted(reserve.items(), key=lambda item: item[1]):
        head = heads.get(leg)
        if head is not None and head in out[place:]:
            out.remove(head)
            out.insert(place - 1, head)
    return out


def _folded(order: Sequence[Key], found: Mapping[Key, Found]) -> list[list[Key]]:
    """Keep the best part of each memory, then fold equal contents, in the order recall does both."""
    whole: list[Key] = []
    parents: set[str] = set()
    for key in order:
        id, part = key
        if part:
            if id in parents:
                continue
            parents.add(id)
        whole.append(key)
    at: dict[str, int] = {}
    out: list[list[Key]] = []
    for key in whole:
        content = found[key].content if key in found else None
        if content is not None and content in at:
            out[at[content]].append(key)
            continue
        if content is not None:
            at[content] = len(out)
        out.append([key])
    return out
