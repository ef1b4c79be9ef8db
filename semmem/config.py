"""Settings and recipes; the only module that reads the environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from semmem.errors import InvalidInput, UnknownRecipe
from semmem.types import GraphSettings, RankConstant, Recipe

__all__ = ["RECIPES", "Settings", "check", "recipe"]

_THREE = {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
_SIXTY = {"lexical": 60.0, "dense": 60.0, "graph": 60.0}
_RESERVE = {"graph": 3, "lexical": 4, "dense": 5}

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        r.name: r
        for r in (
            Recipe(
                "default",
                _THREE,
                {"lexical": 60.0, "dense": 60.0, "graph": {"named": 0.0, "unnamed": 8.0}},
                reserve=_RESERVE,
            ),
            Recipe("seed", _THREE, _SIXTY),
            Recipe("hybrid", {"lexical": 1.0, "dense": 1.0}, {"lexical": 60.0, "dense": 60.0}),
            Recipe("lexical", {"lexical": 1.0}, {"lexical": 60.0}),
            Recipe("dense", {"dense": 1.0}, {"dense": 60.0}),
            Recipe("graph", {"graph": 1.0}, {"graph": 60.0}, graph=GraphSettings(seeders=("lexical", "dense"))),
        )
    }
)


class Settings(BaseSettings):
    """What can be set from outside: an argument of connect, else the environment (``SEMMEM_`` + the name in capitals)."""

    model_config = SettingsConfigDict(env_prefix="SEMMEM_", extra="forbid", frozen=True)

    url: str | None = Field(None, description="Where the store is; none is the embedded server of the user.")
    home: Path | None = Field(None, description="Folder of the embedded server's data.")
    embedder: str | None = Field(None, description="minilm, hashing or none; none given: MiniLM where it is installed.")
    model: str | None = Field(None, description="Folder of the embedding model, looked at first.")
    language: str = Field("english", description="Snowball language of stems and stop words.")
    pool_size: int = Field(8, ge=1, le=100, description="Connections a process may hold.")
    idle_stop_s: float = Field(3600.0, gt=0, description="Seconds without a client after which the embedded server stops.")
    start_timeout_s: float = Field(120.0, gt=0, description="Seconds to wait for the embedded server, recovery included.")

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """Return the settings, arguments over environment. Raises InvalidInput, in one sentence."""
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(p) for p in first["loc"]) or "?"
            if first["type"] == "extra_forbidden":
                raise InvalidInput(f"There is no setting {name!r}; there are {', '.join(cls.model_fields)}.") from None
            raise InvalidInput(f"The setting {name} (SEMMEM_{name.upper()}) cannot be used: {first['msg']}.") from None


def recipe(name: str | Recipe = "default", /, **changes: Any) -> Recipe:
    """Return the recipe ``name``, or a variant of it.

    Mappings (``weights``, ``rank_constants``, ``depths``, ``timeouts``) are merged over those of the recipe;
    ``reserve`` replaces it whole (``reserve={}`` switches it off). ``lexical`` and ``graph`` take a mapping of
    their own fields. A weight of 0 switches a leg off.

    Raises UnknownRecipe for a name that is not in ``RECIPES`` and InvalidInput for a setting that does not exist
    or is out of range.
    """
    if isinstance(name, Recipe):
        base = name
    elif name in RECIPES:
        base = RECIPES[name]
    else:
        raise UnknownRecipe(f"There is no recipe named {name!r}; choose one of {', '.join(sorted(RECIPES))}.")
    if not changes:
        return base
    known = {f.name for f in dataclasses.fields(Recipe)}
    if unknown := sorted(set(changes) - known):
        raise InvalidInput(f"A recipe has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}.")
    for key in ("weights", "rank_constants", "depths", "timeouts"):
        if key in changes:
            changes[key] = {**getattr(base, key), **changes[key]}
    for key in ("lexical", "graph"):
        if isinstance(changes.get(key), Mapping):
            settings = getattr(base, key)
            known = {f.name for f in dataclasses.fields(settings)}
            if unknown := sorted(set(changes[key]) - known):
                raise InvalidInput(f"{key} has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}.")
            changes[key] = dataclasses.replace(settings, **changes[key])
    changed = dataclasses.replace(base, **changes)
    check(changed)
    return changed


def check(recipe: Recipe) -> None:
    """Raise InvalidInput, in one sentence, unless every number of ``recipe`` is in range."""
    if not recipe.legs:
        raise InvalidInput("A recipe needs at least one leg with a weight above 0.")
    for leg, weight in recipe.weights.items():
        if not 0 <= weight <= 100:
            raise InvalidInput(f"The weight of {leg} must be from 0 to 100, not {weight}.")
    for leg in recipe.legs:
        if leg not in recipe.rank_constants:
            raise InvalidInput(f"The leg {leg} has a weight but no rank constant; pass rank_constants={{{leg!r}: 60}}.")
    regimes = {r for c in recipe.rank_constants.values() if isinstance(c, Mapping) for r in c}
    for leg, constant in recipe.rank_constants.items():
        for k in _values(constant):
            if not 0 <= k <= 1_000_000:
                raise InvalidInput(f"The rank constant of {leg} must be 0 or more, not {k}.")
        if isinstance(constant, Mapping) and set(constant) != regimes:
            raise InvalidInput(f"The rank constants of {leg} must name every regime: {', '.join(sorted(regimes))}.")
    for leg, depth in recipe.depths.items():
        if not 0 <= depth <= 10_000:
            raise InvalidInput(f"The depth of {leg} must be from 0 to 10000, not {depth}.")
    places = list(recipe.reserve.values())
    if any(place < 1 for place in places) or len(set(places)) != len(places):
        raise InvalidInput("Each leg of the reserve needs a place of its own, from 1 on.")
    if not 0 <= recipe.prior_floor <= 1:
        raise InvalidInput(f"prior_floor must be from 0 to 1, not {recipe.prior_floor}.")
    if not 0 <= recipe.exact_bonus <= 10:
        raise InvalidInput(f"exact_bonus must be from 0 to 10, not {recipe.exact_bonus}.")


def _values(constant: RankConstant) -> tuple[float, ...]:
    return tuple(constant.values()) if isinstance(constant, Mapping) else (constant,)
