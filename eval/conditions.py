"""Conditions: recipes to be measured beside each other, and how a person names them.

An ablation is a recipe with something switched off (absent, not weight 0); a sweep is a list of recipes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from eval.fusings import FUSIONS
from semmem.config import recipe as variant
from semmem.types import Recipe

__all__ = ["SETTINGS", "Condition", "ConditionError", "ablations", "fusions", "named", "sweep"]


class ConditionError(ValueError):
    """A condition cannot be built from what was asked; the message says what may be asked."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A recipe measured in an experiment. ``excluded`` is a leg that is asked and whose finds are thrown away.

    That is the history's first fault: what only the leg found is dropped before fusion.
    ``values`` are the numbers a sweep gave this condition, by setting.
    """

    name: str
    recipe: Recipe
    excluded: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
            "name": self.name,
            "recipe": self.recipe.as_dict(),
            "excluded": self.excluded,
            "values": dict(self.values),
        }


SETTINGS: Mapping[str, str] = {
    "LEG.weight": "weight of a leg; 0 leaves it out",
    "LEG.k": "rank constant of a leg, in every regime",
    "LEG.depth": "how many memories a leg may return",
    "LEG.reserve": "last place at which its first memory may stand; 0 for none",
    "k": "rank constant of all legs",
    "depth": "depth of all legs",
    "reserve": "0 switches the reserve off, 1 leaves it as the recipe has it",
    "prior": "0 or 1: the importance prior",
    "prior_floor": "the factor of a memory of importance 0",
    "exact_bonus": "bonus of a memory that matches word for word; 0 for none",
    "dedup": "0 or 1: folding of equal memories",
    "lexical.FIELD": "k1, b",
    "graph.FIELD": "seeds, gate, decay, hops, beam, fan, max_df, ...",
}
"""What a sweep can turn."""


def named(name: str | Recipe, *, legs: Sequence[str] = ()) -> Condition:
    """Return the condition of a recipe. ``NAME~leg`` leaves a leg out, ``NAME!leg`` drops what only it found.

    ``NAME+convex`` (rank-scaled, tm2c2) changes the formula. Raises UnknownRecipe and ConditionError.
    """
    if isinstance(name, Recipe):
        return Condition(name.name, name)
    match = re.fullmatch(r"([^~!+]+)(?:~(\w+))?(?:!(\w+))?(?:\+([\w-]+))?", name)
    if match is None:
        raise ConditionError(f"{name!r} is no condition; write RECIPE, RECIPE~leg, RECIPE!leg or RECIPE+fusion.")
    base, without, excluded, fusion = match.groups()
    recipe = variant(base)
    if without:
        recipe = _without(recipe, without)
    if excluded and excluded not in recipe.legs:
        raise ConditionError(f"{base} has no leg {excluded!r}; it has {', '.join(recipe.legs)}.")
    if fusion and fusion not in FUSIONS:
        raise ConditionError(f"There is no fusion {fusion!r}; choose one of {', '.join(sorted(FUSIONS))}.")
    if fusion:
        recipe = variant(recipe, name=name, fusion=fusion)
    return Condition(name, recipe, excluded=excluded)


def _without(recipe: Recipe, leg: str) -> Recipe:
    if leg not in recipe.legs:
        raise ConditionError(f"{recipe.name} has no leg {leg!r} to leave out; it has {', '.join(recipe.legs)}.")
    if len(recipe.legs) == 1:
        raise ConditionError(f"{recipe.name} has the leg {leg} alone; without it nothing would be asked.")
    by_leg = ("weights", "rank_constants", "depths", "timeouts", "reserve")
    kept: dict[str, Any] = {name: {k: v for k, v in getattr(recipe, name).items() if k != leg} for name in by_leg}
    return replace(recipe, name=f"{recipe.name}~{leg}", **kept)


def ablations(base: Condition, legs: Sequence[str] = ()) -> list[Condition]:
    """Return ``base`` without each of ``legs`` (all of its own by default): absent, not weight 0."""
    return [
        replace(base, name=f"{base.name}~{leg}", recipe=_without(base.recipe, leg), excluded=None)
        for leg in legs or base.recipe.legs
    ]


def fusions(base: Condition) -> list[Condition]:
    """Return ``base`` under every other formula, at the same leg weights, each with and without the reserve.

    Weighted RRF stands twice: with the recipe's own rank constants and with 60 for all legs.
    """
    sixty = variant(base.recipe, fusion="rrf", rank_constants=dict.fromkeys(base.recipe.legs, 60.0))
    forms = {f: variant(base.recipe, fusion=f) for f in FUSIONS} | {"rrf at 60": sixty}
    out = []
    for reserve, ending in ((base.recipe.reserve, ""), ({}, " without reserve")):
        for fusion, recipe in forms.items():
            turned = variant(recipe, name=f"{base.name}+{fusion}{ending}", reserve=dict(reserve))
            if replace(turned, name="") != replace(base.recipe, name=""):
                out.append(replace(base, name=turned.name, recipe=turned))
        if not base.recipe.reserve:
            break
    return out


def sweep(base: Condition, *settings: str) -> list[Condition]:
    """Return the conditions of one or more ``NAME=VALUES``; several settings give every combination.

    VALUES is a list ``0,1,2`` or a range ``from:to:step``, both ends in. Raises ConditionError for a setting or a
    value that does not exist.
    """
    out = [replace(base, values={})]
    for setting in settings:
        name, equals, values = setting.partition("=")
        if not equals or not values:
            raise ConditionError(f"{setting!r} is no sweep; write it as graph.weight=0:2:.05 or k=10,20,60.")
        out = [_turned(condition, name, value) for condition in out for value in _numbers(values)]
    return out


def _turned(condition: Condition, name: str, value: float) -> Condition:
    values = {**condition.values, name: value}
    recipe = condition.recipe
    # Once a weight of 0 has left a leg out, its other settings turn nothing.
    if condition.values.get(f"{name.partition('.')[0]}.weight") != 0:
        recipe = _set(recipe, name, value)
    called = " ".join(f"{n}={v:g}" for n, v in values.items())
    return replace(condition, name=called, recipe=recipe, values=values)


def _numbers(text: str) -> list[float]:
    try:
        if ":" not in text:
            return [float(v) for v in text.split(",")]
        first, last, step = (Decimal(part) for part in text.split(":"))
        if step <= 0 or last < first:
            raise ConditionError(f"{text!r} is an empty range; write from:to:step with a step above 0.")
        # Decimals: 0 + 7 * .05 must be .35 and not .35000000000000003, which has another reach at a tie.
        return [float(first + i * step) for i in range(int((last - first) / step) + 1)]
    except (ValueError, InvalidOperation) as error:
        if isinstance(error, ConditionError):
            raise
        raise ConditionError(f"{text!r} are no numbers; write a list 0,1,2 or a range from:to:step.") from None


def _set(recipe: Recipe, name: str, value: float) -> Recipe:
    """Return ``recipe`` with one setting turned; its name says which."""
    called = f"{recipe.name} {name}={value:g}"
    leg, dot, field = name.partition(".")
    if dot and field in ("weight", "k", "depth", "reserve"):
        if leg not in recipe.weights:
            raise ConditionError(f"{recipe.name} has no leg {leg!r}; it has {', '.join(recipe.legs)}.")
        if field == "weight" and value == 0:
            return replace(_without(recipe, leg), name=called)
        if field == "reserve":
            others = {k: v for k, v in recipe.reserve.items() if k != leg}
            return variant(recipe, name=called, reserve=others | ({leg: int(value)} if value else {}))
        key = {"weight": "weights", "k": "rank_constants", "depth": "depths"}[field]
        return variant(recipe, name=called, **{key: {leg: int(value) if field == "depth" else value}})
    if dot and leg in ("lexical", "graph"):
        whole = isinstance(getattr(getattr(recipe, leg), field, 0.0), int)
        return variant(recipe, name=called, **{leg: {field: int(value) if whole else value}})
    if name in ("k", "depth"):
        key = "rank_constants" if name == "k" else "depths"
        return variant(recipe, name=called, **{key: {x: value if name == "k" else int(value) for x in recipe.legs}})
    if name == "reserve":
        return variant(recipe, name=called, reserve=dict(recipe.reserve) if value else {})
    if name in ("prior", "dedup"):
        return variant(recipe, name=called, **{name: bool(value)})
    if name in ("prior_floor", "exact_bonus"):
        return variant(recipe, name=called, **{name: value})
    raise ConditionError(f"There is no setting {name!r} to turn; there are {', '.join(SETTINGS)}.")
