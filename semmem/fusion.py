"""Weighted reciprocal rank fusion with one weight and one rank constant per leg, and the steps that follow it.

``score(d) = sum over legs of w_s / (k_s + rank_s(d))``, ranks from 1 (Cormack, Clarke and Buettcher, "Reciprocal Rank
Fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009; they use one constant, 60, and no
weights). Then follow, in this order: exact-match bonus, importance prior, normalisation, order, reserve, folding.

All of semmem orders ties in one way: *score down, then key up*. Scores are rounded to 13 places of the largest possible
score, so two memories whose shares are equal on paper (.35/28 and 1/80) tie, and the key decides, not rounding errors.

Keys may be anything hashable and sortable: ids, or (namespace, id). Nothing here does I/O or reads settings.

There are alternative fusions, which read the legs' scores or scale the ranks. All of them end like ``fusion.rank``:
bonus, prior, divisor, order of ties, reserve, components that sum to the score.

* ``convex``: each list scaled to [0, 1] by its own least and best score, then the weighted sum.
* ``tm2c2``: the same, but from the least score that a leg can give (0, for a cosine -1) to the best of the list (Bruch,
  Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023).
* ``rank-scaled``: sum of 1/(k + rank/w - 1), ranks from 1, as in Qdrant: the weight divides the rank.
* ``scored``: text legs scaled as in ``convex``, the lexical leg against half of the best score that the question
  allows, so that a list of weak matches does not count in full; the graph by rank, w(k + 1)/(k + rank), because the
  masses of a walk are too uneven to be scaled.

Scores are read to 12 significant digits, as when ties in a leg are settled, so that noise is not stretched to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar, overload

from semmem.model.errors import InvalidInput
from semmem.model.leg_scores import BONUS_LEG, BY_RANK, MEEK_LEG, least_score, reads_scores
from semmem.model.recipe import Fusion

__all__ = [
    "AGREED",
    "EXACT",
    "IMPORTANCE",
    "RESERVE",
    "SUPERSEDING",
    "Fused",
    "Made",
    "finish",
    "fold_duplicates",
    "fuse",
    "rank",
    "rank_as",
    "scaled",
    "shares_of",
]

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")

EXACT = "exact"
"""Name of the component that the exact-match bonus adds."""

AGREED = "agreed"
"""The name in a reserve for the memory that more than half of the legs with an answer put first."""

IMPORTANCE = "importance"
"""Name of the component by which the importance of a memory raised a score, or (below 0) lowered it."""

RESERVE = "reserve"
"""Name of the component by which the reserve raised a score."""

SUPERSEDING = "superseding"
"""Name of the component by which a memory was raised to the score of one that it supersedes."""

_DEFAULT_IMPORTANCE = 0.5
_PLACES = 13
_rounded = lru_cache(maxsize=4_096)(round)  # what one leg alone gives to its places is the same in most recalls


class Fused(NamedTuple, Generic[Key]):
    """One fused memory: ``components`` (name -> share) sum to ``score``; ``ranks`` are each leg's, from 1."""

    key: Key
    score: float
    components: dict[str, float]
    ranks: dict[str, int]


def fuse(
    rankings: Mapping[str, Sequence[Key]], weights: Mapping[str, float], rank_constants: Mapping[str, float]
) -> list[Fused[Key]]:
    """Return the weighted reciprocal rank fusion of ``rankings``, best first, ties by key.

    A leg of weight 0, without a weight, or without a ranking contributes no memory. A key that a ranking names twice
    counts at its first place. Raises InvalidInput for a negative weight or rank constant, or a missing constant.
    """
    earned = _earned(rankings, weights, rank_constants)
    places = _places_of(rankings, earned)
    most = math.fsum(w / (rank_constants[leg] + 1) for leg, w in weights.items() if w) or 1.0
    fused = []
    for key in dict.fromkeys(key for of_leg in places.values() for key in of_leg):
        ranks = {leg: of_leg[key] for leg, of_leg in places.items() if key in of_leg}
        shares = {leg: earned[leg][place - 1] for leg, place in ranks.items()}
        fused.append(Fused(key, round(math.fsum(shares.values()) / most, _PLACES) * most, shares, ranks))
    fused.sort(key=_order)
    return fused


