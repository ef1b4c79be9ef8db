"""The two bars that a memory must clear when only one leg found it, in exact fractions.

The bounds and their proofs are in ``classes``. This is the arithmetic of one leg against the others in a fusion by
rank; ``score_bounds`` has that of a fusion that reads scores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from semmem.model.recipe import Recipe
from semmem.rank_cap.report import ReachClass

__all__ = [
    "AGREED",
    "LARGEST_CONSTANT",
    "NOISE",
    "Base",
    "Contest",
    "Odds",
    "as_written",
    "consensus_slots",
    "exact_floor",
    "last_where",
    "shared_out",
]

LARGEST_CONSTANT = 1_000_000

NOISE = Fraction(2, 10**13)
"""Scores that differ by less than this share of the largest possible score may tie: fusion rounds to 13 places."""

AGREED = "agreed"
"""The name in a reserve for the memory that most legs put first."""

_MOST_WAYS = 1_000
"""The most ways to share a small scope among legs that are tried; where there are more, no sharing is assumed."""


@dataclass(frozen=True, slots=True)
class Base:
    """Another leg of the recipe, which returns between ``least`` and ``most`` rows.

    ``kth`` is the rank by which it has surely named k memories of its own, None where it may have fewer.
    """

    leg: str
    weight: Fraction
    constant: Fraction
    least: int
    most: int
    kth: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """What one leg brings to a contest at cut-off ``k``, whatever the fusion.

    ``bonus`` is the exact-match bonus that a competitor may have, and ``may`` the one that the studied memory may have,
    because a memory with the words of a question may stand below the depth of the lexical leg. ``unit`` is the bonus in
    units of this leg's own first place, where this leg is the lexical one, else 0. ``kth`` is the rank by which this
    leg has surely named k memories. The four factors are the least and most that importance can multiply a score by,
    here and among the competitors; ``even`` says that it is the same for all memories of this leg. Scores that differ
    by no more than ``slack`` may tie, and a tie may go either way.
    """

    leg: str
    weight: Fraction
    depth: int
    k: int
    scope: int | None
    bonus: Fraction
    may: Fraction
    unit: Fraction
    kth: int | None
    slack: Fraction
    own_least: Fraction = Fraction(1)
    own_most: Fraction = Fraction(1)
    competitor_least: Fraction = Fraction(1)
    competitor_most: Fraction = Fraction(1)
    even: bool = True

    def at_least(self, value: Fraction, bar: Fraction) -> bool:
        """Return whether ``value`` reaches ``bar``, or comes so near that the two may tie."""
        return value >= bar - self.slack

    def surely_above(self, value: Fraction, bar: Fraction) -> bool:
        """Return whether ``value`` is above ``bar`` and cannot tie with it."""
        return value > bar + self.slack

    def ties(self, value: Fraction, bar: Fraction) -> bool:
        """Return whether the two may tie."""
        return abs(value - bar) <= self.slack

    def capped(self, last: int, step: Fraction | None) -> int:
        """Return ``last``, or the rank by which k memories of this leg are surely ahead, if that is less.

        ``step`` is how much its place is worth more than the next one; None where a later place need not be worth less.
        """
        ordered = self.even and not self.may and step is not None and self.own_least * step > self.slack
        return min(last, self.kth) if ordered and self.kth is not None else last


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest(Odds):
    """One leg against the others, summed by rank, with the arithmetic of both bars."""

    constant: Fraction
    bases: tuple[Base, ...]

    def value(self, rank: int = 1) -> Fraction:
        """Return what a memory that only this leg found earns at ``rank``."""
        return self.weight / (self.constant + rank)

    def best_value(self, rank: int = 1) -> Fraction:
        """Return the same with a possible bonus."""
        return self.value(rank) + self.may

    def tails(self) -> dict[str, int]:
        """Which memory each leg that returns k names last, so that the largest sum of such last shares is least.

        They are all different, unless the scope is so small that some must share one. Where there are more than
        ``_MOST_WAYS`` to share out, they are taken to be different: that can only make the bar lower.
        """
        full = [(b, b.kth) for b in self.bases if b.kth is not None]
        folded = any(kth != self.k for _, kth in full)
        room = len(full) if self.scope is None or folded else max(1, self.scope - self.k)
        shares = tuple(b.weight / (b.constant + kth) for b, kth in full)
        return {b.leg: i for (b, _), i in zip(full, shared_out(shares, room), strict=True)}

    def _largest(self, tails: Mapping[str, int]) -> Fraction:
        sums: dict[int, Fraction] = {}
        for b in self.bases:
            if b.leg in tails and b.kth is not None:
                sums[tails[b.leg]] = sums.get(tails[b.leg], Fraction(0)) + b.weight / (b.constant + b.kth)
        return max(sums.values(), default=Fraction(0))

    def lower_bar(self) -> Fraction:
        """Return B_min; 0 where no other leg returns k memories."""
        return self._largest(self.tails())

    def base_bar(self, m: int) -> Fraction:
        """Return B_base: the most that m competitors that this leg does not rank can have on average."""
        return self._base_sum(m) / m + self.bonus

    def upper_bar(self, rank: int, k: int) -> Fraction:
        """Return B_max at cut-off ``k``: the most that k competitors can have on average."""
        return (self._base_sum(k) + self.weight * self._own_terms(self.constant, rank, k)) / k + self.bonus

    def outnumbers(self, rank: int, k: int, *, any_importance: bool = False) -> bool:
        """Return whether fewer than k memories can be ahead; with any importance, those behind it in the leg can be."""
        behind_too = any_importance or self.bonus > 0  # one behind it may have the bonus that it lacks
        ahead = sum(b.most for b in self.bases) + (self.depth if behind_too else rank) - 1
        return (ahead if self.scope is None else min(ahead, self.scope - 1)) < k

    def guaranteed(self, rank: int, k: int) -> bool:
        """Return whether no lists keep a memory at ``rank`` out of the top ``k``, with the known importances."""
        if rank > k:
            return False
        step = self.value(rank) - self.value(rank + 1)
        uneven = self.own_least < self.competitor_most or self.own_least * step <= self.slack  # one behind it may tie
        bar = self.competitor_most * self.upper_bar(rank, k)
        return self.outnumbers(rank, k, any_importance=uneven) or self.surely_above(
            self.own_least * self.value(rank), bar
        )

    def class_of(self, scale: Fraction, k: int) -> ReachClass:
        """Return the class of the first place when its score is multiplied by ``scale``, without reserve."""
        surely = self.outnumbers(1, k, any_importance=scale < 1)
        if k >= 1 and (surely or self.surely_above(scale * self.value(), self.upper_bar(1, k))):
            return "guaranteed"
        return "possible" if self.at_least(scale * self.best_value(), self.lower_bar()) else "boost-only"

    def last_rank_over_bar(self) -> int:
        """Return the last rank whose value is above the lower bar, importances being equal."""
        least = self.lower_bar() - self.may
        if least <= 0:
            return self.depth
        return max(0, min(self.depth, math.ceil(self.weight / least - self.constant) - 1))

    def last_possible_rank(self) -> int:
        """Return the last rank that can enter, if only by a tie, with the known importances."""
        least = self.competitor_least * self.lower_bar() - self.slack - self.own_most * self.may
        if least <= 0:
            last = self.depth
        else:
            last = max(0, min(self.depth, math.floor(self.own_most * self.weight / least - self.constant)))
        at = self.kth or 1
        return self.capped(last, self.value(at) - self.value(at + 1))

    def possible_up_to_constant(self) -> int | None:
        """Return the largest whole rank constant at which the first place clears the lower bar."""
        bar = self.lower_bar() if self.unit else self.lower_bar() - self.may
        if bar <= 0:
            return LARGEST_CONSTANT
        largest = math.ceil(self.weight * (1 + self.unit) / bar - 1) - 1
        return min(largest, LARGEST_CONSTANT) if largest >= 0 else None

    def possible_above_weight(self) -> Fraction:
        """Return the weight above which the first place clears the lower bar."""
        bar = self.lower_bar() if self.unit else max(Fraction(0), self.lower_bar() - self.may)
        return bar * (self.constant + 1) / (1 + self.unit)

    def guaranteed_above_weight(self) -> Fraction | None:
        """Return the weight above which the first place is guaranteed; both sides are linear in it."""
        if self.outnumbers(1, self.k):
            return Fraction(0)
        gain = self._gain(self.constant)
        return (self._base_sum(self.k) / self.k + self._fixed_bonus) / gain if gain > 0 else None

    def guaranteed_up_to_constant(self) -> int | None:
        """Return the largest whole rank constant at which the first place is guaranteed."""
        if self.outnumbers(1, self.k):
            return LARGEST_CONSTANT
        needed = (self._base_sum(self.k) / self.k + self._fixed_bonus) / self.weight
        count = last_where(LARGEST_CONSTANT + 1, lambda n: self._gain(Fraction(n - 1)) > needed)
        return count - 1 if count else None

    def _gain(self, constant: Fraction) -> Fraction:
        """Return how far a first place is above what this leg gives its competitors on average, at weight 1."""
        own = (1 - self.unit) / (constant + 1)
        return own - self._own_terms(constant, 1, self.k) / self.k

    @property
    def _fixed_bonus(self) -> Fraction:
        """Return the bonus where it does not grow with this leg's own weight."""
        return Fraction(0) if self.unit else self.bonus

    def _base_sum(self, m: int) -> Fraction:
        return sum((b.weight * _terms(b.constant, min(m, b.most)) for b in self.bases), Fraction(0))

    def _own_terms(self, constant: Fraction, rank: int, k: int) -> Fraction:
        """Return the sum of 1/(constant + i) over the first k of this leg's ranks without ``rank``."""
        if rank > k:
            return _terms(constant, min(k, self.depth))
        return _terms(constant, min(k + 1, self.depth)) - 1 / (constant + rank)


