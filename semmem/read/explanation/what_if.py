"""Find what would let a memory in: the weight, rank constant or rank of one leg, by fusing the same lists again.

A weight or rank constant applies to the whole leg, so changing it moves the competitors as well. Whether the memory
comes in is therefore not monotone, and its own share alone does not answer the question. Arithmetic finds the values
worth trying; a full fusion with prior, reserve and folding decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from semmem.fusion import scaled, shares_of
from semmem.model.exchange import CandidateMetadata
from semmem.model.leg_scores import BONUS_LEG, BY_RANK
from semmem.model.process.forks import cached_property
from semmem.read.candidates import Candidates, Cut, Key
from semmem.read.steps import cut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Opening"]

_TRIES = 40
"""Values that are tried by a full fusion for one answer; after that many, no value is reported."""
_LARGEST_WEIGHT = 100.0
_NEARER = 1e-7


class Opening:
    """Search for the changes that would return a memory that was not returned."""

    def __init__(
        self, candidates: Candidates, window: Cut, key: Key, metadata: Mapping[Key, CandidateMetadata]
    ) -> None:
        self._candidates = candidates
        self._window = window
        self._key = key
        self._heads = metadata
        self._weights = candidates.recipe.weights_in(candidates.regime)
        self._constants = candidates.recipe.constants(candidates.regime)

    def needs(self, leg: str) -> dict[str, float]:
        """Return the nearest ``weight``, ``rank_constant`` and ``rank`` of ``leg`` that return the memory, if any."""
        searches = {"weight": self._weight, "rank_constant": self._rank_constant, "rank": self._rank}
        return {name: value for name, search in searches.items() if (value := search(leg)) is not None}

    def _is_in(self, **changed: Any) -> bool:
        """Return whether the memory is a hit after fusing and folding with the ``changed`` numbers or lists."""
        metadata = {**self._candidates.metadata, self._key: self._heads[self._key]}
        again = replace(self._candidates, metadata=metadata)
        again = replace(again, ranked=again.fuse(**changed))
        shown = cut(again, self._window)[: self._window.offset + self._window.limit]
        return any(fused.key in self._heads for fused, _ in shown)

    # ------------------------------------------------------------------ weight

    def _weight(self, leg: str) -> float | None:
        """Return the weight just above which the memory is in.

        Scores are linear in the weight, so only weights at which a competitor's line crosses the memory's line are
        tried.
        """
        import numpy as np

        if self._at is None or leg not in self._candidates.rankings:
            return None
        if self._candidates.recipe.fusion == "rank-scaled":
            return self._weight_by_steps(leg)
        now = self._weights[leg]
        slopes = self._slopes(leg, self._constants[leg])
        rest = self._rest(leg)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = (rest - rest[self._at]) / (slopes[self._at] - slopes)
        weights = np.unique(crossings[np.isfinite(crossings) & (crossings > now) & (crossings < _LARGEST_WEIGHT)])
        tries = 0
        for weight in weights.tolist():
            just_above = weight * (1 + _NEARER)
            if self._ahead(rest + just_above * slopes) >= self._places:
                continue
            if self._is_in(weights={leg: just_above}):
                return _rounded(weight, up=True)
            tries += 1
            if tries == _TRIES:
                break
        return None

    def _weight_by_steps(self, leg: str) -> float | None:
        """Return a weight above the present one that lets the memory in, by stepping and then halving.

        Rank-scaled shares are not linear in the weight, so the crossings cannot be calculated.
        """
        outside = self._weights[leg]
        step = (_LARGEST_WEIGHT / outside) ** (1 / _TRIES)
        for tried in range(1, _TRIES + 1):
            inside = self._weights[leg] * step**tried
            if self._is_in(weights={leg: inside}):
                for _ in range(24):
                    middle = (inside + outside) / 2
                    good = self._is_in(weights={leg: middle})
                    inside, outside = (middle, outside) if good else (inside, middle)
                return _rounded(inside, up=True)
            outside = inside
        return None

    # ------------------------------------------------------------------ rank constant

    def _rank_constant(self, leg: str) -> float | None:
        """Return the largest rank constant below the present one that lets the memory in."""
        if self._at is None or leg not in self._candidates.rankings or self._ranks(leg)[self._at] == 0:
            return None
        now, weight = self._constants[leg], self._weights[leg]
        rest = self._rest(leg)
        outside = now
        tries = 0
        for step in range(99, -1, -1):
            constant = now * step / 100
            if self._ahead(rest + weight * self._slopes(leg, constant)) < self._places:
                if self._is_in(rank_constants={leg: constant}):
                    return self._between(leg, constant, outside)
                tries += 1
                if tries == _TRIES:
                    return None
            outside = constant
        return None

    def _between(self, leg: str, inside: float, outside: float) -> float | None:
        """Return the largest rank constant, found by halving, that lets the memory in, rounded down if possible."""
        for _ in range(24):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if self._is_in(rank_constants={leg: middle}) else (inside, middle)
        short = _rounded(inside, up=False)
        return short if self._is_in(rank_constants={leg: short}) else inside

    # ------------------------------------------------------------------ rank

    def _rank(self, leg: str) -> float | None:
        """Return the last rank in this leg at which the memory is in; the other memories move down by one."""
        if leg not in self._candidates.rankings:
            return None
        ranking = self._candidates.rankings[leg]
        others = [key for key in ranking if key != self._key]

        def is_in(rank: int) -> bool:
            return self._is_in(rankings={leg: (*others[: rank - 1], self._key, *others[rank - 1 :])[:depth]})

        depth = max(len(ranking), self._candidates.recipe.depths.get(leg, 100))
        last = ranking.index(self._key) if self._key in ranking else min(depth, len(others) + 1)
        if last < 1 or not is_in(1):
            return None
        good, too_low = 1, last + 1
        while too_low - good > 1:
            middle = (good + too_low) // 2
            good, too_low = (middle, too_low) if is_in(middle) else (good, middle)
        return float(good)

    # ------------------------------------------------------------------ arithmetic on all competitors at once

    @cached_property
    def _at(self) -> int | None:
        """Return the memory's index among the ranked candidates; None where no leg found it."""
        return next((i for i, fused in enumerate(self._candidates.ranked) if fused.key == self._key), None)

    @cached_property
    def _places(self) -> int:
        """Return how many candidates may be ahead: the places shown, and the candidates that folding removes."""
        count = len(cut(self._candidates, self._window))
        return self._window.offset + self._window.limit + len(self._candidates.ranked) - count

    @cached_property
    def _priors(self) -> NDArray[np.float64]:
        import numpy as np

        priors = self._candidates.priors()
        return np.array([priors.factor(fused.key) for fused in self._candidates.ranked])

    def _ranks(self, leg: str) -> NDArray[np.float64]:
        import numpy as np

        return np.array([fused.ranks.get(leg, 0) for fused in self._candidates.ranked], dtype=np.float64)

    def _slopes(self, leg: str, constant: float) -> NDArray[np.float64]:
        """Return what one unit of the leg's weight adds to each candidate's score, exact bonus and prior included."""
        import numpy as np

        ranks = self._ranks(leg)
        places = self._worths(leg, constant)
        if not len(places):
            return np.zeros(len(ranks))
        out = np.where(ranks > 0, places[np.maximum(ranks.astype(np.int64), 1) - 1], 0.0)
        if leg == BONUS_LEG and self._candidates.recipe.exact_bonus:
            exact = np.array([fused.key in self._candidates.exact for fused in self._candidates.ranked])
            first = places[0] if self._candidates.recipe.fusion in BY_RANK else 1.0
            out = out + exact * (self._candidates.recipe.exact_bonus * first)
        return out * self._priors

    def _worths(self, leg: str, constant: float) -> NDArray[np.float64]:
        """Return what each rank in the leg's list adds to a score for one unit of weight."""
        import numpy as np

        candidates, count = self._candidates, len(self._candidates.rankings[leg])
        fusion = candidates.recipe.fusion
        if fusion not in BY_RANK:
            return np.array(shares_of(fusion, leg, candidates.raw[leg], count, constant, candidates.most))
        if fusion == "rank-scaled":
            constant = scaled(self._weights, {leg: constant})[leg]
        return 1.0 / (constant + np.arange(1.0, count + 1))

    def _rest(self, leg: str) -> NDArray[np.float64]:
        """Return what each candidate's score has from the other legs, in the same units as ``_slopes``."""
        import numpy as np

        out = np.zeros(len(self._candidates.ranked))
        for other, weight in self._weights.items():
            if other != leg and other in self._candidates.rankings:
                out = out + weight * self._slopes(other, self._constants[other])
        return out

    def _ahead(self, scores: NDArray[np.float64]) -> int:
        return int((scores > scores[self._at]).sum())


def _rounded(value: float, *, up: bool) -> float:
    """Return ``value`` rounded to six significant digits, upwards or downwards so that it still lets the memory in."""
    if value == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 5)
    return float(f"{(math.ceil(value / unit) if up else math.floor(value / unit)) * unit:.6g}")