class Made(Sequence[Item]):
    """A sequence whose items are made by ``make`` when they are looked at: of a ranked list most never are.

    Who goes through all of them, as an explanation does again and again, has them made once.
    """

    def __init__(self, rows: Sequence[Any], make: Callable[[Any], Item]) -> None:
        self._rows = rows
        self._make = make
        self._all: list[Item] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Item]:
        if self._all is None:
            self._all = list(map(self._make, self._rows))
        return iter(self._all)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return list(map(self._make, self._rows[index]))
        return self._make(self._rows[index])


def rank(
    rankings: Mapping[str, Sequence[Key]],
    *,
    weights: Mapping[str, float],
    rank_constants: Mapping[str, float],
    planned: Collection[str],
    importance: Mapping[Key, float] | None = None,
    prior_floor: float = 0.7,
    exact: Collection[Key] = (),
    exact_bonus: float = 0.0,
    reserve: Mapping[str, int] | None = None,
) -> Sequence[Fused[Key]]:
    """Return the ranked list of a recall: fused, with bonus, prior, normalisation and reserve, best first.

    ``planned`` are the legs that were to be asked. The divisor is what a memory first in each of them would get, with
    importance 1 and the bonus, so a leg that fails (planned, no ranking) leaves the other scores as they were.
    ``importance`` in [0, 1] multiplies every score by ``prior_floor + (1 - prior_floor) * importance``; a missing key
    has 0.5, and None switches the prior off. The legs' components are those of importance 0.5; the difference is the
    component ``importance``, of either sign. ``exact`` are the keys that earn ``exact_bonus``, in units of a first
    place in the lexical leg; without that leg in the plan there is no bonus.

    Every score is in [0, 1] and is the sum of its components. The order is score down, key up, except that ``reserve``
    (leg -> the last place, from 1, at which the leg's first memory may stand) moves such a memory up *to* its place if
    it stands lower. It is put before the memory that it displaces and takes its score; the difference is its component
    ``reserve``. A place may also be kept for ``agreed``: the memory that more than half of the legs with an answer put
    first, if there is one. Places are filled from the top, so no move pushes down a memory that was served before, and
    for every cut-off at or after the last guaranteed slot the head of every reserved leg is above the cut.

    Raises InvalidInput for numbers out of range, or two legs that reserve one place.
    """
    return finish(
        _earned(rankings, weights, rank_constants),
        rankings,
        firsts={leg: w / (rank_constants[leg] + 1) for leg, w in weights.items() if w},
        planned=planned,
        importance=importance,
        prior_floor=prior_floor,
        exact=exact,
        exact_bonus=exact_bonus,
        reserve=reserve,
    )


