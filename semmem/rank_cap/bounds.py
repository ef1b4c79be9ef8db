"""The two bars that a memory must clear when only one leg found it, in exact fractions, in a fusion by rank.

The bounds and their proofs are in ``classes``; ``score_bounds`` has the bars of a fusion that reads scores.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

from semmem.rank_cap.contest import LARGEST_CONSTANT, Contest, last_where
from semmem.rank_cap.report import Witness
from semmem.rank_cap.shares import ByRank, plain

__all__ = ["RankContest", "RankScaledContest"]

_TRIED_ORDERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class RankContest(Contest[ByRank]):
    """One leg against the others, summed by rank, with the arithmetic of both bars."""

    def tails(self) -> dict[str, int]:
        """Which memory each leg that returns k names last, so that the largest sum of such last shares is least.

        They are all different, unless the scope is so small that some must share one.
        """
        full = [other.kth for other in self.others if other.kth is not None]
        folded = any(kth != self.k for kth in full)
        return self.shared(len(full) if self.scope is None or folded else max(1, self.scope - self.k))

    def lower_bar(self) -> Fraction:
        """Return B_min; 0 where no other leg returns k memories."""
        return self.largest(self.tails())

    def base_bar(self, m: int) -> Fraction:
        """Return B_base: the most that m competitors that this leg does not rank can have on average."""
        return self.total_of_others(m) / m + self.bonus

    def upper_bar(self, rank: int, k: int) -> Fraction:
        """Return B_max at cut-off ``k``: the most that k competitors can have on average."""
        return self.average(rank, k)

    def surely_ahead(self, rank: int, k: int, own: Fraction, most: Fraction) -> bool:
        return self.surely_above(own * self.earns.most(rank), most * self.upper_bar(rank, k))

    def ranks_without_own(self, k: int) -> int:
        return last_where(
            min(k, self.depth),
            lambda r: self.earns.most(r) > self.base_bar(k - r + 1) or self.outnumbers(r, k),
        )

    def meets_upper_bar(self) -> bool:
        return self.ties(self.earns.most(1), self.upper_bar(1, self.k))

    def possible_up_to_constant(self) -> int | None:
        bar = self.lower_bar() if self.unit else self.lower_bar() - self.may
        if bar <= 0:
            return LARGEST_CONSTANT
        largest = math.ceil(self.weight * (1 + self.unit) / bar - 1) - 1
        return min(largest, LARGEST_CONSTANT) if largest >= 0 else None

    def guaranteed_above_weight(self) -> Fraction | None:
        """Return the weight above which the first place is guaranteed; both sides are linear in it."""
        if self.outnumbers(1, self.k):
            return Fraction(0)
        gain = self._gain(self.earns.constant)
        return (self.total_of_others(self.k) / self.k + self._fixed_bonus) / gain if gain > 0 else None

    def guaranteed_up_to_constant(self) -> int | None:
        if self.outnumbers(1, self.k):
            return LARGEST_CONSTANT
        needed = (self.total_of_others(self.k) / self.k + self._fixed_bonus) / self.weight
        count = last_where(LARGEST_CONSTANT + 1, lambda n: self._gain(Fraction(n - 1)) > needed)
        return count - 1 if count else None

    def _gain(self, constant: Fraction) -> Fraction:
        """Return how far a first place is above what this leg gives its competitors on average, at weight 1."""
        own = ByRank(Fraction(1), constant)
        behind = own.total(min(self.k + 1, self.depth)) - own.first
        return (1 - self.unit) * own.first - behind / self.k

    @property
    def _fixed_bonus(self) -> Fraction:
        """Return the bonus where it does not grow with this leg's own weight."""
        return Fraction(0) if self.unit else self.bonus

    # ---------------------------------------------------------------------- lists and sums that show an outcome

    def witness(self) -> Witness | None:
        """Return lists that let the memory in whenever its value exceeds the lower bar.

        All other legs agree on the first k - 1 memories and then each names a memory of its own (``tails``), so that
        the k-th best has a single share, taken at place k. Where the bar is not exceeded, the memory has the bonus.
        """
        only, tails = f"only-{self.leg}", self.tails()
        shared = [f"m{i}" for i in range(1, self.k)]
        lists = {
            other.leg: tuple([*shared, f"tail{tails[other.leg]}"] if other.leg in tails else shared[: other.least])
            for other in self.others
        }
        exact = (only,) if self.earns.most(1) <= self.lower_bar() else ()
        return Witness(only, True, {**lists, self.leg: (only,)}, exact)

    def counter_witness(self) -> Witness | None:
        """Return lists that keep the memory out, or None when none was found (which proves nothing).

        k competitors fill the first places of every other leg and the places of this leg after the first. Each leg in
        turn hands its largest share to the competitor with the smallest sum (Graham's list scheduling, 1969); several
        orders of the legs are tried, and the lists are returned only if, counted exactly, every competitor beats the
        memory. A competitor that no leg names beats nothing, whatever the bonus.
        """
        k = self.k
        legs = [(o.leg, [o.earns.most(i) for i in range(1, min(k, o.most) + 1)]) for o in self.others]
        legs.append((self.leg, [self.earns.most(i) for i in range(2, min(k + 1, self.depth) + 1)]))
        for order in itertools.islice(itertools.permutations(legs), _TRIED_ORDERS):
            rough = [0.0] * k
            sums = [Fraction(0)] * k
            places: dict[str, list[int]] = {}
            for name, shares in order:
                places[name] = sorted(range(k), key=rough.__getitem__)[: len(shares)]
                for competitor, share in zip(places[name], shares, strict=True):
                    rough[competitor] += float(share)
                    sums[competitor] = (sums[competitor] or self.bonus) + share
            if min(sums) > self.earns.most(1):
                only = f"only-{self.leg}"
                lists = {name: tuple(f"m{competitor + 1}" for competitor in of) for name, of in places.items()}
                lists[self.leg] = (only, *lists[self.leg])
                competitors = tuple(f"m{i}" for i in range(1, k + 1))
                return Witness(only, False, lists, competitors if self.bonus else ())
        return None

    def forbids(self) -> str:
        """Say why the memory cannot enter: its value is below the least that the k-th best of the others earns."""
        bar, value = self.lower_bar(), self.best()
        last = next((o for o in self.others if o.kth is not None and o.earns.least(o.kth) == bar), None)
        whence = f"{last.earns.written(str(last.kth))} = " if last else ""
        weighed = ""
        if self.own_most != self.competitor_least:
            weighed = (
                f", with the importances found times {plain(self.own_most)} against "
                f"{plain(self.competitor_least)} or more"
            )
        return (
            f"The first place of {self.leg} earns {self.earns.written('1')} = {value} = {float(value):.5f}; the first "
            f"{self.k} of {last.leg if last else 'the other legs'} earn at least {whence}{bar} = {float(bar):.5f} "
            f"each, which is more{weighed}."
        )

    def forces(self) -> str:
        """Say why the memory cannot be kept out: k competitors would need more than all places together can give."""
        k, value, upper = self.k, self.earns.most(1), self.upper_bar(1, self.k)
        terms = [f"{o.earns.written('i')}, i = 1..{min(k, o.most)} ({o.leg})" for o in self.others if o.most]
        terms.append(f"{self.earns.written('i')}, i = 2..{k + 1} ({self.leg})")
        return (
            f"{k} memories that all reach a first place of {self.leg}, {self.earns.written('1')} = {value}, need "
            f"{k} x {value} = {float(k * value):.5f} between them; all that {k} memories can collect is the sum of "
            f"{' + '.join(terms)} = {float(k * upper):.5f}, which is less."
        )

    def leaves_open(self, *, tied: bool) -> str:
        if tied:
            return (
                f"The first place of {self.leg} earns {self.best()} = {float(self.best()):.5f}, exactly as much as the "
                f"least that place {self.k} of the others can have; a tie goes by key, so it may come in or not."
            )
        value, lower, upper = self.earns.most(1), self.lower_bar(), self.upper_bar(1, self.k)
        return (
            f"The first place of {self.leg} earns {value} = {float(value):.5f}, above the lower bar {float(lower):.5f} "
            f"and not above the upper bar {float(upper):.5f}: the lists decide."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankScaledContest(RankContest):
    """The contest of ``rank-scaled``: as weighted RRF with the constant w(k - 1), answered in the recipe's own numbers.

    The weight that guarantees is left out: it also scales the leg's competitors, and more of it is not always better.
    """

    @property
    def constant(self) -> Fraction:
        return self.earns.constant / self.weight + 1

    @property
    def preface(self) -> str:
        return f"As weighted RRF with the constant w(k - 1) = {plain(self.earns.constant)}."

    def possible_above_weight(self) -> Fraction | None:
        bar = self.lower_bar()
        if not bar:
            return Fraction(0)
        room = 1 / bar - (self.constant - 1)  # r/w is below this
        return 1 / room if room > 0 else None

    def possible_up_to_constant(self) -> int | None:
        bar = self.lower_bar()
        if not bar:
            return LARGEST_CONSTANT
        last = math.ceil(1 / bar + 1 - 1 / self.weight) - 1
        return last if last >= 1 else None

    def guaranteed_above_weight(self) -> None:
        return None

    def guaranteed_up_to_constant(self) -> None:
        return None
