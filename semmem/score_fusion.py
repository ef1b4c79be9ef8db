"""Fusions that read the legs' scores, and one that scales ranks: the challengers of weighted reciprocal rank fusion.

All end as ``fusion.rank`` does: bonus, prior, divisor, one tie order, reserve, components that sum to the score.

* ``convex``: each list scaled to [0, 1] by its own least and best score, then the weighted sum.
* ``tm2c2``: the same from the least score a leg can give (0, for a cosine -1) to the best of the list (Bruch, Gai and
  Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023).
* ``rank-scaled``: sum of 1/(k + rank/w - 1), ranks from 1, as Qdrant weighs its lists: the weight divides the rank.
* ``scored``: text legs scaled as in ``convex``, the lexical one against half of the best score that the question
  allows, so that a list of weak matches does not count in full; the graph by rank, w(k + 1)/(k + rank), since the
  masses of a walk are too uneven to be scaled.

A score is taken to 12 significant digits, as where ties in a leg are settled, so that noise is not stretched to [0, 1].
Pure: no I/O, no settings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from semmem.errors import InvalidInput
from semmem.fusion import Fused, Key, finish, rank
from semmem.search_settings import Fusion

__all__ = ["rank_as", "scaled", "shares_of"]

_GRAPH = "graph"
_LEXICAL = "lexical"
_LEAST = {"dense": -1.0}
"""The least score a leg can give, where that is not 0."""
_TOP = 100
"""How many of a list ``scored`` takes the least score from."""
_FEW = 20
"""With fewer lexical memories than this, ``scored`` takes 0 for the least score: the last of a few is no zero."""
_NO_SPAN = 1e-9
"""Scores that differ by less, relative to the largest, are equal: cosines are summed in float32."""


def rank_as(
    fusion: Fusion,
    rankings: Mapping[str, Sequence[Key]],
    scores: Mapping[str, Sequence[float]],
    *,
    weights: Mapping[str, float],
    rank_constants: Mapping[str, float],
    planned: Collection[str],
    most: Mapping[str, float] | None = None,
    importance: Mapping[Key, float] | None = None,
    prior_floor: float = 0.7,
    exact: Collection[Key] = (),
    exact_bonus: float = 0.0,
    reserve: Mapping[str, int] | None = None,
) -> list[Fused[Key]]:
    """Return what a recall shows, fused by ``fusion``, best first; the keywords are those of ``fusion.rank``.

    ``scores`` are the legs' own, aligned with ``rankings``, best first; ``most`` is the best score that the question
    allows in a leg, where the leg knows it. ``rrf`` and ``rank-scaled`` read neither.

    Raises InvalidInput for a leg with fewer scores than memories, a score that is not finite, or numbers out of range.
    """
    if fusion in ("rrf", "rank-scaled"):
        return rank(
            rankings,
            weights=weights,
            rank_constants=rank_constants if fusion == "rrf" else scaled(weights, rank_constants),
            planned=planned,
            importance=importance,
            prior_floor=prior_floor,
            exact=exact,
            exact_bonus=exact_bonus,
            reserve=reserve,
        )
    shares: dict[Key, dict[str, float]] = {}
    ranks: dict[Key, dict[str, int]] = {}
    for leg, weight in weights.items():
        if weight < 0:
            raise InvalidInput(f"The weight of {leg} must be 0 or more.")
        keys = rankings.get(leg, ())
        if not weight or not keys:
            continue
        of_leg = shares_of(fusion, leg, scores.get(leg, ()), len(keys), rank_constants.get(leg, 0), most)
        for place, (key, share) in enumerate(zip(keys, of_leg, strict=False), 1):
            if leg not in shares.setdefault(key, {}):  # a key that a ranking names twice counts at its first place
                shares[key][leg] = weight * share
                ranks.setdefault(key, {})[leg] = place
    return finish(
        shares,
        ranks,
        rankings,
        firsts={leg: weight for leg, weight in weights.items() if weight},
        planned=planned,
        importance=importance,
        prior_floor=prior_floor,
        exact=exact,
        exact_bonus=exact_bonus,
        reserve=reserve,
    )


def scaled(weights: Mapping[str, float], rank_constants: Mapping[str, float]) -> dict[str, float]:
    """Return the rank constants with which weighted RRF is rank-scaled: 1/(k + r/w - 1) = w/(w(k - 1) + r).

    A rank constant below 1 counts as 1: there a share is w/r, and below it a first place would have no bound.
    """
    return {leg: weights.get(leg, 0.0) * (max(k, 1.0) - 1.0) for leg, k in rank_constants.items()}


def shares_of(
    fusion: Fusion,
    leg: str,
    scores: Sequence[float],
    count: int,
    rank_constant: float,
    most: Mapping[str, float] | None = None,
) -> list[float]:
    """Return what each of the first ``count`` places of ``leg`` is worth at weight 1, in [0, 1], by a scaled fusion."""
    if fusion == "scored" and leg == _GRAPH:
        return [(rank_constant + 1) / (rank_constant + place) for place in range(1, count + 1)]
    if len(scores) < count:
        raise InvalidInput(f"The leg {leg} has {count} memories and {len(scores)} scores; {fusion} needs one for each.")
    values = [float(f"{score:.12g}") for score in scores[:count]]
    if not all(map(math.isfinite, values)):
        raise InvalidInput(f"The leg {leg} has a score that is not a finite number, which {fusion} cannot scale.")
    best, least = max(values), min(values)
    if fusion == "tm2c2":
        least = min(best, _LEAST.get(leg, 0.0))
    elif fusion == "scored":
        least = min(values[:_TOP])
        if leg == _LEXICAL:
            least = min(least, 0.0) if count < _FEW else least
            best = max(best, (most or {}).get(leg, 0.0) / 2)
    span = best - least
    if span <= _NO_SPAN * max(abs(best), abs(least)):
        return [1.0] * count
    return [min(1.0, max(0.0, (value - least) / span)) for value in values]