class _Worth(Generic[Key]):
    """What each memory earned: by its place in the list of each leg, by the bonus and by its importance."""

    def __init__(
        self,
        earned: Mapping[str, Sequence[float]],
        places: Mapping[str, Mapping[Key, int]],
        most: float,
        importance: Mapping[Key, float] | None,
        prior_floor: float,
        exact: Collection[Key],
        bonus: float,
    ) -> None:
        self._earned = earned
        self._places = places
        self._most = most
        self._span = 1.0 - prior_floor
        self._usual = (1.0 if importance is None else prior_floor + self._span * _DEFAULT_IMPORTANCE) / most
        self._importance = {key: own for key, own in (importance or {}).items() if own != _DEFAULT_IMPORTANCE}
        self._exact = frozenset(exact if bonus else ())
        self._bonus = bonus
        self.raised: dict[Key, float] = {}

    def scores(self) -> dict[Key, float]:
        """Return the score of each memory; what one leg alone found, without more, earned what its place there does."""
        scores: dict[Key, float] = {}
        more = {*self._exact, *self._importance}
        for leg, of_leg in self._places.items():
            by_place = [share * self._usual for share in self._earned[leg]]
            more |= scores.keys() & of_leg.keys()
            scores.update(zip(of_leg, [by_place[place - 1] for place in of_leg.values()], strict=True))
        for key in more & scores.keys():
            shares = self._components(key, self._ranks(key)).values()
            # of two numbers a plain sum is rounded as rightly, in a fraction of the time
            scores[key] = sum(shares) if len(shares) < 3 else math.fsum(shares)
        return scores

    def fused(self, row: tuple[float, Key]) -> Fused[Key]:
        """Return the memory of a row (negative score, key) with its components."""
        below, key = row
        ranks = self._ranks(key)
        components = self._components(key, ranks)
        if key in self.raised:
            components[RESERVE] = self.raised[key]
        return Fused(key, -below, components, ranks)

    def _ranks(self, key: Key) -> dict[str, int]:
        return {leg: of_leg[key] for leg, of_leg in self._places.items() if key in of_leg}

    def _components(self, key: Key, ranks: Mapping[str, int]) -> dict[str, float]:
        shares = {leg: self._earned[leg][place - 1] for leg, place in ranks.items()}
        if key in self._exact:
            shares[EXACT] = self._bonus
        components = {name: share * self._usual for name, share in shares.items()}
        if (own := self._importance.get(key)) is not None:  # most memories have no importance of their own
            worth = math.fsum(shares.values()) * self._span * (own - _DEFAULT_IMPORTANCE)
            if worth:
                components[IMPORTANCE] = worth / self._most
        return components


def finish(
    earned: Mapping[str, Sequence[float]],
    rankings: Mapping[str, Sequence[Key]],
    *,
    firsts: Mapping[str, float],
    planned: Collection[str],
    importance: Mapping[Key, float] | None = None,
    prior_floor: float = 0.7,
    exact: Collection[Key] = (),
    exact_bonus: float = 0.0,
    reserve: Mapping[str, int] | None = None,
) -> Sequence[Fused[Key]]:
    """Turn what the places of each leg's list have ``earned``, by whatever formula, into a ranked list; see ``rank``.

    ``firsts`` is the most that each leg with a weight can give, the worth of its first place: the unit of the bonus
    and, summed over the legs, the divisor. Raises InvalidInput for two legs that reserve one place.
    """
    places = _places_of(rankings, earned)
    if not any(places.values()):
        return []
    reserved = _reserved(reserve or {})
    legs = {leg for leg in firsts if leg in planned or rankings.get(leg)}
    most = math.fsum(first for leg, first in firsts.items() if leg in legs)
    bonus = exact_bonus * firsts[BONUS_LEG] if exact_bonus and BONUS_LEG in legs else 0.0
    worth = _Worth(earned, places, most + bonus, importance, prior_floor, exact, bonus)
    rows = sorted((-_rounded(score, _PLACES), key) for key, score in worth.scores().items())
    for leg, place in reserved:
        head = _agreed(rankings, firsts) if leg == AGREED else _head(rankings, firsts, leg)
        if head is not None:
            _raise_to(rows, head, place, worth.raised)
    return Made(rows, worth.fused)


