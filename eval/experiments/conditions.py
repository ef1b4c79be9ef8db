"""Conditions: recipes to compare, and their names on the command line.

An ablation is a recipe with something switched off (absent, not weight 0); a sweep is a list of recipes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib.metadata import entry_points
from typing import Any, TypeAlias

from eval.experiments.fusion import FUSIONS
from semmem.legs import GROUP
from semmem.model.recipe import SETTINGS, Recipe
from semmem.model.recipe import recipe as _recipe
from semmem.model.recipe_settings import Choice, Number, OrNone, Reranker, Section, Switch, Values

variant: Callable[..., Recipe] = _recipe
"""The recipes of semmem; what changes here is computed, so no type checker can follow its names."""

__all__ = [
    "OF_A_LEG",
    "TURNS",
    "Condition",
    "ConditionError",
    "Value",
    "ablations",
    "declared",
    "fusions",
    "named",
    "sweep",
    "turned",
    "with_leg",
]

Value: TypeAlias = float | str


class ConditionError(ValueError):
    """A condition cannot be built from what was asked; the message says what may be asked."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A recipe measured in an experiment. ``excluded`` is a leg that is asked and whose list is dropped before fusion.

    This was the first fault of the ablation that ``history`` replays. ``values`` are the values that a sweep gave the
    settings of this condition. ``rewired`` is the seed of a random graph with similar degrees, in which the graph leg
    walks instead of the graph of the texts; with ``neighbours`` it goes to the nearest vectors instead.
    """

    name: str
    recipe: Recipe
    excluded: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    rewired: int | None = None
    neighbours: bool = False

    @property
    def elsewhere(self) -> tuple[int | None, bool]:
        """Where the graph leg walks if not in the graph of the texts: (None, False) where it does."""
        return self.rewired, self.neighbours

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
            "name": self.name,
            "recipe": self.recipe.as_dict(),
            "excluded": self.excluded,
            "values": dict(self.values),
            "rewired": self.rewired,
            **({"neighbours": True} if self.neighbours else {}),
        }


def _turns() -> dict[str, str]:
    """Return the settings that a sweep can change: short names of the harness, then the settings of a recipe."""
    turns = {
        "LEG.weight": "weight of a leg; 0 leaves it out",
        "LEG.k": "rank constant of a leg, in every regime",
        "LEG.depth": "how many memories a leg may return",
        "LEG.reserve": "last place at which its first memory may stand; 0 for none",
        "k": "rank constant of all legs",
        "depth": "depth of all legs",
        "reserve": "0 switches the reserve off, 1 leaves it as the recipe has it",
        "conversation": "0 switches its rules off, 1 leaves them as the recipe has them",
    }
    for name, row in SETTINGS.items():
        part, dot, _ = name.partition(".")
        if dot and _is_sweepable(row.values) and part not in _BY_LEG:
            turns[f"{part}.FIELD"] = _fields(part)
        elif not dot and _is_sweepable(row.values):
            turns.setdefault(name, f"{row.meaning}: {'0 or 1' if isinstance(row.values, Switch) else row.values.words}")
    return turns


def _fields(part: str) -> str:
    """Return the names of the settings under ``part``, a leg or the rules of conversation, that a sweep can change."""
    inside = {name.partition(".")[2]: row.values for name, row in SETTINGS.items() if name.startswith(f"{part}.")}
    return ", ".join(name for name, values in inside.items() if _is_sweepable(values))


def _is_sweepable(values: Values) -> bool:
    inner = values.values if isinstance(values, OrNone) else values
    return isinstance(inner, Number | Choice | Switch | Reranker) or (isinstance(inner, Section) and inner.optional)


_MOST_VALUES = 1000
_BY_LEG = tuple(name.removesuffix(".LEG") for name in SETTINGS if name.endswith(".LEG"))

TURNS: Mapping[str, str] = _turns()
"""The settings that a sweep can change, with their meanings."""

OF_A_LEG = ("weight", "k", "depth", "reserve")
"""Settings of one leg that decide its reach."""


def named(name: str | Recipe, *, legs: Sequence[str] = ()) -> Condition:
    """Return the condition of a recipe. ``NAME~leg`` leaves a leg out, ``NAME!leg`` drops what only it found.

    ``NAME+convex`` (rank-scaled, tm2c2) changes the formula, ``NAME+leg`` adds a leg that a package declares. Raises
    UnknownRecipe and ConditionError.
    """
    if isinstance(name, Recipe):
        return Condition(name.name, name)
    match = re.fullmatch(r"([^~!+]+)(?:~(\w+))?(?:!(\w+))?(?:\+([\w-]+))?", name)
    if match is None:
        raise ConditionError(f"{name!r} is no condition; write RECIPE, RECIPE~leg, RECIPE!leg or RECIPE+fusion.")
    base, without, excluded, fusion = match.groups()
    recipe = variant(base)
    if fusion in declared():
        recipe, fusion = with_leg(recipe, fusion), None
    if without:
        recipe = _without(recipe, without)
    if excluded and excluded not in recipe.legs:
        raise ConditionError(f"{base} has no leg {excluded!r}; it has {', '.join(recipe.legs)}.")
    if fusion and fusion not in FUSIONS:
        legs_there = f"; and no package declares a leg of that name (declared: {', '.join(declared()) or 'none'})"
        raise ConditionError(f"There is no fusion {fusion!r}; choose one of {', '.join(sorted(FUSIONS))}{legs_there}.")
    if fusion:
        recipe = variant(recipe, name=name, fusion=fusion)
    return Condition(name, recipe, excluded=excluded)


def declared() -> list[str]:
    """Return the names of the legs that installed packages declare."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def with_leg(recipe: Recipe, leg: str) -> Recipe:
    """Return ``recipe`` with a declared leg: the largest weight and the least rank constant of its legs; both sweep."""
    if leg in recipe.legs:
        return recipe
    least = min(constant for regime in recipe.regimes for constant in recipe.constants(regime).values())
    return variant(
        recipe,
        name=f"{recipe.name}+{leg}",
        weights={leg: max(recipe.weights.values())},
        rank_constants={leg: least},
    )


