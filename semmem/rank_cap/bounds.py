"""The two bars a memory must clear when only one leg found it, in exact fractions.

The bounds and their proofs are in ``rank_cap``; here is the arithmetic of one leg against the others.
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
    "LARGEST_CONSTANT",
    "Base",
    "Contest",
    "Rival",
    "ScoreContest",
    "agreed_places",
    "as_written",
    "exact_floor",
    "guaranteed_above",
    "guaranteed_up_to",
    "last_over",
    "last_where",
    "ranks_without_own",
]

_AGREED = "agreed"

_LARGEST_CONSTANT = 1_000_000

_MANY_BASES = 6


@dataclass(frozen=True, slots=True)
class Base:
    """Another leg of the recipe: how many memories it returns lies between ``least`` and ``most``."""

    leg: str
    weight: Fraction
    constant: Fraction
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Contest:
    """One leg against the others at cut-off k, with the arithmetic of both bars.

    ``bonus`` is the exact-match bonus a rival may have from another (lexical) leg; ``own_bonus`` is the same in units
    of this leg's first place, when this leg is the lexical one.
    """

    leg: str
    weight: Fraction
    constant: Fraction
    depth: int
    bases: tuple[Base, ...]
    k: int
    scope: int | None
    bonus: Fraction
    own_bonus: Fraction

    def value(self, rank: int = 1) -> Fraction:
        """What a memory that only this leg found earns at ``rank``."""
        return self.weight / (self.constant + rank)

    def best_value(self, rank: int = 1) -> Fraction:
        """The same with the bonus it may have."""
        return self.value(rank) + self.own_bonus * self.value(1)

    def tails(self) -> dict[str, int]:
        """Which memory each leg that returns k names last, so that the largest sum of such last shares is least.

        They are all different, unless the scope is so small that some must share one.
        """
        full = [b for b in self.bases if b.least >= self.k]
        room = len(full) if self.scope is None else self.scope - self.k
        if room >= len(full):
            return {b.leg: i for i, b in enumerate(full)}
        if len(full) > _MANY_BASES:
            return {b.leg: 0 for b in full}
        choices = itertools.product(range(room), repeat=len(full))
        best = min(choices, key=lambda choice: self._largest(dict(zip((b.leg for b in full), choice, strict=True))))
        return {b.leg: i for b, i in zip(full, best, strict=True)}

    def _largest(self, tails: Mapping[str, int]) -> Fraction:
        sums: dict[int, Fraction] = {}
        for b in self.bases:
            if b.leg in tails:
                sums[tails[b.leg]] = sums.get(tails[b.leg], Fraction(0)) + b.weight / (b.constant + self.k)
        return max(sums.values(), default=Fraction(0))

    def lower_bar(self) -> Fraction:
        """B_min, 0 where no other leg returns k memories."""
        return self._largest(self.tails())

    def base_bar(self, m: int) -> Fraction:
        """B_base: what m rivals that this leg does not rank can have on average, at most."""
        return self._base_sum(m) / m + self.rival_bonus(self.constant)

    def upper_bar(self, rank: int, k: int) -> Fraction:
        """B_max at cut-off ``k``: what k rivals can have on average, at most."""
        return (self._base_sum(k) + self.weight * self._own_terms(self.constant, rank, k)) / k + self.rival_bonus(
            self.constant
        )

    def outnumbers(self, rank: int, k: int, *, any_importance: bool = False) -> bool:
        """Whether fewer than k memories can be ahead at all; with any importance those behind it in the leg can."""
        behind_too = any_importance or self.own_bonus > 0  # one behind it may have the bonus that it lacks
        ahead = sum(b.most for b in self.bases) + (self.depth if behind_too else rank) - 1
        return (ahead if self.scope is None else min(ahead, self.scope - 1)) < k

    def guaranteed(self, rank: int, k: int) -> bool:
        """Whether no lists keep a memory at ``rank`` out of the top ``k``, importance being equal."""
        return rank <= k and (self.outnumbers(rank, k) or self.value(rank) > self.upper_bar(rank, k))

    def class_of(self, scale: Fraction, k: int) -> ReachClass:
        """Class of the first place when its score is multiplied by ``scale``, without reserve."""
        surely = self.outnumbers(1, k, any_importance=scale < 1)
        if k >= 1 and (surely or scale * self.value() > self.upper_bar(1, k)):
            return "guaranteed"
        return "possible" if scale * self.best_value() > self.lower_bar() else "boost-only"

    def last_rank_over_bar(self) -> int:
        """The last rank whose value is above the lower bar."""
        least = self.lower_bar() - self.own_bonus * self.value(1)
        if least <= 0:
            return self.depth
        return max(0, min(self.depth, math.ceil(self.weight / least - self.constant) - 1))

    def possible_up_to_constant(self) -> int | None:
        """The largest whole rank constant at which the first place clears the lower bar."""
        bar = self.lower_bar()
        if not bar:
            return _LARGEST_CONSTANT
        largest = math.ceil(self.weight * (1 + self.own_bonus) / bar - 1) - 1
        return min(largest, _LARGEST_CONSTANT) if largest >= 0 else None

    def guaranteed_above_weight(self) -> Fraction | None:
        """The weight above which the first place is guaranteed: both sides are linear in it."""
        if self.outnumbers(1, self.k):
            return Fraction(0)
        gain = self._gain(self.constant)
        return (self._base_sum(self.k) / self.k + self.bonus) / gain if gain > 0 else None

    def guaranteed_up_to_constant(self) -> int | None:
        """The largest whole rank constant at which the first place is guaranteed."""
        if self.outnumbers(1, self.k):
            return _LARGEST_CONSTANT
        needed = (self._base_sum(self.k) / self.k + self.bonus) / self.weight
        count = last_where(_LARGEST_CONSTANT + 1, lambda n: self._gain(Fraction(n - 1)) > needed)
        return count - 1 if count else None

    def _gain(self, constant: Fraction) -> Fraction:
        """How far a first place is above what this leg gives its rivals on average, at weight 1."""
        own = (1 - self.own_bonus) / (constant + 1)
        return own - self._own_terms(constant, 1, self.k) / self.k

    def rival_bonus(self, constant: Fraction) -> Fraction:
        return self.bonus + self.own_bonus * self.weight / (constant + 1)

    def _base_sum(self, m: int) -> Fraction:
        return sum((b.weight * _terms(b.constant, min(m, b.most)) for b in self.bases), Fraction(0))

    def _own_terms(self, constant: Fraction, rank: int, k: int) -> Fraction:
        """Sum of 1/(constant + i) over the first k of this leg's ranks without ``rank``."""
        if rank > k:
            return _terms(constant, min(k, self.depth))
        return _terms(constant, min(k + 1, self.depth)) - 1 / (constant + rank)


