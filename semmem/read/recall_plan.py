"""Work out what a recall will do: which legs it asks, which of them first, and which read the question's vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from semmem.legs import Legs
from semmem.model.errors import InvalidInput, SemmemError
from semmem.model.recipe import Recipe

__all__ = ["RecallPlan", "any_reads_vector", "plan_of"]


@dataclass(frozen=True, slots=True)
class RecallPlan:
    """What a recall does by its recipe.

    ``legs`` are asked side by side: those with a weight, and those that seed the leg that follows. That one, ``last``,
    is asked after them. ``readers`` are those that read the question's vector, or may, because they are not loaded yet.
    ``early`` are those that are asked while the vector is being made. ``at_once`` are those that need no thread where
    the snapshot is in memory. ``absent`` maps a leg that the store cannot answer to the reason.
    """

    recipe: Recipe
    legs: tuple[str, ...]
    last: str | None
    readers: tuple[str, ...]
    early: frozenset[str]
    at_once: frozenset[str]
    absent: Mapping[str, str]

    def by(self, recipe: Recipe) -> RecallPlan:
        """Return the plan for a recipe with the same legs: one that differs in depths, or in a prior."""
        return replace(self, recipe=recipe)


def plan_of(recipe: Recipe, legs: Legs) -> RecallPlan:
    """Return the plan of a recall by ``recipe``; a leg of the user's is not loaded for it.

    Raises InvalidInput for a leg that is not registered; a registered broken leg is degraded.
    """
    if unknown := [name for name in recipe.legs if name not in legs]:
        beginning = f"There is no leg named {unknown[0]!r}; choose one of {', '.join(legs)}."
        raise InvalidInput(f"{beginning} Add yours with register_leg, or install the package that brings it.")
    called = {*recipe.legs, *recipe.seeders}
    ours = {name: leg for name, leg in legs.builtin.items() if name in called}
    absent = {name: leg.absence for name, leg in ours.items() if leg.absence is not None}
    readers = tuple(name for name in sorted(called) if name not in ours or ours[name].reads_vector)
    asked = called - absent.keys()
    last = next((name for name, leg in ours.items() if leg.follows and name in asked), None)
    early = {name for name, leg in ours.items() if name in asked and (name == last or not leg.reads_vector)}
    early -= {*readers[:1]}  # the model has the time of this leg
    related = recipe.graph.related > 0  # relationships are never in memory
    at_once = frozenset(name for name, leg in ours.items() if leg.at_once and not related)
    return RecallPlan(recipe, tuple(sorted(asked - {last})), last, readers, frozenset(early), at_once, absent)


def any_reads_vector(plan: RecallPlan, legs: Legs) -> bool:
    """Return whether a reader of the plan does read the vector: a leg of the user's is loaded here to say so.

    One that cannot be loaded reads none.
    """

    def reads(name: str) -> bool:
        try:
            return legs[name].reads_vector
        except SemmemError:
            return False

    return any(map(reads, plan.readers))