def fold_duplicates(
    ranked: Sequence[Fused[Key]], content: Mapping[Key, Hashable], *, limit: int = 0
) -> list[tuple[Fused[Key], tuple[Key, ...]]]:
    """Fold each memory whose content equals an earlier one's into that one; return each with what was folded into it.

    ``content`` maps a key to its normalised content or a hash of it; a missing key is equal to no other. The order is
    kept; ``limit`` is the most to return, 0 or less for all. Call it on the *ranked* list, after the reserve: where the
    head of a leg is folded, its twin stands above it and everything else moves up, so "the head of every leg, or the
    memory it was folded into, is in the top 5" stays true. Folding before fusion would add up the shares of several
    memories.
    """
    groups: list[tuple[Fused[Key], list[Key]]] = []
    by_content: dict[Hashable, list[Key]] = {}
    for fused in ranked:
        same = content.get(fused.key)
        folded = by_content.get(same) if same is not None else None
        if folded is not None:
            folded.append(fused.key)
            continue
        folded = []
        if same is not None:
            by_content[same] = folded
        groups.append((fused, folded))
    return [(fused, tuple(keys)) for fused, keys in (groups[:limit] if limit > 0 else groups)]


def _earned(
    rankings: Mapping[str, Sequence[Key]], weights: Mapping[str, float], rank_constants: Mapping[str, float]
) -> dict[str, list[float]]:
    """Return what each place of each list earns, by leg in the order of ``weights``."""
    earned: dict[str, list[float]] = {}
    for leg, weight in weights.items():
        if weight < 0 or rank_constants.get(leg, 0) < 0:
            raise InvalidInput(f"The weight and the rank constant of {leg} must be 0 or more.")
        if not weight:
            continue
        if leg not in rank_constants:
            raise InvalidInput(f"The leg {leg} has a weight but no rank constant; pass one, such as 60.")
        constant = rank_constants[leg]
        earned[leg] = [weight / (constant + place) for place in range(1, len(rankings.get(leg, ())) + 1)]
    return earned


def _places_of(rankings: Mapping[str, Sequence[Key]], legs: Collection[str]) -> dict[str, dict[Key, int]]:
    """Return the first place, from 1, of each key in the list of each of ``legs``."""
    lists = {leg: rankings.get(leg, ()) for leg in legs}
    return {leg: dict(zip(reversed(keys), range(len(keys), 0, -1), strict=True)) for leg, keys in lists.items()}


def _order(fused: Fused[Any]) -> tuple[float, Any]:
    return (-fused.score, fused.key)


def _head(rankings: Mapping[str, Sequence[Key]], firsts: Mapping[str, float], leg: str) -> Key | None:
    ranking = rankings.get(leg) if leg in firsts else None
    return ranking[0] if ranking else None


def _agreed(rankings: Mapping[str, Sequence[Key]], firsts: Mapping[str, float]) -> Key | None:
    """Return the memory that more than half of the legs with a weight and an answer put first; None without one."""
    heads = [head for leg in firsts if (head := _head(rankings, firsts, leg)) is not None]
    return next((head for head in heads if 2 * heads.count(head) > len(heads)), None)