def _without(recipe: Recipe, leg: str) -> Recipe:
    if leg not in recipe.legs:
        raise ConditionError(
            f"{recipe.name} has no leg {leg!r} to leave out; it has {', '.join(recipe.legs)}. A leg of your own joins "
            f"as {recipe.name}+LEG once a package that declares it is installed (declared: "
            f"{', '.join(declared()) or 'none'})."
        )
    if len(recipe.legs) == 1:
        raise ConditionError(f"{recipe.name} has the leg {leg} alone; without it nothing would be asked.")
    by_leg = ("weights", "rank_constants", "depths", "timeouts", "reserve")
    settings: dict[str, Any] = {name: {k: v for k, v in getattr(recipe, name).items() if k != leg} for name in by_leg}
    return replace(recipe, name=f"{recipe.name}~{leg}", **settings)


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
    for reserve, suffix in ((base.recipe.reserve, ""), ({}, " without reserve")):
        for fusion, recipe in forms.items():
            condition_recipe = variant(recipe, name=f"{base.name}+{fusion}{suffix}", reserve=dict(reserve))
            if replace(condition_recipe, name="") != replace(base.recipe, name=""):
                out.append(replace(base, name=condition_recipe.name, recipe=condition_recipe))
        if not base.recipe.reserve:
            break
    return out


def sweep(base: Condition, *settings: str) -> list[Condition]:
    """Return the conditions of one or more ``NAME=VALUES``; several settings give every combination.

    VALUES is a list ``0,1,2``, a range ``from:to:step``, both ends in, or names. Raises ConditionError for a setting
    or a value that does not exist, and for one that turns nothing.
    """
    out = [replace(base, values={})]
    names = [setting.partition("=")[0] for setting in settings]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ConditionError(f"{repeated[0]} stands there twice; write all its values after one {repeated[0]}=.")
    for setting in settings:
        name, equals, values = setting.partition("=")
        if not equals or not values:
            raise ConditionError(f"{setting!r} is no sweep; write it as graph.weight=0:2:.05 or k=10,20,60.")
        out = [_with_value(condition, name, value) for condition in out for value in _values(name, values)]
    with_alpha = [c for c in out if "graph.alpha" in c.values and "graph" in c.recipe.legs]
    if any(c.recipe.graph.walk != "pagerank" for c in with_alpha):
        raise ConditionError("graph.alpha is the damping of PageRank and turns nothing else; add graph.walk=pagerank.")
    return out


def turned(base: Condition, *settings: str, name: str | None = None) -> Condition:
    """Return ``base`` with each ``NAME=VALUE`` set, as one condition called ``name``.

    Raises ConditionError where a setting has several values.
    """
    points = sweep(base, *settings)
    if len(points) != 1:
        raise ConditionError(f"{' '.join(settings)} are {len(points)} conditions; write one value a setting.")
    label = name or f"{base.name} {' '.join(settings)}"
    return replace(points[0], name=label, recipe=replace(points[0].recipe, name=label), values={})


def _with_value(condition: Condition, name: str, value: Value) -> Condition:
    values = {**condition.values, name: value}
    recipe = condition.recipe
    # Once a weight of 0 has left a leg out, its other settings turn nothing.
    if condition.values.get(f"{name.partition('.')[0]}.weight") != 0:
        recipe = _set(recipe, name, value)
    return replace(
        condition, name=" ".join(f"{n}={_text_of(v)}" for n, v in values.items()), recipe=recipe, values=values
    )


