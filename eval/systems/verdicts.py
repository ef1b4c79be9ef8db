"""Decide what each leg of a modelled fusion can do to the first k, with a witness checked by the system's own formula.

Sums over ranks are asked of ``semmem.rank_cap.classes``; sums of scaled scores too, with witness lists of our own.
Three rules need no bounds, and their arguments are exact:

* ``candidates``: a document that no candidate leg returned is not in the result, whatever the others add: boost-only.
* ``max``: raw scores are compared, so a document enters when its score is among the k largest: the scores decide.
* ``interleave``: before the first document of the j-th leg stand at most the first ones of the j - 1 legs before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from eval.systems.formulas import place, replay
from eval.systems.model import RULES, Fusion, Leg
from semmem.model.errors import InvalidInput
from semmem.model.recipe import Fusion as Formula
from semmem.model.recipe import Recipe
from semmem.rank_cap import reach
from semmem.rank_cap.report import LegReach, ReachClass

__all__ = ["FusionReach", "LegVerdict", "Lists", "as_recipe", "fusion_reach", "with_weights"]

_DEEP = 10_000
_MOST_COPIES = 1_000
_AS: Mapping[str, Formula] = {"rrf": "rrf", "rank-scaled": "rank-scaled", "min-max": "convex"}


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists to try, and the place the system's formula gives ``memory`` in them (None: it does not come out).

    ``place`` is behind every tie, ``best_place`` ahead of them: between the two the system's order of ties decides.
    """

    memory: str
    rankings: Mapping[str, tuple[str, ...]]
    scores: Mapping[str, tuple[Fraction, ...]]
    place: int | None
    best_place: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        scores = {leg: [float(s) for s in of_leg] for leg, of_leg in self.scores.items()}
        lists = {leg: list(ids) for leg, ids in self.rankings.items()}
        places = {"place": self.place, "best_place": self.best_place}
        return {"memory": self.memory, "rankings": lists, "scores": scores, **places}


@dataclass(frozen=True, slots=True)
class LegVerdict:
    """The reach of one leg: can a document that only this leg found be in the first ``cut``?

    ``witness`` shows what ``class_`` says can happen: that it comes in, or for a boost-only leg that it does not.
    ``counter`` shows the opposite, where that is short to show. ``copied`` shows how many copies of a document at the
    head of a boost-only leg's list bring it in, where the system adds up what one list holds several times. ``needs``
    is the share of the largest other weight below which this leg is boost-only, where the weights are the caller's. A
    tie counts as possible, as in semmem's own reach: most systems break it by the order of their lists.
    """

    leg: str
    class_: ReachClass
    why: str
    cut: int
    witness: Lists
    needs: Fraction | None = None
    counter: Lists | None = None
    copied: Lists | None = None

    @property
    def copies(self) -> int | None:
        """How many copies of its document bring a boost-only leg's own in; None where they do not add up."""
        return None if self.copied is None else self.copied.rankings[self.leg].count(self.copied.memory)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        needs = None if self.needs is None else float(self.needs)
        return {"class": self.class_, "why": self.why, "cut": self.cut, "boost_only_below_share_of_weight": needs} | {
            "witness": self.witness.as_dict(),
            "counter_witness": self.counter and self.counter.as_dict(),
            "enters_with_copies": self.copies,
        }


@dataclass(frozen=True, slots=True)
class FusionReach:
    """The reach of every leg of ``fusion`` for the first ``k``."""

    fusion: Fusion
    k: int
    legs: tuple[LegVerdict, ...]


def fusion_reach(fusion: Fusion, k: int = 10) -> FusionReach:
    """Return what each leg of ``fusion`` can do to the first ``k``. Raises InvalidInput for k below 1."""
    if k < 1:
        raise InvalidInput(f"The cut-off k must be 1 or more, not {k}.")
    verdict = {"candidates": _by_candidates, "max": _by_score, "interleave": _by_turns}.get(fusion.rule, _by_bounds)
    return FusionReach(fusion, k, tuple(verdict(fusion, leg, k) for leg in fusion.legs))