def _reserved(reserve: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the reserve from the first place down; served in this order, a move only shifts later places."""
    places = sorted(reserve.items(), key=lambda item: item[1])
    numbers = [place for _, place in places]
    if len(set(numbers)) != len(numbers) or any(place < 1 for place in numbers):
        raise InvalidInput("Each leg of the reserve needs a place of its own, from 1 on.")
    return places


def _raise_to(rows: list[tuple[float, Key]], head: Key, place: int, raised: dict[Key, float]) -> None:
    """Move ``head`` up to ``place``, in place, with the score of the memory it displaces; note the difference."""
    if any(key == head for _, key in rows[:place]):
        return
    index = next(i for i, (_, key) in enumerate(rows) if key == head)
    below, _ = rows.pop(index)
    displaced, _ = rows[place - 1]
    raised[head] = below - displaced
    rows.insert(place - 1, (displaced, head))


_TOP = 100
"""The length of the lists from which ``scored`` takes the least score."""

_FEW = 20
"""With fewer lexical memories than this, ``scored`` uses 0 as the least score instead of the last one's score."""

_NO_SPAN = 1e-9
"""Scores whose relative difference is smaller are equal, because cosines are summed in float32."""


def rank_as(
    fusion: Fusion,
    rankings: Mapping[str, Sequence[Key]],
    scores: Mapping[str, Sequence[float]],
    *,
    weights: Mapping[str, float],
    rank_constants: Mapping[str, float],
    planned: Collection[str],
    most: Mapping[str, float] | None = None,
    importance: Mapping[Key, float] | None = None,
    prior_floor: float = 0.7,
    exact: Collection[Key] = (),
    exact_bonus: float = 0.0,
    reserve: Mapping[str, int] | None = None,
) -> Sequence[Fused[Key]]:
    """Return the ranked list of a recall, fused by ``fusion``, best first; the keywords are those of ``fusion.rank``.

    ``scores`` are the legs' own scores, aligned with ``rankings``, best first. ``most`` is the best score that the
    question allows in a leg, where the leg knows it. ``rrf`` and ``rank-scaled`` read neither.

    Raises InvalidInput for a leg with fewer scores than memories, a score that is not finite, or numbers out of range.
    """
    if fusion in BY_RANK:
        return rank(
            rankings,
            weights=weights,
            rank_constants=rank_constants if fusion == "rrf" else scaled(weights, rank_constants),
            planned=planned,
            importance=importance,
            prior_floor=prior_floor,
            exact=exact,
            exact_bonus=exact_bonus,
            reserve=reserve,
        )
    earned: dict[str, list[float]] = {}
    for leg, weight in weights.items():
        if weight < 0:
            raise InvalidInput(f"The weight of {leg} must be 0 or more.")
        if weight and (keys := rankings.get(leg, ())):
            of_leg = shares_of(fusion, leg, scores.get(leg, ()), len(keys), rank_constants.get(leg, 0), most)
            earned[leg] = [weight * share for share in of_leg]
    return finish(
        earned,
        rankings,
        firsts={leg: weight for leg, weight in weights.items() if weight},
        planned=planned,
        importance=importance,
        prior_floor=prior_floor,
        exact=exact,
        exact_bonus=exact_bonus,
        reserve=reserve,
    )


def scaled(weights: Mapping[str, float], rank_constants: Mapping[str, float]) -> dict[str, float]:
    """Return the rank constants that make weighted RRF rank-scaled: 1/(k + r/w - 1) = w/(w(k - 1) + r).

    A rank constant below 1 counts as 1: there a share is w/r, and below it a first place would have no bound.
    """
    return {leg: weights.get(leg, 0.0) * (max(k, 1.0) - 1.0) for leg, k in rank_constants.items()}


def shares_of(
    fusion: Fusion,
    leg: str,
    scores: Sequence[float],
    count: int,
    rank_constant: float,
    most: Mapping[str, float] | None = None,
) -> list[float]:
    """Return the worth of each of the first ``count`` places of ``leg`` at weight 1, in [0, 1], in a scaled fusion."""
    if not count:  # the leg returned nothing, so no score is the best
        return []
    if not reads_scores(fusion, leg):
        return [(rank_constant + 1) / (rank_constant + place) for place in range(1, count + 1)]
    if len(scores) < count:
        raise InvalidInput(f"The leg {leg} has {count} memories and {len(scores)} scores; {fusion} needs one for each.")
    values = [float(f"{score:.12g}") for score in scores[:count]]
    if not all(map(math.isfinite, values)):
        raise InvalidInput(f"The leg {leg} has a score that is not a finite number, which {fusion} cannot scale.")
    best, least = max(values), min(values)
    if fusion == "tm2c2":
        least = min(best, least_score(leg))
    elif fusion == "scored":
        least = min(values[:_TOP])
        if leg == MEEK_LEG:
            least = min(least, 0.0) if count < _FEW else least
            best = max(best, (most or {}).get(leg, 0.0) / 2)
    span = best - least
    if span <= _NO_SPAN * max(abs(best), abs(least)):
        return [1.0] * count
    return [min(1.0, max(0.0, (value - least) / span)) for value in values]
