"""Recipes that people change without a program: by a table in the file of settings, and for one namespace in the store.

Both write the changes that ``semmem.recipe`` takes. In a store each is a setting of its own with a dotted name, such as
``weights.graph`` or ``lexical.k1``, so that two people who change two of them do not overwrite each other.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from semmem.config import Settings
from semmem.model.errors import InvalidInput, NotFound, SemmemError
from semmem.model.recipe import ConversationSettings, GraphSettings, LexicalSettings, Recipe, recipe, rules

__all__ = ["Tailor", "changed", "dotted", "fitted", "recipe_of", "settings_in", "tailored", "value_of"]

_BY_LEG = ("weights", "rank_constants", "depths", "timeouts")
_BY_FIELD = {"lexical": LexicalSettings, "graph": GraphSettings, "conversation": ConversationSettings}
_WHOLE = tuple(
    sorted({f.name for f in dataclasses.fields(Recipe)} - {"name", "lexical", "graph", *_BY_LEG})
)  # conversation among them: false switches its rules off
_NONE_USED = "none of its settings is used: "
_KEPT = 64
"""Tailored recipes a process keeps; a namespace has one at a time."""


def tailored(base: Recipe, table: Mapping[str, Any]) -> Recipe:
    """Return ``base``, or the recipe that ``table`` names, with the table's changes: those that ``recipe`` takes.

    Lists become tuples; ``conversation`` may be true or false. Raises InvalidInput or UnknownRecipe.
    """
    changes = {key: value for key, value in table.items() if key != "name"}
    chosen = recipe(table["name"]) if "name" in table else base
    if isinstance(graph := changes.get("graph"), Mapping):
        changes["graph"] = {key: tuple(value) if isinstance(value, list) else value for key, value in graph.items()}
    for key in _BY_FIELD:
        switch = key == "conversation" and (changes.get(key) is None or isinstance(changes[key], bool))
        if key in changes and not switch and not isinstance(changes[key], Mapping):
            raise InvalidInput(f"{key} must be a table of its own settings, not {changes[key]!r}.")
    if isinstance(changes.get("conversation"), bool):
        changes["conversation"] = rules(chosen) if changes["conversation"] else None
    regimes = changes.get("regime_weights", {})
    if not (isinstance(regimes, Mapping) and all(isinstance(weights, Mapping) for weights in regimes.values())):
        raise InvalidInput("regime_weights must map a regime to a table of weights by leg.")
    for key in ("prior", "dedup"):
        if key in changes and not isinstance(changes[key], bool):
            raise InvalidInput(f"{key} must be true or false, not {changes[key]!r}.")
    return recipe(chosen, **changes)


def recipe_of(settings: Settings) -> Recipe:
    """Return the recipe that the settings choose, ``default`` where they choose none. Raises InvalidInput."""
    wanted = settings.recipe
    try:
        if isinstance(wanted, str):
            return recipe(wanted)
        return tailored(recipe("default"), wanted or {})
    except SemmemError as error:
        raise type(error)(f"{settings.where('recipe')}: the recipe cannot be used: {error.message}") from None


# ---------------------------------------------------------------------- settings of a namespace, one by one


def dotted(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes as ``recipe`` takes them as settings with dotted names; a name that is dotted already stays."""
    found: dict[str, Any] = {}
    for key, value in changes.items():
        if key in (*_BY_LEG, *_BY_FIELD) and isinstance(value, Mapping):
            found |= {f"{key}.{inner}": of_inner for inner, of_inner in value.items()}
        else:
            found[key] = value
    for name in found:
        if (wrong := _unknown(name)) is not None:
            raise InvalidInput(wrong)
    return found


def settings_in(plan: Recipe) -> dict[str, Any]:
    """Return every setting of a recipe by its dotted name, as plain values."""
    found: dict[str, Any] = {"recipe": plan.name}
    for key, value in plan.as_dict().items():
        if key in (*_BY_LEG, *_BY_FIELD) and isinstance(value, Mapping):
            found |= {f"{key}.{inner}": of_inner for inner, of_inner in value.items()}
        elif key != "name":
            found[key] = value
    return found