def _text_of(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _values(name: str, text: str) -> list[Value]:
    values = SETTINGS[name].values if name in SETTINGS else None
    if isinstance(values.values if isinstance(values, OrNone) else values, Choice | Reranker):
        return [value.strip() for value in text.split(",")]
    return list(_numbers(text))


def _numbers(text: str) -> list[float]:
    try:
        if ":" not in text:
            return [float(v) for v in text.split(",")]
        first, last, step = (Decimal(part) for part in text.split(":"))
        if step <= 0 or last < first:
            raise ConditionError(f"{text!r} is an empty range; write from:to:step with a step above 0.")
        count = int((last - first) / step) + 1
        if count > _MOST_VALUES:
            raise ConditionError(f"{text!r} has {count:,} values; take larger steps, for at most {_MOST_VALUES:,}.")
        # Decimals: 0 + 7 * .05 must be .35 and not .35000000000000003, which has another reach at a tie.
        return [float(first + i * step) for i in range(count)]
    except (ValueError, ArithmeticError) as error:
        if isinstance(error, ConditionError):
            raise
        raise ConditionError(f"{text!r} are no numbers; write a list 0,1,2 or a range from:to:step.") from None


def _set(recipe: Recipe, name: str, value: Value) -> Recipe:
    """Return ``recipe`` with one setting changed; the name of the new recipe says which."""
    label = f"{recipe.name} {name}={_text_of(value)}"
    part, _, field = name.partition(".")
    if field in OF_A_LEG:
        return _set_leg(recipe, part, field, _number(name, value), label)
    if name in ("k", "depth"):
        each = _number(name, value) if name == "k" else int(_number(name, value))
        return variant(
            recipe, name=label, **{"rank_constants" if name == "k" else "depths": dict.fromkeys(recipe.legs, each)}
        )
    if name == "reserve":
        return variant(recipe, name=label, reserve=dict(recipe.reserve) if value else {})
    if field and f"{part}.FIELD" in TURNS:
        return _set_field(recipe, part, field, value, label)
    if name not in TURNS:
        raise ConditionError(f"There is no setting {name!r} to turn; there are {', '.join(TURNS)}.")
    return variant(recipe, name=label, **{name: _setting_value(name, SETTINGS[name].values, value)})


def _number(name: str, value: Value) -> float:
    if isinstance(value, str):
        raise ConditionError(f"{name} takes numbers, not {value!r}.")
    return value


def _set_leg(recipe: Recipe, leg: str, field: str, value: float, label: str) -> Recipe:
    if leg not in recipe.weights:
        raise ConditionError(f"{recipe.name} has no leg {leg!r}; it has {', '.join(recipe.legs)}.")
    if field == "weight" and value == 0:
        return replace(_without(recipe, leg), name=label)
    if field == "reserve":
        others = {k: v for k, v in recipe.reserve.items() if k != leg}
        return variant(recipe, name=label, reserve=others | ({leg: int(value)} if value else {}))
    key = {"weight": "weights", "k": "rank_constants", "depth": "depths"}[field]
    return variant(recipe, name=label, **{key: {leg: int(value) if field == "depth" else value}})


def _set_field(recipe: Recipe, part: str, field: str, value: Value, label: str) -> Recipe:
    """Set a setting of the lexical leg, the walk or the rules of conversation; the recipe checks the range."""
    if part == "conversation" and recipe.conversation is None:
        raise ConditionError(f"{recipe.name} has no rules of conversation; switch them on first: conversation=1.")
    if part in ("lexical", "graph") and part not in recipe.legs:
        raise ConditionError(f"{recipe.name} has no leg {part!r}; it has {', '.join(recipe.legs)}.")
    name = f"{part}.{field}"
    if name not in SETTINGS:
        raise ConditionError(f"{part} has no setting {field!r} to turn; it has {_fields(part)}.")
    return variant(recipe, name=label, **{part: {field: _setting_value(name, SETTINGS[name].values, value)}})


def _setting_value(name: str, values: Values, value: Value) -> Any:
    """Return a number or word of a sweep as the setting takes it: 0 and 1 are a switch's, 3.0 is a whole number."""
    if isinstance(values, OrNone):
        return None if value == "none" else _setting_value(name, values.values, value)
    if not _is_sweepable(values):
        raise ConditionError(f"{name} is a list and cannot be swept.")
    if isinstance(values, Switch | Section):
        if value not in (0, 1):
            raise ConditionError(f"{name} is a switch: 0 or 1, not {_text_of(value)}.")
        return bool(value)
    if isinstance(values, Number) and values.whole and value != int(value):
        raise ConditionError(f"{name} is a whole number, not {_text_of(value)}.")
    return int(value) if isinstance(values, Number) and values.whole else value
