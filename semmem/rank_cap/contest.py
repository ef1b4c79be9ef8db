"""One leg against the others: the questions about a memory that only this leg found, whatever the fusion.

``bounds`` answers them for a sum by rank, ``score_bounds`` for a sum of scaled scores; ``classes`` has the proofs, and
reads a class off the answers.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Generic, Literal, TypeVar

from semmem.rank_cap.report import ReachClass, Witness
from semmem.rank_cap.shares import Shares

__all__ = ["LARGEST_CONSTANT", "Contest", "OtherLeg", "last_where"]

S = TypeVar("S", bound=Shares)

LARGEST_CONSTANT = 1_000_000

_MOST_WAYS = 1_000
"""The most ways to share a small scope among legs that are tried; where there are more, no sharing is assumed."""


@dataclass(frozen=True, slots=True)
class OtherLeg(Generic[S]):
    """Another leg of the recipe, which returns between ``least`` and ``most`` rows.

    ``kth`` is the rank by which it has surely named k memories of its own, None where it may have fewer.
    """

    leg: str
    earns: S
    least: int
    most: int
    kth: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest(ABC, Generic[S]):
    """One leg against ``others`` at cut-off ``k``; its places earn ``earns``, and it returns up to ``depth`` rows.

    ``bonus`` is the exact-match bonus that a competitor may have, and ``may`` the one that the studied memory may have,
    because a memory with the words of a question may stand below the depth of the lexical leg. ``unit`` is the bonus in
    units of this leg's own first place, where this leg is the lexical one, else 0. ``kth`` is the rank by which this
    leg has surely named k memories. The four factors are the least and most that importance can multiply a score by,
    here and among the competitors; ``even`` says that it is the same for all memories of this leg. Scores that differ
    by no more than ``slack`` may tie, and a tie may go either way.
    """

    leg: str
    weight: Fraction
    earns: S
    others: tuple[OtherLeg[S], ...]
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

    # ---------------------------------------------------------------------- what a fusion answers

    @property
    def constant(self) -> Fraction | None:
        """The rank constant of the recipe, where the shares follow from the ranks."""
        return self.earns.constant

    @property
    def preface(self) -> str:
        """A sentence before the certificate, where the recipe's numbers are not those of the proof."""
        return ""

    @abstractmethod
    def lower_bar(self) -> Fraction:
        """Return the least that the k-th best memory of the others scores; 0 where nothing is known of it."""

    @abstractmethod
    def upper_bar(self, rank: int, k: int) -> Fraction:
        """Return the most that ``k`` competitors of a memory at ``rank`` can all score."""

    @abstractmethod
    def base_bar(self, m: int) -> Fraction:
        """Return the most that ``m`` competitors that this leg does not rank can all score."""

    @abstractmethod
    def surely_ahead(self, rank: int, k: int, own: Fraction, most: Fraction) -> bool:
        """Return whether its score keeps a memory at ``rank`` in the top ``k``.

        ``own`` multiplies its score, ``most`` those of its competitors.
        """

    @abstractmethod
    def ranks_without_own(self, k: int) -> int:
        """Return how many first ranks nothing keeps out of the top ``k`` if the leg ranks no competitor."""

    @abstractmethod
    def meets_upper_bar(self) -> bool:
        """Return whether the first place may tie with the upper bar."""

    @abstractmethod
    def guaranteed_above_weight(self) -> Fraction | None:
        """Return the weight above which the first place is guaranteed; None where none does it, or none is known."""

    @abstractmethod
    def possible_up_to_constant(self) -> int | None:
        """Return the largest whole rank constant at which the first place clears the lower bar."""

    @abstractmethod
    def guaranteed_up_to_constant(self) -> int | None:
        """Return the largest whole rank constant at which the first place is guaranteed."""

    @abstractmethod
    def witness(self) -> Witness | None:
        """Return lists that let the memory in whenever its value exceeds the lower bar; None where none is shown."""

    @abstractmethod
    def counter_witness(self) -> Witness | None:
        """Return lists that keep the memory out, or None when none was found, which proves nothing."""

    @abstractmethod
    def forces(self) -> str:
        """Say why the memory cannot be kept out."""

    @abstractmethod
    def forbids(self) -> str:
        """Say why the memory cannot enter."""

    @abstractmethod
    def leaves_open(self, *, tied: bool) -> str:
        """Say what decides, where the memory may enter or not; ``tied`` with the lower bar."""

    # ---------------------------------------------------------------------- what follows in every fusion

    def best(self, rank: int = 1) -> Fraction:
        """Return the most that ``rank`` can earn, including a possible bonus."""
        return self.earns.most(rank) + self.may

    def gap(self, rank: int) -> Fraction:
        """Return by how much ``rank`` is surely worth more than the next; 0 or less where it may be worth as much."""
        return self.earns.least(rank) - self.earns.most(rank + 1)

    def at_least(self, value: Fraction, bar: Fraction) -> bool:
        """Return whether ``value`` reaches ``bar``, or comes so near that the two may tie."""
        return value >= bar - self.slack

    def surely_above(self, value: Fraction, bar: Fraction) -> bool:
        """Return whether ``value`` is above ``bar`` and cannot tie with it."""
        return value > bar + self.slack

    def ties(self, value: Fraction, bar: Fraction) -> bool:
        """Return whether the two may tie."""
        return abs(value - bar) <= self.slack

    def tie(self) -> Literal["lower_bar", "upper_bar"] | None:
        """Return the bar that the first place may tie with."""
        lower = self.lower_bar()
        if lower and self.ties(self.own_most * self.best(), self.competitor_least * lower):
            return "lower_bar"
        return "upper_bar" if self.meets_upper_bar() and not self.outnumbers(1, self.k) else None

    def average(self, rank: int, k: int) -> Fraction:
        """Return the most that k competitors of ``rank`` have on average, if they share the first of all places."""
        if rank > k:
            own = self.earns.total(min(k, self.depth))
        else:
            own = self.earns.total(min(k + 1, self.depth)) - self.earns.most(rank)
        return (self.total_of_others(k) + own) / k + self.bonus

    def total_of_others(self, count: int) -> Fraction:
        """Return the most that the first ``count`` places of every other leg earn together."""
        return sum((other.earns.total(min(count, other.most)) for other in self.others), Fraction(0))

    def outnumbers(self, rank: int, k: int, *, worst: bool = False) -> bool:
        """Return whether fewer than k memories can be ahead: those of other legs, and those before it in this leg.

        Memories behind it in this leg count too, where they may score the same or have the bonus that it lacks, and
        with ``worst`` because they may weigh more.
        """
        level = self.constant is None and self.gap(rank) <= self.slack
        behind_too = worst or self.bonus > 0 or level
        ahead = sum(other.most for other in self.others) + (self.depth if behind_too else rank) - 1
        return (ahead if self.scope is None else min(ahead, self.scope - 1)) < k

    def guaranteed(self, rank: int, k: int, scale: Fraction | None = None) -> bool:
        """Return whether no lists keep a memory at ``rank`` out of the top ``k``.

        Its own score is multiplied by ``scale``; where that is None, the known importances apply.
        """
        if k < 1 or rank > k:
            return False
        own, most = (self.own_least, self.competitor_most) if scale is None else (scale, Fraction(1))
        uneven = own < most or own * self.gap(rank) <= self.slack  # one behind it may tie
        return self.outnumbers(rank, k, worst=uneven) or self.surely_ahead(rank, k, own, most)

    def guaranteed_ranks(self, k: int) -> int:
        """Return how many first ranks no lists keep out of the top ``k``."""
        most = max(0, min(k, self.depth))
        return next((rank - 1 for rank in range(1, most + 1) if not self.guaranteed(rank, k)), most)

    def class_of(self, scale: Fraction, k: int) -> ReachClass:
        """Return the class of the first place when its score is multiplied by ``scale``, without reserve."""
        if self.guaranteed(1, k, scale):
            return "guaranteed"
        return "possible" if self.at_least(scale * self.best(), self.lower_bar()) else "boost-only"

    def last_rank_over_bar(self) -> int:
        """Return the last rank whose value is above the lower bar, importances being equal."""
        bar = self.lower_bar()
        return last_where(self.depth, lambda rank: self.best(rank) > bar)

    def last_possible_rank(self) -> int:
        """Return the last rank that can enter, if only by a tie, with the known importances.

        It is no later than the rank by which k memories of this leg are surely ahead.
        """
        bar = self.competitor_least * self.lower_bar()
        last = last_where(self.depth, lambda rank: self.at_least(self.own_most * self.best(rank), bar))
        ordered = self.even and not self.may and self.own_least * self.gap(self.kth or 1) > self.slack
        return min(last, self.kth) if ordered and self.kth is not None else last

    def possible_above_weight(self) -> Fraction | None:
        """Return the weight above which the first place clears the lower bar; None where its score is worth nothing."""
        first = self.earns.most(1)
        if not first:
            return None
        if self.unit:  # the bonus grows with the weight
            return self.lower_bar() * self.weight / (first + self.unit * self.earns.first)
        return max(Fraction(0), self.lower_bar() - self.may) * self.weight / first

    def shared(self, room: int) -> dict[str, int]:
        """Return which of ``room`` memories each leg that names k names last, so that the largest sum is least."""
        last = {other.leg: other.earns.least(other.kth) for other in self.others if other.kth is not None}
        return dict(zip(last, _shared_out(tuple(last.values()), room), strict=True))

    def largest(self, shared: dict[str, int]) -> Fraction:
        """Return the largest sum of the last shares that legs give to one memory."""
        sums: dict[int, Fraction] = {}
        for other in self.others:
            if other.leg in shared and other.kth is not None:
                place = shared[other.leg]
                sums[place] = sums.get(place, Fraction(0)) + other.earns.least(other.kth)
        return max(sums.values(), default=Fraction(0))


@lru_cache(maxsize=4096)
def _shared_out(shares: tuple[Fraction, ...], room: int) -> tuple[int, ...]:
    """Return to which of ``room`` memories each share goes, so that the largest sum is least.

    They go to different memories where there is room, and where there are more ways than ``_MOST_WAYS``: that can only
    make a bar lower.
    """
    if room >= len(shares) or room ** len(shares) > _MOST_WAYS:
        return tuple(range(len(shares)))

    def largest(choice: tuple[int, ...]) -> Fraction:
        sums = dict.fromkeys(choice, Fraction(0))
        for share, place in zip(shares, choice, strict=True):
            sums[place] += share
        return max(sums.values())

    return min(itertools.product(range(room), repeat=len(shares)), key=largest, default=())


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
