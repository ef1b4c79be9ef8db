"""Controls of an ablation of the graph: what else could have brought the gain?

A third list that votes again for what the other legs put first, a better fusion of two legs, or any edges at all would
show as a gain of "the graph". Each of these is a condition of its own, and the recipe is compared with each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eval.experiments.conditions import Condition, ablations, turned, variant
from eval.statistics.comparison import Comparison

__all__ = ["LEG", "controls", "with_controls"]

LEG = "graph"
SEED = 0
_EDGES = ("graph.about=0", "graph.co_mention=0", "graph.neighbour=0", "graph.related=0")
_NAMES = ("graph.subject_share=0", "graph.concept_share=0", "graph.anchor_share=0")


def controls(base: Condition, without: Condition) -> tuple[list[Condition], list[Comparison]]:
    """Return the controls of the graph in ``base``; ``without`` is ``base`` without that leg.

    *No edges*: the walk starts where it does and goes nowhere. *Seeds only*: nor does it start from names, so the
    third list is the heads of the other legs once more. *Convex*: the other legs under the best fusion there is
    without the graph, equal weights. *Random graph*: the same leg in a graph of like degrees.
    """
    bare = turned(base, *_EDGES, name=f"{base.name}, no edges")
    seeds = turned(base, *_EDGES, *_NAMES, name=f"{base.name}, seeds only")
    chance = replace(base, name=f"{base.name}, random graph", rewired=SEED)
    conditions = [bare, seeds, chance]
    comparisons = [
        Comparison(f"{LEG} in {base.name}, over no edges", bare.name, base.name, control="no edges"),
        Comparison(f"{LEG} in {base.name}, over seeds only", seeds.name, base.name, control="seeds only"),
        Comparison(f"{LEG} in {base.name}, over a random graph", chance.name, base.name, control="random graph"),
    ]
    if set(without.recipe.legs) == {"lexical", "dense"}:
        halves = dict.fromkeys(without.recipe.legs, 0.5)
        label = f"{without.name}, convex"
        recipe = variant(without.recipe, name=label, fusion="convex", weights=halves, reserve={}, regime_weights={})
        convex = replace(without, name=label, recipe=recipe)
        conditions.append(convex)
        comparisons.append(
            Comparison(f"{LEG} in {base.name}, over convex without it", label, base.name, control="convex")
        )
    comparisons.append(
        Comparison(f"seeds only in {base.name}, over no {LEG}", without.name, seeds.name, control="re-voting")
    )
    return conditions, comparisons


def with_controls(
    conditions: Sequence[Condition], comparisons: Sequence[Comparison], *, only: Collection[str] | None = None
) -> tuple[list[Condition], list[Comparison]]:
    """Return a plan with the controls of every ablation of the graph in it, or of ``only`` these conditions."""
    by_name = {c.name: c for c in conditions}
    out, plan = list(conditions), list[Comparison]()
    for comparison in comparisons:
        plan.append(comparison)
        base, other = by_name[comparison.base], by_name[comparison.other]
        is_ablation = comparison.leg == LEG and LEG in other.recipe.legs and other.excluded is None
        if is_ablation and (only is None or other.name in only) and ablations(other, [LEG])[0].recipe == base.recipe:
            own, more = controls(other, base)
            out += [c for c in own if c.name not in by_name]
            by_name |= {c.name: c for c in own}
            plan += more
    return out, plan
