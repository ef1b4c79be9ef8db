"""The two bars for a memory that only one leg found, where the fusion adds up the legs' own scores.

They follow from bounds on the shares alone; the proofs are in ``score_classes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from semmem.rank_cap.bounds import LARGEST_CONSTANT, Odds, shared_out
from semmem.rank_cap.report import ReachClass

__all__ = [
    "NOTHING",
    "Competitor",
    "ScoreContest",
    "guaranteed_above",
    "guaranteed_up_to",
    "last_over",
    "last_possible",
    "possible_above",
    "ranks_without_own",
]

NOTHING = 1e-9
"""A score that is next to nothing compared with 1."""


@dataclass(frozen=True, slots=True)
class Competitor:
    """Another leg, which returns between ``least`` and ``most`` rows.

    ``kth`` is the rank by which it has surely named k memories, None where it may have fewer. ``sure`` says that its
    first place earns the whole weight. ``shares`` are the most that its places earn and ``sure_shares`` the least; both
    are None where the scores may be anything, and equal where they are known.
    """

    leg: str
    weight: Fraction
    constant: Fraction | None
    least: int
    most: int
    kth: int | None
    sure: bool
    shares: tuple[Fraction, ...] | None = None
    sure_shares: tuple[Fraction, ...] | None = None

    @property
    def known(self) -> bool:
        """Return whether it is known between which shares each place earns."""
        return self.constant is not None or self.shares is not None or not self.most

    def share(self, rank: int) -> Fraction:
        """Return the least share that ``rank`` is sure of."""
        if self.constant is not None:
            return self.weight * (self.constant + 1) / (self.constant + rank)
        if self.sure_shares is not None:
            return self.sure_shares[rank - 1]
        return self.weight if self.sure and rank == 1 else Fraction(0)

    def most_share(self, rank: int) -> Fraction:
        """Return the most that ``rank`` can earn."""
        if self.constant is not None:
            return self.share(rank)
        return self.weight if self.shares is None else self.shares[rank - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreContest(Odds):
    """One leg against the others; ``constant`` is None where its shares are scaled scores.

    ``shares`` are the most that its places earn and ``sure_shares`` the least, as in ``Competitor``.
    """

    constant: Fraction | None
    sure: bool
    competitors: tuple[Competitor, ...]
    shares: tuple[Fraction, ...] | None = None
    sure_shares: tuple[Fraction, ...] | None = None

    @property
    def loose(self) -> bool:
        """Return whether any place of this leg may earn as much as its first."""
        return self.constant is None and self.shares is None

    @property
    def known(self) -> bool:
        """Return whether it is known between which shares each place of each leg earns."""
        return not self.loose and all(r.known for r in self.competitors)

    def share(self, rank: int = 1) -> Fraction:
        """Return the most that ``rank`` can earn without the bonus; for a ranked leg, exactly what it earns."""
        if self.shares is not None:
            return self.shares[rank - 1] if rank <= len(self.shares) else Fraction(0)
        if self.constant is None:
            return self.weight
        return self.weight * (self.constant + 1) / (self.constant + rank)

    def sure_share(self, rank: int = 1) -> Fraction:
        """Return the least that ``rank`` can earn."""
        if self.sure_shares is not None:
            return self.sure_shares[rank - 1] if rank <= len(self.sure_shares) else Fraction(0)
        return self.share(rank)

    def gap(self, rank: int) -> Fraction:
        """Return by how much ``rank`` is surely worth more than the next; below 0 where it may be worth as much."""
        return self.sure_share(rank) - self.share(rank + 1)

    def best(self, rank: int = 1) -> Fraction:
        """Return the most that ``rank`` can earn, including a possible bonus."""
        return self.share(rank) + self.may

    def heads(self) -> dict[str, int]:
        """Which memory each other leg names first, so that at k = 1 the best of them has least: all different, if the
        scope has enough.
        """
        first = [(r, r.kth) for r in self.competitors if r.kth is not None]
        room = len(first) if self.scope is None else max(1, self.scope - 1)
        shares = tuple(r.share(kth) for r, kth in first)
        return {r.leg: i for (r, _), i in zip(first, shared_out(shares, room), strict=True)}

    def _largest(self, heads: Mapping[str, int]) -> Fraction:
        sums: dict[int, Fraction] = {}
        for r in self.competitors:
            if r.leg in heads and r.kth is not None:
                sums[heads[r.leg]] = sums.get(heads[r.leg], Fraction(0)) + r.share(r.kth)
        return max(sums.values(), default=Fraction(0))

    def lower_bar(self) -> Fraction:
        """Return the least that the k-th best of the others can score."""
        if self.k == 1:
            return self._largest(self.heads())
        return max((r.share(r.kth) for r in self.competitors if r.kth is not None), default=Fraction(0))

    def others(self) -> Fraction:
        """Return W, the most that a competitor can have from the other legs and the bonus."""
        return sum((r.weight for r in self.competitors if r.most), Fraction(0)) + self.bonus

    def upper_bar(self, rank: int, k: int) -> Fraction:
        """Return the most that k competitors of a memory at ``rank`` can all score.

        Where every share is bounded it is what they have on average, at the most, if they share the first places of
        all lists.
        """
        if self.known:
            of_others = (r.most_share(i) for r in self.competitors for i in range(1, min(k, r.most) + 1))
            own = [self.share(i) for i in range(1, min(k + 1, self.depth) + 1) if i != rank]
            return (sum(of_others, Fraction(0)) + sum(own[:k], Fraction(0))) / k + self.bonus
        if self.constant is None:
            return self.others() + (self.weight if self.depth > 1 else 0)
        last = k + 1 if rank <= k else k  # of k competitors in this leg, the last stands here
        return self.others() + (self.weight * (self.constant + 1) / (self.constant + last) if last <= self.depth else 0)

    def outnumbers(self, rank: int, k: int, *, worst: bool) -> bool:
        """Return whether fewer than k memories can be ahead: those of other legs, and those before it in this leg.

        Memories behind it in this leg count too, where they may score the same, have the bonus that it lacks, or weigh
        more.
        """
        level = self.loose or (self.shares is not None and self.gap(rank) <= self.slack)
        behind_too = worst or self.bonus > 0 or level
        ahead = sum(r.most for r in self.competitors) + (self.depth if behind_too else rank) - 1
        return (ahead if self.scope is None else min(ahead, self.scope - 1)) < k

    def guaranteed(self, rank: int, k: int, scale: Fraction | None = None) -> bool:
        """Return whether no scores keep a memory at ``rank`` out of the top ``k``.

        Its own score is multiplied by ``scale``; where that is None, the known importances apply.
        """
        if k < 1 or rank > k:
            return False
        own, most = (self.own_least, self.competitor_most) if scale is None else (scale, Fraction(1))
        level = not self.loose and own * self.gap(rank) <= self.slack
        if self.outnumbers(rank, k, worst=own < most or level):
            return True
        if self.known and self.surely_above(own * self.sure_share(rank), most * self.upper_bar(rank, k)):
            return True
        if self.constant is None:
            return False
        value, others = own * self.share(rank), self.others()
        gain = self.weight * (self.constant + 1)
        if not self.surely_above(value, most * others):
            return False
        competitors = (most * (gain / (self.constant + i) + others) for i in range(1, self.depth + 1) if i != rank)
        return sum(1 for competitor in competitors if not self.surely_above(value, competitor)) < k

    def class_of(self, scale: Fraction, k: int) -> ReachClass:
        if self.guaranteed(1, k, scale):
            return "guaranteed"
        return "possible" if self.at_least(scale * self.best(), self.lower_bar()) else "boost-only"


def last_possible(c: ScoreContest) -> int:
    """Return the last rank that can enter, if only by a tie, with the known importances.

    A score that is not known may be equal at every rank, so no memory is surely behind those before it.
    """
    bar = c.competitor_least * c.lower_bar()
    if not c.at_least(c.own_most * c.best(), bar):
        return 0
    if c.loose:
        return c.depth
    last = 1
    while last < c.depth and c.at_least(c.own_most * c.best(last + 1), bar):
        last += 1
    at = c.kth or 1
    return c.capped(last, c.gap(at))


def last_over(c: ScoreContest, lower: Fraction) -> int:
    """Return the last rank of a ranked leg whose share, with a possible bonus, is above ``lower``."""
    last = 0
    while last < c.depth and c.best(last + 1) > lower:
        last += 1
    return last


def ranks_without_own(c: ScoreContest, k: int) -> int:
    """Return how many first ranks nothing keeps out if the leg ranks no competitor: their share is above W."""
    if c.loose:
        return int(c.sure and c.weight > c.others())
    last = 0
    while last < min(k, c.depth) and c.sure_share(last + 1) > c.others():
        last += 1
    return last


def possible_above(c: ScoreContest, lower: Fraction) -> Fraction | None:
    """Return the weight above which the first place clears ``lower``; None where its score is worth nothing."""
    first = c.share() / c.weight
    if not first:
        return None
    return lower / (first + c.unit) if c.unit else max(Fraction(0), lower - c.may) / first


def guaranteed_above(c: ScoreContest, k: int) -> Fraction | None:
    if c.outnumbers(1, k, worst=False):
        return Fraction(0)
    if c.constant is None:
        return None
    # k competitors stand at ranks 2 to k + 1: w > w(k_g + 1)/(k_g + k + 1) + W
    return c.others() * (c.constant + k + 1) / k if k < c.depth else c.others()


def guaranteed_up_to(c: ScoreContest, k: int) -> int | None:
    if c.constant is None or c.weight <= c.others():
        return None
    if c.outnumbers(1, k, worst=False) or k >= c.depth or not c.others():
        return LARGEST_CONSTANT
    room = c.weight * k / c.others() - k - 1  # the constant must be below this
    largest = room.__ceil__() - 1
    return min(largest, LARGEST_CONSTANT) if largest >= 0 else None
