"""Turn the arguments of a command into conditions and comparisons."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eval.experiments.conditions import (
    OF_A_LEG,
    Condition,
    ConditionError,
    ablations,
    declared,
    fusions,
    named,
    sweep,
    with_leg,
)
from eval.experiments.controls import NEIGHBOURS, USUAL, with_controls
from eval.statistics.comparison import Comparison

__all__ = ["of_ablation", "of_fusions", "of_history", "of_run", "of_sweep"]

Plan = tuple[list[Condition], list[Comparison]]


def of_run(recipes: Sequence[str]) -> Plan:
    """Compare every recipe after the first with the first; a leg that only one of the two has is the studied leg."""
    conditions = [named(name) for name in dict.fromkeys(recipes)]
    base = conditions[0]
    return conditions, [
        Comparison(f"{c.name} against {base.name}", base.name, c.name, _studied_leg(base, c)) for c in conditions[1:]
    ]


def of_ablation(recipe: str, legs: Sequence[str], *, controls: Collection[str] = USUAL) -> Plan:
    """Compare the recipe to itself without each leg: above 0 is what the leg is worth; the graph with ``controls``.

    Raises ConditionError for a control that there is not.
    """
    if unknown := [name for name in controls if name not in (*USUAL, NEIGHBOURS)]:
        raise ConditionError(f"There is no control {unknown[0]!r}; choose one of {', '.join((*USUAL, NEIGHBOURS))}.")
    base = named(recipe)
    for leg in legs:
        if leg not in base.recipe.legs and leg in declared():
            joined = with_leg(base.recipe, leg)
            base = replace(base, name=joined.name, recipe=joined)
    lesser = ablations(base, legs)
    names = legs or base.recipe.legs
    comparisons = [
        Comparison(f"{leg} in {base.name}", without.name, base.name, leg)
        for leg, without in zip(names, lesser, strict=True)
    ]
    return with_controls([base, *lesser], comparisons, chosen=controls)


def of_sweep(recipe: str, settings: Sequence[str]) -> Plan:
    """Compare every value of the settings with the recipe without their leg, or with the recipe as it is.

    Weight, rank constant, depth and reserve decide what a leg can reach, so there the leg itself is studied; any other
    setting is compared to its own value in the recipe.
    """
    base = named(recipe)
    points = sweep(base, *settings)
    named_legs = [s.partition("=")[0].partition(".") for s in settings]
    legs = {leg for leg, _, field in named_legs if leg in base.recipe.legs and field in OF_A_LEG}
    if len(legs) > 1:
        raise ConditionError(f"One sweep turns one leg, not {' and '.join(sorted(legs))}; run one for each.")
    if not legs or len(base.recipe.legs) == 1:
        return [base, *points], [Comparison(c.name, base.name, c.name) for c in points]
    leg = legs.pop()
    without = ablations(base, [leg])[0]
    # A weight of 0 leaves the leg out: that is the base, not something to compare to it.
    with_leg = [c for c in points if leg in c.recipe.legs]
    return [without, *with_leg], [Comparison(c.name, without.name, c.name, leg) for c in with_leg]


def of_fusions(recipe: str) -> Plan:
    """Compare every other formula, at the same leg weights, to the recipe's own, with and without the reserve."""
    base = named(recipe)
    others = fusions(base)
    return [base, *others], [Comparison(f"{c.name} against {base.name}", base.name, c.name) for c in others]


def of_history(recipe: str = "default", weights: Sequence[float] = (0.25, 0.5, 0.75, 1.0, 2.0, 5.0)) -> Plan:
    """Replay how a graph leg was once found useless, and what was wrong with the question.

    (1) the seed setting with the graph's whole list thrown away; (2) the exclusion lifted, w = .35 and
    k = 60; (3) w swept; (4) an evaluation with reach, of ``recipe``.
    """
    seed, whole = named("seed"), named(recipe)
    bare, without = ablations(seed, ["graph"])[0], ablations(whole, ["graph"])[0]
    excluded = named("seed!graph")
    swept = sweep(seed, "graph.weight=" + ",".join(f"{w:g}" for w in weights))
    comparisons = [
        Comparison("1 seed, graph's list thrown away", bare.name, excluded.name, "graph"),
        Comparison("2 seed, exclusion lifted", bare.name, seed.name, "graph"),
        *(Comparison(f"3 seed, {c.name}", bare.name, c.name, "graph") for c in swept),
        Comparison(f"4 {whole.name}, with reach", without.name, whole.name, "graph"),
    ]
    return with_controls([seed, whole, bare, without, excluded, *swept], comparisons, only={whole.name})


def _studied_leg(base: Condition, other: Condition) -> str | None:
    differ = set(base.recipe.legs) ^ set(other.recipe.legs)
    return differ.pop() if len(differ) == 1 else other.excluded
