"""What fusions and reach assume of the scores of legs by name; everything else they take from the recipe. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from semmem.model.recipe_settings import Fusion

__all__ = ["BONUS_LEG", "BY_RANK", "ENDLESS", "MEEK_LEG", "RANKED_LEG", "least_score", "reads_scores"]

BY_RANK: frozenset[Fusion] = frozenset(("rrf", "rank-scaled"))
"""The fusions that read the order of a list alone."""

BONUS_LEG = "lexical"
"""The leg whose first place is the unit of the bonus for exact matches."""

MEEK_LEG = "lexical"
"""The scaled leg whose first place may earn less than its weight in the fusion ``scored``."""

RANKED_LEG = "graph"
"""The leg that counts by rank in the fusion ``scored``, because its masses are no likeness."""

ENDLESS = ("dense",)
"""The legs that return memories as long as there are any."""

_LEAST: Mapping[str, float] = {"dense": -1.0}
"""The least score that a leg can give, where that is not 0; a cosine may be negative."""


def least_score(leg: str) -> float:
    """Return the least score that a leg can give."""
    return _LEAST.get(leg, 0.0)


def reads_scores(fusion: Fusion, leg: str) -> bool:
    """Return whether the share of ``leg`` in this fusion is a scaled score, and not a function of the rank."""
    return fusion not in BY_RANK and not (fusion == "scored" and leg == RANKED_LEG)
