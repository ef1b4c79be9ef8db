"""The results of the reach check as frozen dataclasses: one ``LegReach`` for every leg of every regime of a recipe.

All numbers are exact fractions; ``as_dict`` turns them into JSON numbers beside the exact text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

__all__ = ["CLASSES", "LegReach", "Reach", "ReachClass", "RegimeReach", "Witness", "describe", "weakest"]

ReachClass: TypeAlias = Literal["unreachable", "boost-only", "possible", "guaranteed"]
CLASSES: tuple[ReachClass, ...] = ("unreachable", "boost-only", "possible", "guaranteed")
"""The classes, from the weakest to the strongest."""

_EXACT_DIGITS = 60


def weakest(classes: Sequence[ReachClass]) -> ReachClass:
    """Return the weakest of ``classes``, ``guaranteed`` when there are none."""
    return min(classes, key=CLASSES.index, default="guaranteed")


@dataclass(frozen=True, slots=True)
class Witness:
    """Lists by leg that show one outcome for ``memory``, which only the studied leg ranks, when they are fused.

    ``enters`` says which outcome. ``exact`` are the memories that must have the exact-match bonus. ``scores`` are the
    legs' own scores, for a fusion that reads them, and ``most`` the best scores that the question allows, where it
    reads those.
    """

    memory: str
    enters: bool
    rankings: Mapping[str, tuple[str, ...]]
    exact: tuple[str, ...] = ()
    scores: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        lists = {leg: list(ids) for leg, ids in self.rankings.items()}
        out = {"memory": self.memory, "enters": self.enters, "rankings": lists, "exact": list(self.exact)}
        if self.scores:
            out |= {"scores": {leg: list(of_leg) for leg, of_leg in self.scores.items()}, "most": dict(self.most)}
        return out


@dataclass(frozen=True, slots=True)
class LegReach:
    """The reach of one leg in one regime: can a memory that only this leg found be in the top ``k``?

    ``class_`` is the headline: equal importance, with the recipe's reserve, for the first memory of the leg. The other
    classes leave out the reserve, or take the importance that is worst (this memory 0, all others 1) or best for it.

    ``value`` is what the first place earns, ``w/(k_g + 1)``. ``lower_bar`` (B_min) is the least that the k-th best
    memory of the other legs scores, ``upper_bar`` (B_max) what no k competitors can all reach, ``base_bar`` (B_base)
    the same without what the leg itself gives its competitors. Ties lose, and ``tie`` names the bar that is met
    exactly.

    ``last_rank_over_bar`` is the last rank of the leg whose value clears the lower bar, ``last_possible_rank`` that
    rank capped by k; ``guaranteed_ranks`` how many first ranks no lists can keep out, ``base_guaranteed_ranks`` how
    many none can as long as the leg does not rank the competitors. The thresholds are without reserve: a weight must
    *exceed* ``*_above_weight`` (None: none does), a whole rank constant may be *at most* ``*_up_to_constant`` (None:
    not even 0; 1,000,000, the largest allowed, when every one will do).

    ``sparse``: no other leg returns k memories, so the lower bar is 0; ``class_when_sparse`` is the class in that
    case. ``vacuous``: the scope has no more than k memories. ``leg_only_impossible``: another leg returns the whole
    scope, so what this leg brings in has been ranked by that one too.
    """

    leg: str
    class_: ReachClass
    class_without_reserve: ReachClass
    class_with_prior: ReachClass
    class_with_prior_without_reserve: ReachClass
    class_with_best_prior: ReachClass
    class_when_sparse: ReachClass
    certificate: str
    k: int
    weight: Fraction = Fraction(0)
    rank_constant: Fraction | None = None
    depth: int = 0
    reserve: int | None = None
    value: Fraction = Fraction(0)
    lower_bar: Fraction = Fraction(0)
    upper_bar: Fraction = Fraction(0)
    base_bar: Fraction = Fraction(0)
    tie: Literal["lower_bar", "upper_bar"] | None = None
    last_rank_over_bar: int = 0
    last_possible_rank: int = 0
    guaranteed_ranks: int = 0
    base_guaranteed_ranks: int = 0
    possible_above_weight: Fraction | None = None
    guaranteed_above_weight: Fraction | None = None
    possible_up_to_constant: int | None = None
    guaranteed_up_to_constant: int | None = None
    sparse: bool = False
    vacuous: bool = False
    leg_only_impossible: bool = False
    witness: Witness | None = None
    counter_witness: Witness | None = None

    @classmethod
    def alike(cls, leg: str, class_: ReachClass, certificate: str, k: int, **numbers: Any) -> LegReach:
        """Return the reach of a leg whose class is ``class_`` in every respect."""
        return cls(leg, class_, class_, class_, class_, class_, class_, certificate, k, **numbers)

    @property
    def called(self) -> bool:
        """Whether the recipe asks this leg at all."""
        return self.class_ != "unreachable"

    def class_at(self, rank: int) -> ReachClass:
        """Return the class of a memory that only this leg found, at ``rank`` from 1; equal importance, with reserve."""
        if not self.called or rank > self.depth:
            return "unreachable"
        if rank <= self.guaranteed_ranks:
            return "guaranteed"
        return "possible" if rank <= self.last_possible_rank else "boost-only"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; ``exact`` holds the fractions as text where they are short enough."""
        numbers = {
            "weight": self.weight,
            "rank_constant": self.rank_constant,
            "value": self.value,
            "lower_bar": self.lower_bar,
            "upper_bar": self.upper_bar,
            "base_bar": self.base_bar,
            "possible_above_weight": self.possible_above_weight,
            "guaranteed_above_weight": self.guaranteed_above_weight,
        }
        exact = {name: str(n) for name, n in numbers.items() if n is not None and len(str(n)) <= _EXACT_DIGITS}
        plain = (
            *("class_without_reserve", "class_with_prior", "class_with_prior_without_reserve"),
            *("class_with_best_prior", "class_when_sparse", "certificate", "depth", "reserve", "tie"),
            *("last_rank_over_bar", "last_possible_rank", "guaranteed_ranks", "base_guaranteed_ranks"),
            *("possible_up_to_constant", "guaranteed_up_to_constant", "sparse", "vacuous", "leg_only_impossible"),
        )
        return {
            "class": self.class_,
            **{name: None if n is None else float(n) for name, n in numbers.items()},
            **{name: getattr(self, name) for name in plain},
            "exact": exact,
            "witness": self.witness and self.witness.as_dict(),
            "counter_witness": self.counter_witness and self.counter_witness.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class RegimeReach:
    """The reach of every leg in one regime."""

    legs: Mapping[str, LegReach]

    @property
    def worst(self) -> ReachClass:
        """The weakest class of a leg."""
        return weakest([leg.class_ for leg in self.legs.values()])


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of every leg in every regime of ``recipe`` (its name) at cut-off ``k``.

    ``assumptions`` names the assumptions of the classes, from ``places.ASSUMPTIONS``; the reach of a recall has none.
    """

    recipe: str
    k: int
    regimes: Mapping[str, RegimeReach] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()

    @property
    def worst(self) -> ReachClass:
        """The weakest class of a leg in a regime."""
        return weakest([regime.worst for regime in self.regimes.values()])

    def short_of(self, required: ReachClass = "possible", *, called: bool = False) -> list[tuple[str, str, ReachClass]]:
        """Return (regime, leg, class) for every leg below ``required``; ``called`` leaves out legs never asked."""
        least = CLASSES.index(required)
        return [
            (name, leg.leg, leg.class_)
            for name, regime in self.regimes.items()
            for leg in regime.legs.values()
            if CLASSES.index(leg.class_) < least and (leg.called or not called)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return ``{"recipe", "k", "regimes": {name: {"legs": {leg: {"class", ...}}}}, "assumptions"}``, JSON-ready."""
        regimes = {
            name: {"legs": {leg: of_leg.as_dict() for leg, of_leg in regime.legs.items()}}
            for name, regime in self.regimes.items()
        }
        return {"recipe": self.recipe, "k": self.k, "regimes": regimes, "assumptions": list(self.assumptions)}


def describe(reach: Reach) -> list[dict[str, str]]:
    """Return one row of short texts for every leg of every regime, in order, for a table."""
    rows: list[dict[str, str]] = []
    for name, regime in reach.regimes.items():
        for leg in regime.legs.values():
            called = leg.called
            rows.append(
                {
                    "regime": name,
                    "leg": leg.leg,
                    "class": leg.class_,
                    "without reserve": leg.class_without_reserve,
                    "worst importance": leg.class_with_prior,
                    "first place": _number(leg.value) if called else "-",
                    "lower bar": _number(leg.lower_bar) if called else "-",
                    "upper bar": _number(leg.upper_bar) if called else "-",
                    "ranks that can enter": str(max(leg.last_possible_rank, leg.guaranteed_ranks)) if called else "-",
                    "ranks guaranteed": str(leg.guaranteed_ranks) if called else "-",
                    "what would change it": _change(leg),
                }
            )
    return rows


def _number(value: Fraction) -> str:
    return f"{float(value):.4f}"


def _change(leg: LegReach) -> str:
    """Say which weight or rank constant would raise the leg by one class, ignoring the reserve."""
    if not leg.called:
        return "a weight and a depth above 0"
    if leg.class_ == "guaranteed":
        return ""
    possible = leg.class_ == "boost-only"
    aim = "possible" if possible else "guaranteed"
    weight = leg.possible_above_weight if possible else leg.guaranteed_above_weight
    constant = leg.possible_up_to_constant if possible else leg.guaranteed_up_to_constant
    ways = [] if weight is None else [f"weight > {float(weight):.3f}"]
    if constant is not None:
        ways.append(f"rank constant <= {constant}")
    ways.append(f"a guaranteed slot <= {leg.k}")
    return f"{aim}: " + " or ".join(ways)
