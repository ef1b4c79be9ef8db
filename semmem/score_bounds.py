"""The two bars of a fusion that reads scores, for one leg against the others, in exact fractions.

What they are and why they hold is in ``reach_scores``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from semmem.reach_report import ReachClass

__all__ = [
    "LARGEST_CONSTANT",
    "Rival",
    "ScoreContest",
    "guaranteed_above",
    "guaranteed_up_to",
    "last_over",
    "ranks_without_own",
]

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
