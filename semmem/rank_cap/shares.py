"""What the places of one list earn in each fusion, in exact fractions, the weight of its leg included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, TypeAlias

from semmem.model.leg_scores import MEEK_LEG, reads_scores
from semmem.model.recipe import Fusion

__all__ = ["ByRank", "ByScore", "Scaled", "Shares", "as_written", "by_rank", "earned", "plain"]

Scaled: TypeAlias = "tuple[Sequence[float], Sequence[float]] | None"
"""The most and the least that each place earns at weight 1; None where its score may be anything."""


class Shares(Protocol):
    """What the places of one list earn: none more than the one before it."""

    @property
    def constant(self) -> Fraction | None:
        """The rank constant, where the shares follow from the ranks; None where they are scaled scores."""
        ...

    @property
    def first(self) -> Fraction:
        """The most that a first place can earn in any list."""
        ...

    @property
    def sure(self) -> bool:
        """Whether the first place of any list earns that."""
        ...

    @property
    def known(self) -> bool:
        """Whether it is known between which shares each place earns."""
        ...

    def most(self, rank: int) -> Fraction:
        """Return the most that ``rank`` can earn."""
        ...

    def least(self, rank: int) -> Fraction:
        """Return the least that ``rank`` is sure of."""
        ...

    def total(self, count: int) -> Fraction:
        """Return the most that the first ``count`` places can earn together."""
        ...


@dataclass(frozen=True, slots=True)
class ByRank:
    """Rank r earns exactly ``gain / (constant + r)``."""

    gain: Fraction
    constant: Fraction

    @property
    def first(self) -> Fraction:
        return self.most(1)

    @property
    def sure(self) -> bool:
        return True

    @property
    def known(self) -> bool:
        return True

    def most(self, rank: int) -> Fraction:
        return self.gain / (self.constant + rank)

    def least(self, rank: int) -> Fraction:
        return self.most(rank)

    def total(self, count: int) -> Fraction:
        return self.gain * _terms(self.constant, count)

    def written(self, rank: int | str) -> str:
        """Return the share of ``rank`` as a formula, such as 0.35/(8 + 1)."""
        return f"{plain(self.gain)}/({plain(self.constant)} + {rank})"


@dataclass(frozen=True, slots=True)
class ByScore:
    """A place earns the weight of the leg, ``first``, times its scaled score.

    ``most_shares`` and ``least_shares`` are None where the scores may be anything, and equal where they are known.
    """

    first: Fraction
    sure: bool
    most_shares: tuple[Fraction, ...] | None = None
    least_shares: tuple[Fraction, ...] | None = None

    @property
    def constant(self) -> None:
        return None

    @property
    def known(self) -> bool:
        return self.most_shares is not None

    def most(self, rank: int) -> Fraction:
        return self.first if self.most_shares is None else _at(self.most_shares, rank)

    def least(self, rank: int) -> Fraction:
        if self.least_shares is not None:
            return _at(self.least_shares, rank)
        return self.first if self.sure and rank == 1 else Fraction(0)

    def total(self, count: int) -> Fraction:
        return sum(map(self.most, range(1, count + 1)), Fraction(0))


def by_rank(fusion: Fusion, weight: Fraction, constant: Fraction) -> ByRank:
    """Return the shares of a list whose scores ``fusion`` does not read."""
    if fusion == "scored":
        return ByRank(weight * (constant + 1), constant)
    if fusion == "rank-scaled":  # 1/(k + r/w - 1) = w/(w(k - 1) + r): weighted RRF, so its bounds hold as they are
        return ByRank(weight, weight * (max(constant, Fraction(1)) - 1))
    return ByRank(weight, constant)


def earned(fusion: Fusion, leg: str, weight: Fraction, constant: Fraction, scaled: Scaled) -> Shares:
    """Return the shares of the list of ``leg``; ``scaled`` are those of its scores, where the fusion reads them."""
    if not reads_scores(fusion, leg):
        return by_rank(fusion, weight, constant)
    sure = not (fusion == "scored" and leg == MEEK_LEG)
    if scaled is None:
        return ByScore(weight, sure)
    most, least = (tuple(weight * as_written(share) for share in of) for of in scaled)
    return ByScore(weight, sure, most, least)


@lru_cache(maxsize=4096)
def as_written(number: float) -> Fraction:
    """Return the number as it is written: 0.35 is 7/20."""
    return Fraction(str(number))


def plain(number: Fraction) -> str:
    """Return the number as a person writes it: 1, 0.35, or 1/3 where no short decimal is exact."""
    if number.denominator == 1:
        return str(number.numerator)
    short = repr(float(number))
    return short if Fraction(short) == number else str(number)


def _at(shares: tuple[Fraction, ...], rank: int) -> Fraction:
    return shares[rank - 1] if rank <= len(shares) else Fraction(0)


@lru_cache(maxsize=512)
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
