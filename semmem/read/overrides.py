"""Change recipes without writing code: by a table in semmem.toml, and by the settings of a namespace in the store.

Both take the changes that ``semmem.recipe`` takes. In a store each setting is a row with a dotted name, such as
``weights.graph`` or ``lexical.k1``, so that two people who change two settings do not overwrite each other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from semmem.config import Settings
from semmem.model.errors import InvalidInput, NotFound, SemmemError
from semmem.model.recipe import SETTINGS, Recipe, recipe, setting
from semmem.model.recipe_settings import STORED_WEIGHT

__all__ = ["Tailor", "changed", "dotted", "fitted", "outgrown", "recipe_of", "settings_in", "tailored", "value_of"]

_NONE_USED = "none of its settings is used: "
_WEIGHTS = "weights."
_MOST_CACHED = 64
"""Recipes that a process caches; a namespace usually needs one at a time."""


def tailored(base: Recipe, table: Mapping[str, Any]) -> Recipe:
    """Return ``base``, or the recipe that ``table`` names, with the changes of the table.

    Raises UnknownRecipe for an unknown name and InvalidInput for a change that a recipe does not take.
    """
    chosen = recipe(table["name"]) if "name" in table else base
    changes: dict[str, Any] = {key: value for key, value in table.items() if key != "name"}
    return recipe(chosen, **changes)


def recipe_of(settings: Settings) -> Recipe:
    """Return the recipe that the settings choose, ``default`` where they name none. Raises InvalidInput."""
    choice = settings.recipe
    try:
        if isinstance(choice, str):
            return recipe(choice)
        return tailored(recipe("default"), choice or {})
    except SemmemError as error:
        raise type(error)(f"{settings.where('recipe')}: the recipe cannot be used: {error.message}") from None


# ---------------------------------------------------------------------- settings of a namespace, one by one


def dotted(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of a recipe as settings with dotted names; names that are dotted already stay as they are.

    Raises InvalidInput for the name of an unknown setting.
    """
    named: dict[str, Any] = {}
    for key, value in changes.items():
        named |= _split(key, value)
    for name in named:
        if not _is_known(name):
            raise InvalidInput(_unknown(name))
    return named


def settings_in(plan: Recipe) -> dict[str, Any]:
    """Return every setting of a recipe by its dotted name, as plain values."""
    named: dict[str, Any] = {"recipe": plan.name}
    for key, value in plan.as_dict().items():
        if key != "name":
            named |= _split(key, value)
    return named


def _split(key: str, value: Any) -> dict[str, Any]:
    """Return the entries of a mapping as dotted settings, where the setting is a mapping; else the value unchanged."""
    parts = any(name.startswith(f"{key}.") for name in SETTINGS)
    return (
        {f"{key}.{inner}": own for inner, own in value.items()}
        if parts and isinstance(value, Mapping)
        else {key: value}
    )


def value_of(text: str) -> Any:
    """Parse text typed on a command line as JSON; return the text itself where it is not JSON."""
    try:
        return json.loads(text, parse_constant=lambda name: name)  # NaN and Infinity are not JSON
    except ValueError:
        return text


