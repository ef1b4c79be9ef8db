"""What is known before a class is computed: sizes of lists, importances, and the places of a reserve."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from semmem.model.recipe import USUAL_DEPTH, Recipe
from semmem.rank_cap.contest import Contest
from semmem.rank_cap.places import Lists
from semmem.rank_cap.report import ReachClass
from semmem.rank_cap.score_ranges import ShareRange
from semmem.rank_cap.shares import as_written

__all__ = ["AGREED", "Facts", "GuaranteedSlots", "exact_floor", "noise"]

AGREED = "agreed"
"""The name in a reserve for the memory that most legs put first."""

_NOISE = Fraction(2, 10**13)
"""Scores that differ by less than this share of the largest possible score may tie: fusion rounds to 13 places."""


@dataclass(frozen=True, slots=True)
class GuaranteedSlots:
    """The reserve, seen from one leg: the ``place`` it keeps for the leg's first memory (None: none within the cut).

    ``sure`` says that the memory at this place is shown. ``others`` is how many places may belong to others; ``shut``
    says that the only place belongs to another leg.
    """

    place: int | None
    sure: bool
    others: int
    shut: bool

    def class_of(self, contest: Contest[Any], scale: Fraction | None, free: int) -> ReachClass:
        """Return the class of the first place when its score is multiplied by ``scale``, among ``free`` places.

        None is no bound: the others may count for nothing.
        """
        if self.sure or self.shut:
            return "guaranteed" if self.sure else "boost-only"
        if scale is None:
            return "guaranteed" if contest.guaranteed(1, free) else "possible"
        class_ = contest.class_of(scale, free)
        return "possible" if class_ == "boost-only" and self.place is not None else class_


@dataclass(frozen=True, slots=True)
class Facts:
    """The cut-off and what is known of the lists: their sizes, or the lists of one recall.

    The first ``k`` of the fused order decide what is shown, and its first ``kept`` are sure to be shown; both are the
    cut-off itself where nothing reorders or pages. ``scope``, ``sizes`` and ``endless`` are the arguments of ``reach``;
    ``floor`` is the factor of importance 0, and ``ranges`` are between which shares the places of a leg earn.
    """

    k: int
    kept: int
    scope: int | None = None
    sizes: Mapping[str, int] | None = None
    endless: Collection[str] = ()
    lists: Lists | None = None
    floor: Fraction = Fraction(1)
    ranges: Mapping[str, ShareRange] = field(default_factory=dict)

    def rows(self, recipe: Recipe, leg: str, *, other: bool) -> tuple[int, int, int | None]:
        """Return how many rows ``leg`` returns, at least and at most, and the rank by which it has named k memories.

        ``other`` is for a competitor of the studied leg: without lists, a competitor does not return the studied
        memory.
        """
        if self.lists is not None:
            ranking = self.lists.lists.get(leg)
            if ranking is None:
                return 0, 0, None
            return ranking.length, ranking.length, ranking.firsts[self.k - 1] if len(ranking.firsts) >= self.k else None
        most = recipe.depths.get(leg, USUAL_DEPTH)
        if other:
            most = min(most, (self.sizes or {}).get(leg, most))
        if self.scope is not None:
            most = min(most, self.scope - 1 if other else self.scope)
        least = min(self.k, most)
        return least, most, self.k if least == self.k else None

    def shares(self, leg: str, depth: int) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return the most and the least that the places of ``leg`` earn at weight 1 in a fusion that reads scores.

        None where they may earn anything. Of known lists both are the same.
        """
        if self.lists is None:
            return None if leg not in self.ranges else self.ranges[leg].to(depth)
        ranking = self.lists.lists.get(leg)
        return None if ranking is None else ranking.scaled

    def factors(self, recipe: Recipe, constants: Mapping[str, float], leg: str) -> dict[str, Any]:
        """Return the factors that the priors can apply, as arguments of ``Contest``; all 1 without lists or a prior."""
        if self.lists is None or not (recipe.prior or recipe.by_time):
            return {}
        floor, lists = self.floor, self.lists.lists
        others = [ranking for name, ranking in lists.items() if name in constants and name != leg and ranking.length]
        own = lists[leg]

        def factor(importance: float) -> Fraction:
            return floor + (1 - floor) * Fraction(importance)

        least = min((ranking.least for ranking in others), default=own.least)
        most = max([own.most, *(ranking.most for ranking in others)])
        return {
            "own_least": factor(own.least),
            "own_most": factor(own.most),
            "competitor_least": factor(least),
            "competitor_most": factor(most),
            "even": own.least == own.most,
        }

    def bonuses(self, leg: str, bonus: Fraction) -> dict[str, Any]:
        """Return the bonuses of a competitor of ``leg``, and of its own memory, as arguments of ``Contest``."""
        if self.lists is None:
            return {"bonus": bonus, "may": bonus}
        lists = self.lists.lists
        anywhere = any(ranking.exact for ranking in lists.values())
        return {"bonus": bonus if anywhere else Fraction(0), "may": bonus if lists[leg].exact else Fraction(0)}

    def reserved(self, recipe: Recipe, leg: str, others: Mapping[str, tuple[int, int]]) -> GuaranteedSlots:
        """Return what the reserve of ``recipe`` does for or against ``leg``; ``others`` has (least, most) by
        competitor.

        A place belongs to another leg's first memory where that leg may have one. Rows that fold away bring a place
        beyond the cut-off within it.
        """
        place = recipe.reserve.get(leg)
        within_reach = self.k + (0 if self.lists is None else self.lists.folded)
        own = place if place is not None and place <= within_reach else None
        places = [(recipe.reserve[name], rows) for name, rows in others.items() if rows[1] and name in recipe.reserve]
        within = sum(1 for rank, _ in places if rank <= self.kept)
        within += _consensus_slots(recipe, sum(1 for rows in others.values() if rows[1]), self.kept)
        shut = own is None and self.k == 1 and any(rank == 1 and rows[0] for rank, rows in places)
        return GuaranteedSlots(own, own is not None and own <= self.kept, within, shut)

    def sure_ranks(self, leg: str, ranks: int) -> int:
        """Return how many of the first ``ranks`` of ``leg``, guaranteed by the arithmetic, survive all later steps."""
        if self.lists is None:
            return ranks
        ranking = self.lists.lists[leg]
        if self.all_shown:
            ranks = ranking.length
        return min([ranks, *(rank - 1 for rank in ranking.unsure)])

    @property
    def all_shown(self) -> bool:
        """Return whether everything that was found is shown."""
        return self.lists is not None and self.lists.places is not None and self.lists.places <= self.kept

    @property
    def plain(self) -> bool:
        """Return whether lists like those of the witnesses apply: nothing folds, and all importances are equal."""
        if self.lists is None:
            return True
        lists = self.lists.lists.values()
        weighed = {importance for ranking in lists for importance in (ranking.least, ranking.most)}
        return len(weighed) <= 1 and all(ranking.firsts == tuple(range(1, ranking.length + 1)) for ranking in lists)


def noise(firsts: Mapping[str, Fraction], bonus: Fraction) -> Fraction:
    """Return the difference up to which two scores may tie; ``firsts`` is the worth of a first place in each leg."""
    return _NOISE * (sum(firsts.values(), Fraction(0)) + bonus)


def _consensus_slots(recipe: Recipe, others: int, k: int) -> int:
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