def with_weights(fusion: Fusion, weights: Sequence[float]) -> Fusion:
    """Return ``fusion`` with the caller's weights. Raises InvalidInput where it reads none, or not so many."""
    if fusion.weights != "yours":
        reason = "has no weights" if fusion.weights == "fixed" else "does not read the weights it is given"
        raise InvalidInput(f"The fusion {fusion.name!r} {reason}, so other weights change nothing.")
    if len(weights) != len(fusion.legs) or min(weights) < 0 or not any(weights):
        raise InvalidInput(f"The fusion {fusion.name!r} takes {len(fusion.legs)} weights of 0 or more, one above 0.")
    legs = tuple(replace(leg, weight=w) for leg, w in zip(fusion.legs, weights, strict=True))
    return replace(fusion, legs=legs, name=f"{fusion.name} {', '.join(f'{w:g}' for w in weights)}")


def as_recipe(fusion: Fusion, depths: Mapping[str, int], *, name: str | None = None) -> Recipe:
    """Return the recipe that fuses as ``fusion`` does. Raises InvalidInput for a rule that is no sum over lists."""
    if fusion.rule not in _AS:
        raise InvalidInput(
            f"The fusion {fusion.name!r} is no sum over lists ({RULES[fusion.rule]}), so its lists cannot be fused "
            "again here; compare its runs with and without the leg by --run."
        )
    # 1/(constant + position), positions from 0, is 1/(constant - 1 + rank), ranks from 1
    shift = fusion.origin - 1 if fusion.rule == "rrf" else 0
    return Recipe(
        name or fusion.name,
        {one.name: one.weight for one in fusion.legs},
        dict.fromkeys((one.name for one in fusion.legs), fusion.constant + shift),
        depths=depths,
        prior=False,
        dedup=False,
        fusion=_AS[fusion.rule],
    )


def _by_bounds(fusion: Fusion, leg: Leg, k: int) -> LegVerdict:
    cut, others = fusion.shown(k), [other for other in fusion.legs if other.name != leg.name]
    depth = fusion.depth.at(k) if fusion.depth else _DEEP
    recipe = as_recipe(fusion, dict.fromkeys((one.name for one in fusion.legs), depth))
    leg_reach = reach(recipe, cut, deepened=False).regimes["any"].legs[leg.name]
    class_: ReachClass = leg_reach.class_
    why = _because(leg_reach, cut)
    if cut > k:
        passed = "always among" if class_ == "guaranteed" else "among" if class_ == "possible" else "not among"
        why = f"{passed} the {cut} that the {fusion.reranker} is shown, which decides: {why}"
        class_ = "possible" if class_ == "guaranteed" else class_
    needs = None
    if fusion.weights == "yours" and fusion.rule != "min-max" and leg_reach.called and leg_reach.lower_bar:
        above, largest = leg_reach.possible_above_weight, max(other.exact_weight for other in others)
        needs = above / largest if above is not None and largest else None
    rankings = leg_reach.witness.rankings if leg_reach.witness else _crowd(fusion, leg, cut)
    scores: dict[str, tuple[Fraction, ...]] = {}
    if fusion.rule == "min-max":
        rankings, scores = _scaled_lists(fusion, leg, cut)
    copied = _with_copies(fusion, leg, rankings, cut, k) if fusion.adds_copies and class_ == "boost-only" else None
    return LegVerdict(leg.name, class_, why, cut, _replay(fusion, leg, rankings, scores, k), needs, copied=copied)


def _with_copies(fusion: Fusion, leg: Leg, rankings: Mapping[str, tuple[str, ...]], cut: int, k: int) -> Lists | None:
    """Return the witness with the fewest copies of the leg's own document that bring it in; None where none do."""
    for copies in range(2, _MOST_COPIES + 1):
        lists = _replay(fusion, leg, {**rankings, leg.name: (f"only-{leg.name}",) * copies}, {}, k)
        if lists.place is not None and lists.place <= cut:
            return lists
    return None


def _because(leg_reach: LegReach, cut: int) -> str:
    if not leg_reach.called:
        return "weight 0 adds nothing to a score"
    value, lower, upper = (f"{float(n):.4f}" for n in (leg_reach.value, leg_reach.lower_bar, leg_reach.upper_bar))
    if leg_reach.tie == "lower_bar":
        return f"its first place earns {value}, exactly what place {cut} of another leg has: the order of ties decides"
    if leg_reach.class_ == "boost-only":
        return f"its first place earns {value}, and the first {cut} of another leg have at least {lower}, more"
    if leg_reach.sparse:
        return f"no other leg returns {cut} documents, so places are left over"
    if leg_reach.class_ == "guaranteed":
        return f"its first place earns {value}, and {cut} others cannot all have more than {upper}"
    if not leg_reach.lower_bar:
        return f"its first place earns up to {value}, and nothing is sure of more than 0 at place {cut}"
    return f"its first place earns {value}, above {lower}, the least that place {cut} of the others can have"