def changed(
    base: Recipe,
    stored: Mapping[str, Any],
    changes: Mapping[str, Any],
    unset: Collection[str] = (),
    legs: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the settings of a namespace after ``changes`` were made and ``unset`` were removed.

    Raises InvalidInput for a name or a value that a recipe does not take or a namespace may not be given, and NotFound
    for an ``unset`` name that is not set.
    """
    if missing := sorted(set(unset) - set(stored)):
        names = ", ".join(sorted(stored)) or "none"
        raise NotFound(f"This namespace has no setting {missing[0]!r} of its own; it has {names}.")
    additions = dotted(changes)
    for name, value in additions.items():
        if name.startswith(_WEIGHTS):
            STORED_WEIGHT.check(name, value)
    settings = {name: value for name, value in stored.items() if name not in unset} | additions
    if changes and (wrong := _apply(base, settings, legs)[1]) is not None and wrong.startswith(_NONE_USED):
        raise InvalidInput(wrong.removeprefix(_NONE_USED))
    return settings


def outgrown(namespace: str, settings: Mapping[str, Any]) -> str | None:
    """Return the sentence on weights of a namespace that were stored when more was allowed; None where there are none.

    They are used as they are.
    """
    old = {name: value for name, value in settings.items() if name.startswith(_WEIGHTS)}
    if not (most := [f"{name} is {value}" for name, value in sorted(old.items()) if not STORED_WEIGHT.accepts(value)]):
        return None
    return (
        f"namespace {namespace}: {', '.join(most)}, and a namespace is now given {STORED_WEIGHT.words}; it is used as "
        "it is, until it is set anew or unset"
    )


def _is_known(name: str) -> bool:
    return name == "recipe" or setting(name) is not None


def _unknown(name: str) -> str:
    """Return the error sentence for an unknown setting, with the known ones."""
    key, dot, inner = name.partition(".")
    parts = [one.partition(".") for one in SETTINGS]
    if dot and (others := sorted(of for whole, _, of in parts if whole == key and of not in ("", "LEG"))):
        return f"{key} has no setting {inner!r}; it has {', '.join(others)}."
    if not dot and any(whole == key and of == "LEG" for whole, _, of in parts):
        return (
            f"{key} must be a mapping from the name of a leg to a number; write {key}={{'graph': …}}, or {key}.graph."
        )
    forms = dict.fromkeys(f"{whole}.{'LEG' if of == 'LEG' else 'NAME'}" if of else whole for whole, _, of in parts)
    return f"There is no search setting {name!r}; choose one of {', '.join(['recipe', *forms])}."


def _apply(base: Recipe, settings: Mapping[str, Any], legs: Collection[str] | None = None) -> tuple[Recipe, str | None]:
    """Return the recipe with the usable settings applied, and one sentence about those that cannot be used.

    A setting with an unknown name is left out by itself. Where the others do not form a valid recipe together, none of
    them is used, because half of the settings would be a recipe that nobody chose.
    """
    usable = {name: value for name, value in settings.items() if _is_known(name)}
    unknown_names = sorted(set(settings) - set(usable))
    table: dict[str, Any] = {}
    for name, value in sorted(usable.items()):
        key, dot, inner = name.partition(".")
        if name == "recipe":
            table["name"] = value
        elif not dot:
            table.setdefault(key, value)
        elif isinstance(table.get(key, {}), Mapping):
            table[key] = {**table.get(key, {}), inner: value}
        elif table[key] is True:
            table[key] = {inner: value}
    try:
        plan = tailored(base, table)
        if legs is not None and (strange := [leg for leg in plan.legs if leg not in legs]):
            raise InvalidInput(f"There is no leg named {strange[0]!r}; choose one of {', '.join(sorted(legs))}.")
    except SemmemError as error:
        return base, _NONE_USED + error.message
    if unknown_names:
        return (
            plan,
            f"this semmem does not know {', '.join(unknown_names)}; upgrade it, or unset what is not meant for it",
        )
    return plan, None


def fitted(
    base: Recipe, namespaces: Sequence[str], rows: Sequence[tuple[str, str, Any]], legs: Collection[str]
) -> tuple[Recipe, Mapping[str, Any], str | None]:
    """Return the recipe for a recall in ``namespaces``, the settings that changed it, and a sentence if any failed.

    ``rows`` are (namespace, name, value). One recipe answers for all namespaces of a recall, so a setting counts only
    where all of them have the same value. A setting that needs an unknown leg or recipe is left out, and the sentence
    says so.
    """
    by_namespace: dict[str, dict[str, Any]] = {namespace: {} for namespace in namespaces}
    for namespace, name, value in rows:
        by_namespace[namespace][name] = value
    settings, *others = by_namespace.values()
    if any(other != settings for other in others):
        wrong = f"the namespaces {', '.join(namespaces)} have different search settings, so none of them is used"
        return base, {}, f"{wrong}; ask them one by one, or pass a recipe"
    plan, wrong_one = _apply(base, settings, legs)
    used = {name: value for name, value in settings.items() if plan is not base and _is_known(name)}
    where = "namespace " + namespaces[0] if not others else "namespaces " + ", ".join(namespaces)
    return plan, used, f"{where}: {wrong_one}" if wrong_one else None


class Tailor:
    """Apply the settings of namespaces to recipes, and cache the results."""

    def __init__(self, legs: Collection[str]) -> None:
        self._legs = legs
        self._cache: dict[tuple[int, tuple[str, ...], str], tuple[Recipe, Recipe, Mapping[str, Any], str | None]] = {}

    def fit(self, base: Recipe, namespaces: Sequence[str], raw: str) -> tuple[Recipe, Mapping[str, Any], str | None]:
        """Return the result of ``fitted``; ``raw`` holds its rows as JSON, as in ``Scope.settings``."""
        key = (id(base), tuple(namespaces), raw)
        entry = self._cache.get(key)
        if entry is None or entry[0] is not base:
            if len(self._cache) >= _MOST_CACHED:
                self._cache.clear()
            entry = (base, *fitted(base, namespaces, json.loads(raw), self._legs))
            if entry[3] is None:  # not cached where a setting failed: its leg may be registered later
                self._cache[key] = entry
        return entry[1:]
