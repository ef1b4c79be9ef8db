"""Settings and recipes; the only module that reads the environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from semmem.errors import InvalidInput, UnknownRecipe
from semmem.rerankers import known as known_reranker
from semmem.types import Fusion, GraphSettings, RankConstant, Recipe

__all__ = ["RECIPES", "Settings", "check", "recipe"]

_THREE = {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
_SIXTY = {"lexical": 60.0, "dense": 60.0, "graph": 60.0}
_HALVES = {"lexical": 0.5, "dense": 0.5}
_SIXTY_EACH = {"lexical": 60.0, "dense": 60.0}
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
            # The vector's share is alpha = .5, the words' 1 - alpha, as in memini; rank constants are not read.
            Recipe("convex", _HALVES, _SIXTY_EACH, fusion="convex"),
            Recipe("tm2c2", _HALVES, _SIXTY_EACH, fusion="tm2c2"),
            Recipe("rank-scaled", _THREE, _SIXTY, fusion="rank-scaled"),
            Recipe(
                "scored",
                {"lexical": 1.0, "dense": 1.0, "graph": 1.0},
                {"lexical": 60.0, "dense": 60.0, "graph": {"named": 2.0, "unnamed": 8.0}},
                fusion="scored",
                regime_weights={"named": {"graph": 12.0}},
            ),
            # 1/(5 + rank) with ranks from 0; importance counts in its reranker, not as a prior.
            Recipe("memini", {"lexical": 1.0, "dense": 1.0}, {"lexical": 4.0, "dense": 4.0}, prior=False),
            # Two weights from 0 to 5; each leg fetches twice the ten that are shown.
            Recipe(
                "nexus", {"lexical": 1.0, "dense": 1.0}, _SIXTY_EACH, depths={"lexical": 20, "dense": 20}, prior=False
            ),
        )
    }
)


class Settings(BaseSettings):
    """What can be set from outside: an argument of connect, else the environment (``SEMMEM_`` + the name)."""

    model_config = SettingsConfigDict(env_prefix="SEMMEM_", extra="forbid", frozen=True)

    url: str | None = Field(None, description="Where the store is; none is the embedded server of the user.")
    home: Path | None = Field(None, description="Folder of the embedded server's data.")
    embedder: str | None = Field(None, description="minilm, hashing or none; none given: MiniLM where it is installed.")
    model: str | None = Field(None, description="Folder of the embedding model, looked at first.")
    language: str = Field("english", description="Snowball language of stems and stop words.")
    extractor: str = Field("rules", description="rules, spacy, precomputed or llm: what finds concepts in memories.")
    spacy_pipeline: str | None = Field(None, description="spacy: a pipeline such as en_core_web_sm, or its folder.")
    triples: Path | None = Field(None, description="precomputed: JSON file of names and relationships.")
    llm_url: str | None = Field(None, description="llm: OpenAI-compatible endpoint, such as http://localhost:11434/v1.")
    llm_model: str | None = Field(None, description="llm: name of the model at that endpoint.")
    llm_key: SecretStr | None = Field(None, description="llm: key of the endpoint, sent to it alone; never shown.")
    llm_cache: Path | None = Field(None, description="llm: SQLite file that keeps answers; none keeps them in memory.")
    llm_timeout_s: float = Field(30.0, gt=0, le=600, description="llm: seconds one attempt may take in all.")
    pool_size: int = Field(8, ge=1, le=100, description="Connections a process may hold.")
    idle_stop_s: float = Field(3600.0, gt=0, description="Idle seconds after which the embedded server stops.")
    start_timeout_s: float = Field(120.0, gt=0, description="Seconds to wait for the server, recovery included.")

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
    elif isinstance(name, str) and name in RECIPES:
        base = RECIPES[name]
    else:
        raise UnknownRecipe(f"There is no recipe named {name!r}; choose one of {', '.join(sorted(RECIPES))}.")
    if not changes:
        if isinstance(name, Recipe):
            check(base)
        return base
    known = {f.name for f in dataclasses.fields(Recipe)}
    if unknown := sorted(set(changes) - known):
        raise InvalidInput(f"A recipe has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}.")
    for key in ("weights", "rank_constants", "depths", "timeouts", "reserve"):
        if key in changes:
            if not isinstance(changes[key], Mapping):
                raise InvalidInput(f'{key} must be a mapping from a leg to a number, such as {{"graph": 1}}.')
            if key != "reserve":
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
    for leg, weight in recipe.weights.items():
        _number(f"The weight of {leg}", weight, 0, 100)
    for leg, constant in recipe.rank_constants.items():
        for k in _values(constant):
            _number(f"The rank constant of {leg}", k, 0, 1_000_000)
    for leg, depth in recipe.depths.items():
        _number(f"The depth of {leg}", depth, 0, 10_000, whole=True)
    for leg, seconds in recipe.timeouts.items():
        _number(f"The timeout of {leg} in seconds", seconds, 0.001, 3600)
    for leg, place in recipe.reserve.items():
        _number(f"The place that the reserve keeps for {leg}", place, 1, 10_000, whole=True)
    if len(set(recipe.reserve.values())) != len(recipe.reserve):
        raise InvalidInput("Each leg of the reserve needs a place of its own, from 1 on.")
    _number("prior_floor", recipe.prior_floor, 0, 1)
    _choice("fusion", recipe.fusion, get_args(Fusion))
    if recipe.rerank is not None:
        known_reranker(recipe.rerank)
    _number("rerank_depth", recipe.rerank_depth, 1, 1_000, whole=True)
    _number("exact_bonus", recipe.exact_bonus, 0, 10)
    _number("lexical k1", recipe.lexical.k1, 0, 100)
    _number("lexical b", recipe.lexical.b, 0, 1)
    _choice("lexical match", recipe.lexical.match, ("any", "all", "auto"))
    for name, default in dataclasses.asdict(GraphSettings()).items():
        value = getattr(recipe.graph, name)
        if name == "walk":
            _choice("graph walk", value, ("gated", "pagerank"))
        elif isinstance(default, bool):
            _choice(f"graph {name}", value, (True, False))
        elif isinstance(default, int | float):
            _number(f"graph {name}", value, 0, 10_000, whole=isinstance(default, int))
        elif isinstance(default, tuple) and not (isinstance(value, tuple) and all(isinstance(v, str) for v in value)):
            raise InvalidInput(f"graph {name} must be a tuple of names, not {value!r}.")
    if not recipe.legs:
        raise InvalidInput("A recipe needs at least one leg with a weight and a depth above 0.")
    for leg in recipe.legs:
        if leg not in recipe.rank_constants:
            raise InvalidInput(f"The leg {leg} has a weight but no rank constant; pass rank_constants={{{leg!r}: 60}}.")
    regimes = {r for c in recipe.rank_constants.values() if isinstance(c, Mapping) for r in c}
    for leg, constant in recipe.rank_constants.items():
        if isinstance(constant, Mapping) and set(constant) != regimes:
            raise InvalidInput(f"The rank constants of {leg} must name every regime: {', '.join(sorted(regimes))}.")
    for regime, weights in recipe.regime_weights.items():
        if regime not in regimes:
            raise InvalidInput(f"regime_weights has a regime {regime!r} that no rank constant names.")
        for leg, weight in weights.items():
            if leg not in recipe.weights:
                raise InvalidInput(f"regime_weights has a leg {leg!r} that has no weight of its own.")
            _number(f"The weight of {leg} in regime {regime}", weight, 0.001, 100)


def _number(what: str, value: Any, low: float, high: float, *, whole: bool = False) -> None:
    kind = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        sort = "a whole number" if whole else "a number"
        raise InvalidInput(f"{what} must be {sort} from {low:g} to {high:g}, not {value!r}.")


def _choice(what: str, value: Any, choices: tuple[Any, ...]) -> None:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise InvalidInput(f"{what} must be one of {', '.join(map(str, choices))}, not {value!r}.")


def _values(constant: RankConstant) -> tuple[float, ...]:
    return tuple(constant.values()) if isinstance(constant, Mapping) else (constant,)
