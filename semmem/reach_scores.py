"""Reach in a fusion that reads scores: what bounded shares alone can prove, and nothing more.

Two kinds of legs. A *scaled* leg of weight w gives its first memory w (its best score is 1 after scaling; in ``scored``
the lexical leg may give less) and each later one anything from that down to 0. A *ranked* leg (the graph in
``scored``) gives rank r exactly w(k + 1)/(k + r). For a memory that only the studied leg found, at cut-off K:

* lower bar: the least that the K-th best of the others can score. For K >= 2 every scaled leg may name one and the
  same memory first and give the rest next to nothing, so only a ranked leg that returns K holds a bar: w(k + 1)/(k + K).
  For K = 1 the first memory of each leg stands alone: the bar is the largest share a first place is sure of;
* upper bar: the most that K rivals can all score. With equal scores K memories can be first in every scaled leg at once,
  so it is W, the sum of the other legs' weights, plus what the studied leg gives its rivals.

``value <= lower``: never (boost-only). ``value > upper``, or fewer than K rivals that could be ahead: always
(guaranteed). Else ``possible``: some scores let it in, and whether those of a corpus do is to be counted there. A share
of 1 is the *best* a scaled leg can give, so a memory at a rank below the first may earn as much, or nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from semmem.reach_report import LegReach, ReachClass, Witness
from semmem.reach_witness import plain
from semmem.types import Recipe

__all__ = ["score_reach"]

_RANKED = "graph"
_MEEK = "lexical"
"""Of the scaled legs, the one whose first place may earn less than the weight in ``scored``."""
_DEPTH = 100
_LARGEST_CONSTANT = 1_000_000


@dataclass(frozen=True, slots=True)
class _Rival:
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
class _Contest:
    """One leg against the others; ``constant`` is None where its shares are scaled scores."""

    leg: str
    weight: Fraction
    constant: Fraction | None
    sure: bool
    depth: int
    rivals: tuple[_Rival, ...]
    scope: int | None
    bonus: Fraction
    own_bonus: Fraction

    def best(self, rank: int = 1) -> Fraction:
        """The most that ``rank`` can earn, bonus included."""
        if self.constant is None:
            return self.weight + self.own_bonus
        return self.weight * (self.constant + 1) / (self.constant + rank)

    def lower_bar(self, k: int) -> Fraction:
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
        """Whether fewer than k memories can be ahead: those of other legs, and those before it in this one."""
        behind_too = worst or self.own_bonus > 0  # then those behind it can be ahead as well
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


def score_reach(
    recipe: Recipe,
    leg: str,
    weights: Mapping[str, float],
    constants: Mapping[str, float],
    k: int,
    scope: int | None,
    sizes: Mapping[str, int],
    endless: Collection[str],
) -> LegReach:
    """Return the reach of a called leg of a recipe whose fusion is ``convex``, ``tm2c2`` or ``scored``."""
    c = _contest(recipe, leg, weights, constants, scope, sizes)
    place = recipe.reserve.get(leg)
    reserved = place is not None and place <= k
    others = sum(1 for r in c.rivals if recipe.reserve.get(r.leg, k + 1) <= k)
    shut = k == 1 and others == 1
    floor = _exact(recipe.prior_floor) if recipe.prior else Fraction(1)
    lower, upper = c.lower_bar(k), c.upper_bar(1, k)
    bare = c.class_of(Fraction(1), k)
    over = 0 if c.best() <= lower else c.depth if c.constant is None or not lower else _last_over(c, lower)
    last_possible = 0 if shut else min(over, k)
    free = k - others
    sure = 0
    while sure < min(free, c.depth) and c.guaranteed(sure + 1, free):
        sure += 1
    sure = max(sure, int(reserved))
    headline: ReachClass = "guaranteed" if sure else "possible" if last_possible else "boost-only"
    worst = c.class_of(floor, k)
    with_prior: ReachClass = "guaranteed" if reserved else "boost-only" if shut else c.class_of(floor, k)
    if with_prior == "guaranteed" and not reserved and others and not c.guaranteed(1, free, floor):
        with_prior = "possible" if floor * c.best() > lower else "boost-only"
    tie: Literal["lower_bar", "upper_bar"] | None = None
    if lower and c.best() == lower:
        tie = "lower_bar"
    elif c.constant is not None and c.best() == upper and not c.outnumbers(1, k, worst=False):
        tie = "upper_bar"
    return LegReach(
        leg,
        headline,
        bare,
        with_prior,
        worst,
        c.class_of(1 / floor, k) if floor else "guaranteed" if bare == "guaranteed" else "possible",
        "guaranteed" if headline == "guaranteed" else "possible",
        _certificate(c, bare, k, place if reserved else None, shut),
        k,
        weight=c.weight,
        rank_constant=c.constant,
        depth=c.depth,
        reserve=place,
        value=c.weight,
        lower_bar=lower,
        upper_bar=upper,
        base_bar=c.others(),
        tie=tie,
        last_rank_over_bar=over,
        last_possible_rank=last_possible,
        guaranteed_ranks=sure,
        base_guaranteed_ranks=_without_own(c, k),
        possible_above_weight=lower / (1 + c.own_bonus / c.weight),
        guaranteed_above_weight=_guaranteed_above(c, k),
        possible_up_to_constant=_LARGEST_CONSTANT if c.constant is not None and c.best() > lower else None,
        guaranteed_up_to_constant=_guaranteed_up_to(c, k),
        sparse=not any(r.least >= k for r in c.rivals),
        vacuous=scope is not None and scope <= k,
        leg_only_impossible=scope is not None
        and any(r.leg in endless and recipe.depths.get(r.leg, _DEPTH) >= scope for r in c.rivals),
        witness=_witness(c, k) if bare != "boost-only" and not shut else None,
        counter_witness=_counter_witness(c, k) if bare == "possible" else None,
    )


def _exact(number: float) -> Fraction:
    return Fraction(str(number))


def _contest(
    recipe: Recipe,
    leg: str,
    weights: Mapping[str, float],
    constants: Mapping[str, float],
    scope: int | None,
    sizes: Mapping[str, int],
) -> _Contest:
    def constant(name: str) -> Fraction | None:
        return _exact(constants[name]) if recipe.fusion == "scored" and name == _RANKED else None

    def sure(name: str) -> bool:
        return not (recipe.fusion == "scored" and name == _MEEK)

    rivals = []
    for name in constants:
        depth = recipe.depths.get(name, _DEPTH)
        if name != leg:
            # the studied memory is in no other list, so a list is at most the rest of the scope
            cap = min(depth, sizes.get(name, depth), depth if scope is None else scope - 1)
            rivals.append(_Rival(name, _exact(weights[name]), constant(name), cap, cap, sure(name)))
    depth = recipe.depths.get(leg, _DEPTH)
    bonus = _exact(recipe.exact_bonus) * _exact(weights[_MEEK]) if _MEEK in constants else Fraction(0)
    return _Contest(
        leg,
        _exact(weights[leg]),
        constant(leg),
        sure(leg),
        depth if scope is None else min(depth, scope),
        tuple(rivals),
        scope,
        bonus=Fraction(0) if leg == _MEEK else bonus,
        own_bonus=bonus if leg == _MEEK else Fraction(0),
    )


def _last_over(c: _Contest, lower: Fraction) -> int:
    """The last rank of a ranked leg whose share is above ``lower``."""
    last = 0
    while last < c.depth and c.best(last + 1) > lower:
        last += 1
    return last


def _without_own(c: _Contest, k: int) -> int:
    """How many first ranks nothing keeps out as long as the leg does not rank the rivals: their share is above W."""
    if c.constant is None:
        return int(c.sure and c.weight > c.others())
    return min(k, _last_over(c, c.others()))


def _guaranteed_above(c: _Contest, k: int) -> Fraction | None:
    if c.outnumbers(1, k, worst=False):
        return Fraction(0)
    if c.constant is None:
        return None
    # k rivals stand at ranks 2 to k + 1: w > w(k_g + 1)/(k_g + k + 1) + W
    return c.others() * (c.constant + k + 1) / k if k < c.depth else c.others()


def _guaranteed_up_to(c: _Contest, k: int) -> int | None:
    if c.constant is None or c.weight <= c.others():
        return None
    if c.outnumbers(1, k, worst=False) or k >= c.depth or not c.others():
        return _LARGEST_CONSTANT
    room = c.weight * k / c.others() - k - 1  # the constant must be below this
    largest = room.__ceil__() - 1
    return min(largest, _LARGEST_CONSTANT) if largest >= 0 else None


def _witness(c: _Contest, k: int) -> Witness:
    """Lists and scores that let the memory in: the others agree on a first, and their other scores are next to nothing."""
    only = f"only-{c.leg}"
    rankings: dict[str, tuple[str, ...]] = {}
    scores: dict[str, tuple[float, ...]] = {}
    for r in c.rivals:
        count = min(k, r.least)
        rankings[r.leg] = tuple(f"m{i}" for i in range(1, count + 1))
        scores[r.leg] = (1.0, *[1e-9] * (count - 1))
    if c.rivals and k > 1:  # the least of a cosine is -1
        scores = {leg: (s[0], *[-1.0 for _ in s[1:]]) if leg == "dense" else s for leg, s in scores.items()}
    rankings[c.leg], scores[c.leg] = (only,), (1.0,)
    return Witness(only, True, rankings, (only,) if c.own_bonus and c.weight <= c.lower_bar(k) else (), scores)


def _counter_witness(c: _Contest, k: int) -> Witness | None:
    """Lists and scores that keep the memory out, or None when this construction does not (which proves nothing).

    k rivals are first in every other scaled leg at once, and stand behind the memory in its own, close by.
    """
    only = f"only-{c.leg}"
    behind = min(k, c.depth - 2)  # and one more, last, for the least score
    close = Fraction(999, 1000)
    sums = []
    for i in range(1, k + 1):
        total = c.bonus + c.own_bonus
        for r in c.rivals:
            if i <= r.most:
                total += r.share(i) if r.constant is not None else r.weight
        if i <= behind:
            total += c.weight * (close if c.constant is None else (c.constant + 1) / (c.constant + 1 + i))
        sums.append(total)
    if min(sums) <= c.weight:
        return None
    ids = [f"m{i}" for i in range(1, k + 1)]
    rankings = {r.leg: tuple(ids[: r.most]) for r in c.rivals}
    scores = {leg: (1.0,) * len(keys) for leg, keys in rankings.items()}
    rankings[c.leg] = (only, *ids[: max(behind, 0)], *(["last"] if c.depth > 1 else []))
    least = -1.0 if c.leg == "dense" else 0.0
    near = float(close) * (1.0 - least) + least
    scores[c.leg] = (1.0, *[near] * max(behind, 0), *([least] if c.depth > 1 else []))
    return Witness(only, False, rankings, tuple(ids) if c.bonus or c.own_bonus else (), scores)


def _certificate(c: _Contest, bare: ReachClass, k: int, place: int | None, shut: bool) -> str:
    said = [] if place is None else [f"The reserve gives the first memory of {c.leg} place {place} or better of {k}."]
    lower, upper = c.lower_bar(k), c.upper_bar(1, k)
    earns = f"The first place of {c.leg} earns at most {plain(c.best())}"
    if shut:
        said.append(f"The only place belongs to the first memory of another leg, so {c.leg} brings in none of its own.")
    elif bare == "guaranteed" and c.outnumbers(1, k, worst=False):
        said.append(f"Fewer than {k} other memories can be ahead of the first of {c.leg}.")
    elif bare == "guaranteed":
        said.append(f"{earns} by rank, and {k} rivals cannot all have more than {plain(upper)} = {float(upper):.5f}.")
    elif bare == "boost-only":
        said.append(f"{earns}; the {'first' if k == 1 else f'first {k}'} of the others earn at least {plain(lower)} each.")
    else:
        said.append(
            f"{earns}; the others' top {k} is sure of {plain(lower)} only, and {k} rivals can all have up to "
            f"{plain(upper)}: the scores decide, so count on the corpus what gets in."
        )
    return " ".join(said)