@lru_cache(maxsize=4096)
def as_written(number: float) -> Fraction:
    """Return the number as it is written: 0.35 is 7/20."""
    return Fraction(str(number))


def agreed_places(recipe: Recipe, others: int, k: int) -> int:
    """Return how many of the first k places (0 or 1) the reserve keeps for what most of ``others`` other legs agree on.

    Of two legs both must agree, so a memory that one leg alone found has no such rival.
    """
    return int(recipe.reserve.get(_AGREED, k + 1) <= k and others >= 2)


def exact_floor(recipe: Recipe, constants: Mapping[str, float]) -> Fraction:
    """Return what a score is multiplied by at importance 0, beside 1 at importance 1; see ``Recipe.floor``."""
    if not recipe.prior:
        return Fraction(1)
    if recipe.prior_floor is not None:
        return as_written(recipe.prior_floor)
    return 1 - Fraction(1, 2) / (max(as_written(constant) for constant in constants.values()) + 2)


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
    """Return the last n in 1..most for which ``holds``, which is true up to some n and false after; 0 if for none."""
    low, high = 0, 1
    while high <= most and holds(high):  # the answer is mostly small: double up to it before halving
        low, high = high, 2 * high
    high = min(high - 1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


_MEEK = "lexical"
"""Of the scaled legs, the one whose first place may earn less than the weight in ``scored``."""

_NOTHING = 1e-9
"""A score next to nothing beside one of 1."""

LARGEST_CONSTANT = 1_000_000

_MANY = 6


@dataclass(frozen=True, slots=True)
class Rival:
    """Another leg: how many memories it returns lies between ``least`` and ``most``."""

    leg: str
    weight: Fraction
    constant: Fraction | None
    least: int
    most: int
    sure: bool

    def share(self, rank: int) -> Fraction:
        """The least that ``rank`` is sure of."""
        if self.constant is not None:
            return self.weight * (self.constant + 1) / (self.constant + rank)
        return self.weight if self.sure and rank == 1 else Fraction(0)


@dataclass(frozen=True, slots=True)
class ScoreContest:
    """One leg against the others; ``constant`` is None where its shares are scaled scores."""

    leg: str
    weight: Fraction
    constant: Fraction | None
    sure: bool
    depth: int
    rivals: tuple[Rival, ...]
    scope: int | None
    bonus: Fraction
    own_bonus: Fraction

    def best(self, rank: int = 1) -> Fraction:
        """The most that ``rank`` can earn, bonus included."""
        if self.constant is None:
            return self.weight + self.own_bonus
        return self.weight * (self.constant + 1) / (self.constant + rank)

    def heads(self) -> dict[str, int]:
        """Which memory each other leg names first, so that at k = 1 the best of them has least: all different, if the
        scope has enough.
        """
        first = [r for r in self.rivals if r.least]
        room = len(first) if self.scope is None else self.scope - 1
        if room >= len(first) or len(first) > _MANY:
            return {r.leg: i if room >= len(first) else 0 for i, r in enumerate(first)}
        choices = itertools.product(range(room), repeat=len(first))
        by_leg = [dict(zip((r.leg for r in first), choice, strict=True)) for choice in choices]
        return min(by_leg, key=self._largest)

    def _largest(self, heads: Mapping[str, int]) -> Fraction:
        sums: dict[int, Fraction] = {}
        for r in self.rivals:
            if r.leg in heads:
                sums[heads[r.leg]] = sums.get(heads[r.leg], Fraction(0)) + r.share(1)
        return max(sums.values(), default=Fraction(0))

    def lower_bar(self, k: int) -> Fraction:
        """The least that the k-th best of the others can score."""
        if k == 1:
            return self._largest(self.heads())
        return max((r.share(k) for r in self.rivals if r.least >= k), default=Fraction(0))

    def others(self) -> Fraction:
        """W: the most that a rival can have from the other legs and the bonus."""
        return sum((r.weight for r in self.rivals if r.most), Fraction(0)) + max(self.bonus, self.own_bonus)

    def upper_bar(self, rank: int, k: int) -> Fraction:
        """The most that k rivals of a memory at ``rank`` can all score."""
        if self.constant is None:
            return self.others() + (self.weight if self.depth > 1 else 0)
        last = k + 1 if rank <= k else k  # of k rivals in this leg, the last stands here
        return self.others() + (self.weight * (self.constant + 1) / (self.constant + last) if last <= self.depth else 0)

    def outnumbers(self, rank: int, k: int, *, worst: bool) -> bool:
        """Whether fewer than k memories can be ahead: those of other legs, and those before it in this one.

        Those behind it in this one, too, where they may score the same, have the bonus that it lacks, or weigh more.
        """
        behind_too = worst or self.own_bonus > 0 or self.constant is None
        ahead = sum(r.most for r in self.rivals) + (self.depth if behind_too else rank) - 1
        return (ahead if self.scope is None else min(ahead, self.scope - 1)) < k

    def guaranteed(self, rank: int, k: int, scale: Fraction = Fraction(1)) -> bool:
        """Whether no scores keep a memory at ``rank`` out, its own score taken times ``scale``."""
        if k < 1 or rank > k:
            return False
        if self.outnumbers(rank, k, worst=scale < 1):
            return True
        if self.constant is None:
            return False
        value, others = scale * self.best(rank), self.others()
        if others >= value:
            return False
        gain = self.weight * (self.constant + 1)
        ahead = sum(1 for i in range(1, self.depth + 1) if i != rank and gain / (self.constant + i) + others >= value)
        return ahead < k

    def class_of(self, scale: Fraction, k: int) -> ReachClass:
        if self.guaranteed(1, k, scale):
            return "guaranteed"
        return "possible" if scale * self.best() > self.lower_bar(k) else "boost-only"


def last_over(c: ScoreContest, lower: Fraction) -> int:
    """The last rank of a ranked leg whose share is above ``lower``."""
    last = 0
    while last < c.depth and c.best(last + 1) > lower:
        last += 1
    return last


def ranks_without_own(c: ScoreContest, k: int) -> int:
    """How many first ranks nothing keeps out as long as the leg does not rank the rivals: their share is above W."""
    if c.constant is None:
        return int(c.sure and c.weight > c.others())
    return min(k, last_over(c, c.others()))


def guaranteed_above(c: ScoreContest, k: int) -> Fraction | None:
    if c.outnumbers(1, k, worst=False):
        return Fraction(0)
    if c.constant is None:
        return None
    # k rivals stand at ranks 2 to k + 1: w > w(k_g + 1)/(k_g + k + 1) + W
    return c.others() * (c.constant + k + 1) / k if k < c.depth else c.others()


def guaranteed_up_to(c: ScoreContest, k: int) -> int | None:
    if c.constant is None or c.weight <= c.others():
        return None
    if c.outnumbers(1, k, worst=False) or k >= c.depth or not c.others():
        return LARGEST_CONSTANT
    room = c.weight * k / c.others() - k - 1  # the constant must be below this
    largest = room.__ceil__() - 1
    return min(largest, LARGEST_CONSTANT) if largest >= 0 else None
