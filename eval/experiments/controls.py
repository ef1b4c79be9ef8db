"""Controls of an ablation of the graph: what else could have brought the gain?

A third list that votes again for what the other legs put first, a better fusion of two legs, or any edges at all would
show as a gain of "the graph". Each of these is a condition of its own, and the recipe is compared with each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eval.experiments.conditions import Condition, ablations, turned, variant
from eval.statistics.comparison import Comparison

__all__ = ["LEG", "NEIGHBOURS", "USUAL", "controls", "with_controls"]

LEG = "graph"
USUAL = ("no edges", "seeds only", "random graph", "convex", "re-voting")
"""The controls that stand beside every ablation of the graph."""
NEIGHBOURS = "dense neighbours"
"""The control that has to be asked for."""
SEED = 0
_EDGES = ("graph.about=0", "graph.co_mention=0", "graph.neighbour=0", "graph.related=0")
_NAMES = ("graph.subject_share=0", "graph.concept_share=0", "graph.anchor_share=0")


def controls(
    base: Condition, without: Condition, chosen: Collection[str] = USUAL
) -> tuple[list[Condition], list[Comparison]]:
    """Return the ``chosen`` controls of the graph in ``base``; ``without`` is ``base`` without that leg.

    *No edges*: the walk starts where it does and goes nowhere. *Seeds only*: nor does it start from names, so the
    third list is the heads of the other legs once more. *Convex*: the other legs without the graph, min-max
    convex, equal weights. *Random graph*: the same leg in a graph of like degrees. *Re-voting*: seeds only,
    over no graph. *Dense neighbours*: the walk starts at those heads and goes to the nearest vectors.
    """
    bare = turned(base, *_EDGES, name=f"{base.name}, no edges")
    seeds = turned(base, *_EDGES, *_NAMES, name=f"{base.name}, seeds only")
    chance = replace(base, name=f"{base.name}, random graph", rewired=SEED)
    near = replace(turned(base, *_NAMES, name=f"{base.name}, dense neighbours"), neighbours=True)
    over = f"{LEG} in {base.name}, over"
    every = [
        (bare, Comparison(f"{over} no edges", bare.name, base.name, control="no edges")),
        (seeds, Comparison(f"{over} seeds only", seeds.name, base.name, control="seeds only")),
        (chance, Comparison(f"{over} a random graph", chance.name, base.name, control="random graph")),
    ]
    if set(without.recipe.legs) == {"lexical", "dense"}:
        halves = dict.fromkeys(without.recipe.legs, 0.5)
        label = f"{without.name}, convex"
        recipe = variant(without.recipe, name=label, fusion="convex", weights=halves, reserve={}, regime_weights={})
        convex = replace(without, name=label, recipe=recipe)
        every.append((convex, Comparison(f"{over} convex without it", label, base.name, control="convex")))
    again = f"seeds only in {base.name}, over no {LEG}"
    alone = f"dense neighbours in {base.name}, over no {LEG}"
    every += [
        (seeds, Comparison(again, without.name, seeds.name, control="re-voting")),
        (near, Comparison(f"{over} dense neighbours", near.name, base.name, control=NEIGHBOURS)),
        (near, Comparison(alone, without.name, near.name, control=NEIGHBOURS)),
    ]
    of_chosen = [(condition, comparison) for condition, comparison in every if comparison.control in chosen]
    conditions = {condition.name: condition for condition, _ in of_chosen}
    return list(conditions.values()), [comparison for _, comparison in of_chosen]


def with_controls(
    conditions: Sequence[Condition],
    comparisons: Sequence[Comparison],
    *,
    only: Collection[str] | None = None,
    chosen: Collection[str] = USUAL,
) -> tuple[list[Condition], list[Comparison]]:
    """Return a plan with the ``chosen`` controls of every ablation of the graph, or of ``only`` these conditions."""
    by_name = {c.name: c for c in conditions}
    out, plan = list(conditions), list[Comparison]()
    for comparison in comparisons:
        plan.append(comparison)
        base, other = by_name[comparison.base], by_name[comparison.other]
        is_ablation = comparison.leg == LEG and LEG in other.recipe.legs and other.excluded is None
        if is_ablation and (only is None or other.name in only) and ablations(other, [LEG])[0].recipe == base.recipe:
            own, more = controls(other, base, chosen)
            out += [c for c in own if c.name not in by_name]
            by_name |= {c.name: c for c in own}
            plan += more
    return out, plan