@lru_cache(maxsize=4096)
def as_written(number: float) -> Fraction:
    """Return the number as it is written: 0.35 is 7/20."""
    return Fraction(str(number))


@lru_cache(maxsize=4096)
def shared_out(shares: tuple[Fraction, ...], room: int) -> tuple[int, ...]:
    """Return to which of ``room`` memories each share goes, so that the largest sum is least.

    They go to different memories where there is room, and where there are more than ``_MOST_WAYS``.
    """
    if room >= len(shares) or room ** len(shares) > _MOST_WAYS:
        return tuple(range(len(shares)))

    def largest(choice: tuple[int, ...]) -> Fraction:
        sums = dict.fromkeys(choice, Fraction(0))
        for share, at in zip(shares, choice, strict=True):
            sums[at] += share
        return max(sums.values())

    return min(itertools.product(range(room), repeat=len(shares)), key=largest, default=())


def consensus_slots(recipe: Recipe, others: int, k: int) -> int:
    """Return how many of the first k places (0 or 1) the reserve keeps for what most of ``others`` other legs agree on.

    Of two legs both must agree, so a memory that one leg alone found has no such competitor.
    """
    return int(recipe.reserve.get(AGREED, k + 1) <= k and others >= 2)


def exact_floor(recipe: Recipe, constants: Mapping[str, float]) -> Fraction:
    """Return the factor of a score at importance 0 and any time, where the best is 1; see ``Recipe.floor``."""
    floor = Fraction(1) if recipe.recency_half_life is None else as_written(recipe.recency_floor)
    floor *= 1 if recipe.period_floor is None else as_written(recipe.period_floor)
    if not recipe.prior:
        return floor
    if recipe.prior_floor is not None:
        return floor * as_written(recipe.prior_floor)
    return floor * (1 - Fraction(1, 2) / (max(as_written(constant) for constant in constants.values()) + 2))


def _terms(constant: Fraction, count: int) -> Fraction:
    """Return the sum of 1/(constant + i) for i = 1..count, halved recursively to keep the integers short."""
    p, q = constant.numerator, constant.denominator

    def part(first: int, last: int) -> tuple[int, int]:
        if first == last:
            return q, p + q * first
        middle = (first + last) // 2
        (a, b), (c, d) = part(first, middle), part(middle + 1, last)
        return a * d + c * b, b * d

    return Fraction(*part(1, count)) if count > 0 else Fraction(0)


def last_where(most: int, holds: Callable[[int], bool]) -> int:
    """Return the last n in 1..most for which ``holds``, which stays false once it is false; 0 if for none."""
    low, high = 0, 1
    while high <= most and holds(high):  # the answer is usually small: double up to it before halving
        low, high = high, 2 * high
    high = min(high - 1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