def value_of(text: str) -> Any:
    """Return what a person typed as a value: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text, parse_constant=lambda name: name)  # NaN and Infinity are no JSON
    except ValueError:
        return text


def changed(
    base: Recipe,
    stored: Mapping[str, Any],
    changes: Mapping[str, Any],
    unset: Collection[str] = (),
    legs: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the settings of a namespace with ``changes`` made and ``unset`` taken away, as its recalls will read them.

    Raises InvalidInput for a name or a value that a recipe does not take, NotFound for one to unset that is not set.
    """
    if missing := sorted(set(unset) - set(stored)):
        known = ", ".join(sorted(stored)) or "none"
        raise NotFound(f"This namespace has no setting {missing[0]!r} of its own; it has {known}.")
    found = {name: value for name, value in stored.items() if name not in unset} | dotted(changes)
    if changes and (wrong := _apply(base, found, legs)[1]) is not None and wrong.startswith(_NONE_USED):
        raise InvalidInput(wrong.removeprefix(_NONE_USED))
    return found


def _unknown(name: str) -> str | None:
    key, dot, inner = name.partition(".")
    if key in _BY_LEG and inner.isidentifier():
        return None
    if key in _BY_FIELD and dot:
        fields = [f.name for f in dataclasses.fields(_BY_FIELD[key])]
        return None if inner in fields else f"{key} has no setting {inner!r}; it has {', '.join(sorted(fields))}."
    if not dot and key in ("recipe", *_WHOLE):
        return None
    forms = [*(f"{key}.LEG" for key in _BY_LEG), *(f"{key}.NAME" for key in _BY_FIELD), "recipe", *_WHOLE]
    return f"There is no search setting {name!r}; there are {', '.join(forms)}."


def _apply(base: Recipe, settings: Mapping[str, Any], legs: Collection[str] | None = None) -> tuple[Recipe, str | None]:
    """Return the recipe with what can be used, and one sentence on what cannot.

    A name that is not known is left out alone. Where the rest do not make a recipe together, none of them counts: half
    of what was set would be a recipe that nobody chose.
    """
    known = {name: value for name, value in settings.items() if _unknown(name) is None}
    left = sorted(set(settings) - set(known))
    table: dict[str, Any] = {}
    for name, value in sorted(known.items()):
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
            raise InvalidInput(f"There is no leg named {strange[0]!r}; there are {', '.join(sorted(legs))}.")
    except SemmemError as error:
        return base, _NONE_USED + error.message
    if left:
        return plan, f"this semmem does not know {', '.join(left)}; upgrade it, or unset what is not meant for it"
    return plan, None


def fitted(
    base: Recipe, namespaces: Sequence[str], rows: Sequence[tuple[str, str, Any]], legs: Collection[str]
) -> tuple[Recipe, Mapping[str, Any], str | None]:
    """Return the recipe for a recall in ``namespaces``, the settings that made it, and one sentence if any failed.

    ``rows`` are (namespace, name, value). Several namespaces are asked by one recipe, so their settings count only
    where all of them have the same. One for which there is no leg or recipe here is left out, and so told.
    """
    by_namespace: dict[str, dict[str, Any]] = {namespace: {} for namespace in namespaces}
    for namespace, name, value in rows:
        by_namespace[namespace][name] = value
    settings, *others = by_namespace.values()
    if any(other != settings for other in others):
        wrong = f"the namespaces {', '.join(namespaces)} have different search settings, so none of them is used"
        return base, {}, f"{wrong}; ask them one by one, or pass a recipe"
    plan, wrong_one = _apply(base, settings, legs)
    used = {name: value for name, value in settings.items() if plan is not base and _unknown(name) is None}
    where = "namespace " + namespaces[0] if not others else "namespaces " + ", ".join(namespaces)
    return plan, used, f"{where}: {wrong_one}" if wrong_one else None


class Tailor:
    """Applies what a recall read of the settings of its namespaces; the recipes made are kept by what was read."""

    def __init__(self, legs: Collection[str]) -> None:
        self._legs = legs
        self._made: dict[tuple[int, tuple[str, ...], str], tuple[Recipe, Recipe, Mapping[str, Any], str | None]] = {}

    def fit(
        self, base: Recipe, namespaces: Sequence[str], raw: str | None
    ) -> tuple[Recipe, Mapping[str, Any], str | None]:
        """Return what ``fitted`` does; ``raw`` is its rows as JSON, as ``Scope.settings`` has them."""
        if raw is None:
            return base, {}, None
        key = (id(base), tuple(namespaces), raw)
        made = self._made.get(key)
        if made is None or made[0] is not base:
            if len(self._made) >= _KEPT:
                self._made.clear()
            made = (base, *fitted(base, namespaces, json.loads(raw), self._legs))
            if made[3] is None:  # a leg that is not known now may be registered later
                self._made[key] = made
        return made[1:]
