"""The two bars for a memory that only one leg found, where the fusion adds up the legs' own scores.

There are two kinds of legs. A *scaled* leg of weight w gives its first memory w (its best score is 1 after scaling; in
``scored`` the lexical leg may give less) and each later one anything from that down to 0. A *ranked* leg (the graph in
``scored``) gives rank r exactly w(k + 1)/(k + r). For a memory that only the studied leg found, at cut-off K:

* lower bar: the least that the K-th best of the others can score. For K >= 2 every scaled leg may name one and the
  same memory first and give the rest next to nothing, so only a ranked leg that returns K sets a bar, its K-th share.
  For K = 1 the first memory of each leg stands alone: the bar is the largest share that a first place is sure of;
* upper bar: the most that K competitors can all score. With equal scores K memories can be first in every scaled leg at
  once, so it is W, the sum of the other legs' weights, plus what the studied leg gives its competitors.

``value < lower``: never in (boost-only). ``value > upper``, or fewer than K competitors that could be ahead: always in
(guaranteed). Else ``possible``: some scores let it in, and whether those of a corpus do has to be counted there. A
share of 1 is the *best* a scaled leg can give, so a memory at a rank below the first may earn as much, or nothing. A
tie may go either way, as in ``classes``.

``ranges`` bound what a place earns before a question is asked, such as what the places of earlier lists earned. Then
the lower bar is the least share of another leg's K-th place, the upper bar the average of the most that the first K
places of all lists give; the memory itself has the most of its place against the one and the least against the other.
So *boost-only* and *guaranteed* hold for all lists whose places earn no less and no more.

Where the lists are known, so are their scores, and a place of a list earns one share, as in a fusion by rank. Then both
bars are those of ``classes``: the K-th share of another list is the least that the K-th best has, and K competitors
cannot all have more than the first K places of all lists give on average. The classes are those of lists with these
scores at these places, whichever memory stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from semmem.model.leg_scores import BONUS_LEG, MEEK_LEG, least_score
from semmem.rank_cap.contest import LARGEST_CONSTANT, Contest, last_where
from semmem.rank_cap.report import Witness
from semmem.rank_cap.shares import Shares, plain

__all__ = ["ScoreContest"]

_NOTHING = 1e-9
"""A score that is next to nothing compared with 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreContest(Contest[Shares]):
    """One leg against the others in a fusion that reads scores; ``constant`` is that of a ranked leg."""

    @property
    def known(self) -> bool:
        """Return whether it is known between which shares each place of each leg earns."""
        return self.earns.known and all(other.earns.known or not other.most for other in self.others)

    def heads(self) -> dict[str, int]:
        """Which memory each other leg names first, so that at k = 1 the best of them has least: all different, if the
        scope has enough.
        """
        return self.shared(len(self.others) if self.scope is None else max(1, self.scope - 1))

    def lower_bar(self) -> Fraction:
        if self.k == 1:
            return self.largest(self.heads())
        return max((o.earns.least(o.kth) for o in self.others if o.kth is not None), default=Fraction(0))

    def base_bar(self, m: int) -> Fraction:
        """Return W, the most that a competitor can have from the other legs and the bonus."""
        return sum((other.earns.first for other in self.others if other.most), Fraction(0)) + self.bonus

    def upper_bar(self, rank: int, k: int) -> Fraction:
        """Return the most that k competitors of a memory at ``rank`` can all score.

        Where every share is bounded it is what they have on average, at the most, if they share the first places of
        all lists.
        """
        if self.known:
            return self.average(rank, k)
        if self.constant is None:
            return self.base_bar(k) + (self.earns.first if self.depth > 1 else 0)
        last = k + 1 if rank <= k else k  # of k competitors in this leg, the last stands here
        return self.base_bar(k) + (self.earns.most(last) if last <= self.depth else 0)

    def surely_ahead(self, rank: int, k: int, own: Fraction, most: Fraction) -> bool:
        if self.known and self.surely_above(own * self.earns.least(rank), most * self.upper_bar(rank, k)):
            return True
        value, others = own * self.earns.most(rank), self.base_bar(k)
        if self.constant is None or not self.surely_above(value, most * others):
            return False
        competitors = (most * (self.earns.most(i) + others) for i in range(1, self.depth + 1) if i != rank)
        return sum(1 for competitor in competitors if not self.surely_above(value, competitor)) < k

    def ranks_without_own(self, k: int) -> int:
        return last_where(min(k, self.depth), lambda rank: self.earns.least(rank) > self.base_bar(k))

    def meets_upper_bar(self) -> bool:
        return self.constant is not None and self.ties(self.best(), self.upper_bar(1, self.k))

    def guaranteed_above_weight(self) -> Fraction | None:
        if self.outnumbers(1, self.k):
            return Fraction(0)
        if self.constant is None:
            return None
        # k competitors stand at ranks 2 to k + 1: w > w(k_g + 1)/(k_g + k + 1) + W
        others = self.base_bar(self.k)
        return others * (self.constant + self.k + 1) / self.k if self.k < self.depth else others

    def possible_up_to_constant(self) -> int | None:
        return LARGEST_CONSTANT if self.constant is not None and self.best() > self.lower_bar() else None

    def guaranteed_up_to_constant(self) -> int | None:
        others = self.base_bar(self.k)
        if self.constant is None or self.weight <= others:
            return None
        if self.outnumbers(1, self.k) or self.k >= self.depth or not others:
            return LARGEST_CONSTANT
        room = self.weight * self.k / others - self.k - 1  # the constant must be below this
        largest = room.__ceil__() - 1
        return min(largest, LARGEST_CONSTANT) if largest >= 0 else None

    # ---------------------------------------------------------------------- lists and sums that show an outcome

    def witness(self) -> Witness | None:
        """Return lists and scores that let the memory in: the others agree on a first, and the rest score next to
        nothing.

        Where the first place ties with the lower bar, the others are named so that the tie goes to the memory. None
        where the scores are known: a witness is made of scores of its own and would show nothing.
        """
        if self.known:
            return None
        only = f"only-{self.leg}"
        rankings: dict[str, tuple[str, ...]] = {}
        scores: dict[str, tuple[float, ...]] = {}
        heads = self.heads() if self.k == 1 else {}
        name = "tail" if self.tie() == "lower_bar" else "m"
        for other in self.others:
            if other.least:
                nothing = least_score(other.leg) or _NOTHING
                head = f"{name}{heads.get(other.leg, 0) + 1}"
                behind = f"{head}-" if self.k == 1 else name  # where one first place counts, no second is another's
                rankings[other.leg] = (head, *(f"{behind}{i}" for i in range(2, other.least + 1)))
                first = 1.0 if other.earns.sure or self.k > 1 else nothing
                scores[other.leg] = (first, *[nothing] * (other.least - 1))
        rankings[self.leg], scores[self.leg] = (only,), (1.0,)
        sure = self.earns.sure and all(other.earns.sure for other in self.others)
        exact = (only,) if self.may and self.weight <= self.lower_bar() else ()
        return Witness(only, True, rankings, exact, scores, {} if sure else {MEEK_LEG: 2.0})  # so half of it is 1

    def counter_witness(self) -> Witness | None:
        """Return lists and scores that keep the memory out, or None when this construction does not.

        k competitors are first in every other scaled leg at once, and stand close behind the memory in its own leg.
        """
        if self.known:
            return None
        only, k = f"only-{self.leg}", self.k
        behind = min(k, self.depth - 2)  # and one more, last, for the least score
        close = Fraction(999, 1000)
        sums: list[Fraction] = []
        for i in range(1, k + 1):
            total = Fraction(0)
            for other in self.others:
                if i <= other.most:
                    total += other.earns.most(i) if other.earns.constant is not None else other.earns.first
                    total += self.bonus if other.leg == BONUS_LEG else 0
            if i <= behind:
                total += self.bonus if self.leg == BONUS_LEG else 0
                total += self.weight * close if self.constant is None else self.earns.most(1 + i)
            sums.append(total)
        if min(sums) <= self.weight:
            return None
        ids = [f"m{i}" for i in range(1, k + 1)]
        rankings = {other.leg: tuple(ids[: other.most]) for other in self.others}
        scores = {leg: (1.0,) * len(keys) for leg, keys in rankings.items()}
        rankings[self.leg] = (only, *ids[: max(behind, 0)], *(["last"] if self.depth > 1 else []))
        least = least_score(self.leg)
        near = float(close) * (1.0 - least) + least
        scores[self.leg] = (1.0, *[near] * max(behind, 0), *([least] if self.depth > 1 else []))
        return Witness(only, False, rankings, tuple(ids) if self.bonus else (), scores)

    @property
    def _earns_at_most(self) -> str:
        return f"The first place of {self.leg} earns at most {plain(self.best())}"

    def forces(self) -> str:
        upper, least = self.upper_bar(1, self.k), self.earns.least(1)
        exact = least == self.earns.most(1)
        sure = self._earns_at_most if exact else f"The first place of {self.leg} earns at least {plain(least)}"
        return (
            f"{sure}{'' if self.known and self.constant is None else ' by rank'}, and {self.k} competitors cannot all "
            f"have more than {plain(upper)} = {float(upper):.5f}."
        )

    def forbids(self) -> str:
        bar = plain(self.lower_bar())
        return f"{self._earns_at_most}; the {self.k} best of the others have at least {bar} each, which is more."

    def leaves_open(self, *, tied: bool) -> str:
        if tied:
            return f"{self._earns_at_most}, exactly what place {self.k} of the others has at least; a tie goes by key."
        lower, upper = plain(self.lower_bar()), plain(self.upper_bar(1, self.k))
        return (
            f"{self._earns_at_most}; the others' top {self.k} is sure of {lower} only, and {self.k} competitors can "
            f"all have up to {upper}: the scores decide, so count on the corpus what gets in."
        )
