"""Work out what a recall will do: which legs it asks, which of them first, and which read the question's vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from semmem.legs import Absent
from semmem.model.errors import InvalidInput, SemmemError
from semmem.model.protocols import Leg
from semmem.model.recipe import Recipe

__all__ = ["LAST", "OURS", "RecallPlan", "plan_of", "reads_vector"]

OURS = ("lexical", "dense", "graph")
LAST = "graph"
"""The leg that starts from the results of other legs."""


@dataclass(frozen=True, slots=True)
class RecallPlan:
    """What a recall does by its recipe.

    ``legs`` are asked side by side: those with a weight, and those that seed the graph leg. The graph leg follows if it
    ``walks``. ``readers`` are those that read the question's vector, or may, because they are not loaded yet.
    ``early`` are those that are asked while the vector is being made. ``absent`` maps a leg that the store cannot
    answer to the reason.
    """

    recipe: Recipe
    legs: tuple[str, ...]
    walks: bool
    readers: tuple[str, ...]
    early: frozenset[str]
    absent: Mapping[str, str]

    def by(self, recipe: Recipe) -> RecallPlan:
        """Return the plan for a recipe with the same legs: one that differs in depths, or in a prior."""
        return replace(self, recipe=recipe)


def plan_of(recipe: Recipe, legs: Mapping[str, Leg]) -> RecallPlan:
    """Return the plan of a recall by ``recipe``; a leg of the user's is not loaded for it.

    Raises InvalidInput for a leg that is not registered; a registered broken leg is degraded.
    """
    if unknown := [name for name in recipe.legs if name not in legs]:
        beginning = f"There is no leg named {unknown[0]!r}; choose one of {', '.join(legs)}."
        raise InvalidInput(f"{beginning} Add yours with register_leg, or install the package that brings it.")
    called = {*recipe.legs, *(recipe.graph.seeders if LAST in recipe.legs else ())}
    ours = {name: legs[name] for name in called.intersection(OURS)}
    absent = {name: leg.reason for name, leg in ours.items() if isinstance(leg, Absent)}
    readers = tuple(name for name in sorted(called) if name not in OURS or reads_vector(name, legs))
    asked = called - absent.keys()
    early = {name for name in ours.keys() & asked if name == LAST or not reads_vector(name, legs)}
    early -= {*readers[:1]}  # the model has the time of this leg
    return RecallPlan(recipe, tuple(sorted(asked - {LAST})), LAST in asked, readers, frozenset(early), absent)


def reads_vector(name: str, legs: Mapping[str, Leg]) -> bool:
    """Return whether a leg reads the question's vector; a leg that cannot be loaded reads none."""
    try:
        return bool(getattr(legs[name], "reads_vector", True))
    except SemmemError:
        return False