def _by_candidates(fusion: Fusion, leg: Leg, k: int) -> LegVerdict:
    depth = fusion.depth.at(k) if fusion.depth else k
    only, crowd = f"only-{leg.name}", tuple(f"m{i}" for i in range(1, depth + 1))
    candidate_leg = next(one for one in fusion.legs if one.candidates)
    falling = tuple(Fraction(9, 10) - Fraction(i, 1000) for i in range(depth))
    rankings: dict[str, tuple[str, ...]] = {candidate_leg.name: crowd}
    scores: dict[str, tuple[Fraction, ...]] = {candidate_leg.name: falling}
    if leg.candidates:
        rankings, scores = {leg.name: (only, *crowd[1:])}, {leg.name: falling}
        why = (
            "the result is made of this leg's list; what the others add to its competitors can still push its own down"
        )
        return LegVerdict(leg.name, "possible", why, k, _replay(fusion, leg, rankings, scores, k))
    rankings[leg.name], scores[leg.name] = (only,), (Fraction(str(leg.most)),)
    why = f"it adds to documents of {candidate_leg.name}; what is not among the first {depth} there is not a candidate"
    return LegVerdict(leg.name, "boost-only", why, k, _replay(fusion, leg, rankings, scores, k))


def _by_score(fusion: Fusion, leg: Leg, k: int) -> LegVerdict:
    only = f"only-{leg.name}"
    rankings = {one.name: tuple(f"m{i}" for i in range(1, k + 1)) for one in fusion.legs if one.name != leg.name}
    scores = {name: (Fraction(1, 2),) * k for name in rankings}
    why = "the larger raw score wins: it depends on the scale of each leg's scores, not on how good its finds are"
    mine, larger = {leg.name: (Fraction(9, 10),)}, {name: (Fraction(12),) * k for name in rankings}
    lists = {**rankings, leg.name: (only,)}
    witness = _replay(fusion, leg, lists, {**scores, **mine}, k)
    counter = _replay(fusion, leg, lists, {**larger, **mine}, k)
    return LegVerdict(leg.name, "possible", why, k, witness, counter=counter)


def _by_turns(fusion: Fusion, leg: Leg, k: int) -> LegVerdict:
    turn = 1 + [one.name for one in fusion.legs].index(leg.name)
    class_: ReachClass = "guaranteed" if turn <= k else "possible" if k > 1 else "boost-only"
    why = f"its first document is at place {turn} or better" if turn <= k else f"its turn is number {turn}"
    return LegVerdict(leg.name, class_, why, k, _replay(fusion, leg, _crowd(fusion, leg, k), {}, k))


def _crowd(fusion: Fusion, leg: Leg, cut: int) -> dict[str, tuple[str, ...]]:
    """Return lists in which the others share ``cut`` - 1 documents and add one each; ``leg`` returns only its own."""
    shared = [f"m{i}" for i in range(1, cut)]
    return {
        one.name: (f"only-{leg.name}",) if one.name == leg.name else (*shared, f"last-{one.name}")
        for one in fusion.legs
    }


def _scaled_lists(
    fusion: Fusion, leg: Leg, cut: int
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[Fraction, ...]]]:
    """Return lists in which the others agree on one document and the rest of theirs scores next to nothing.

    The leg's own list has a second document, the first of the others, so that it is scaled by a span.
    """
    crowd = tuple(f"m{i}" for i in range(1, cut + 1))
    lists = {one.name: crowd for one in fusion.legs}
    faint = Fraction(1, 1000)
    scores = {name: (Fraction(1), *[faint] * (cut - 1)) for name in lists}
    lists[leg.name], scores[leg.name] = (f"only-{leg.name}", "m1")[: max(cut, 1)], (Fraction(1), faint)[: max(cut, 1)]
    return lists, scores


def _replay(
    fusion: Fusion,
    leg: Leg,
    rankings: Mapping[str, tuple[str, ...]],
    scores: Mapping[str, tuple[Fraction, ...]],
    k: int,
) -> Lists:
    only = f"only-{leg.name}"
    fused = replay(fusion, rankings, scores, k)
    return Lists(only, rankings, scores, place(fused, only), place(fused, only, ties_lose=False))
