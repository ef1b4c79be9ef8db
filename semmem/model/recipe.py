"""Recipes: named, frozen search settings, and variants of them. Pure."""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Unpack, get_args

from semmem.model.errors import InvalidInput, UnknownRecipe
from semmem.model.recipe_settings import (
    Choice,
    ConversationSettings,
    Each,
    Fusion,
    GraphSettings,
    LexicalSettings,
    Names,
    Number,
    OneOrEach,
    OrNone,
    RankConstant,
    Reranker,
    Section,
    Setting,
    Switch,
    settings_of,
    values_of,
)

if TYPE_CHECKING:
    from semmem.model.keywords import RecipeChanges

__all__ = [
    "RECIPES",
    "SETTINGS",
    "USUAL_DEPTH",
    "ConversationSettings",
    "Fusion",
    "GraphSettings",
    "LexicalSettings",
    "RankConstant",
    "Recipe",
    "check",
    "deep_enough",
    "full_depths",
    "recipe",
    "rules",
    "setting",
]


USUAL_DEPTH = 100
"""The depth of a leg for which the recipe sets none."""


def _frozen(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType({k: _frozen(v) if isinstance(v, Mapping) else v for k, v in value.items()})


@dataclass(frozen=True, slots=True)
class Recipe:
    """Named, frozen search settings; an ablation is another recipe, never another code path.

    ``weights``, ``rank_constants`` and ``depths`` are by leg name; a leg without a weight, or with weight 0, is never
    called. ``reserve`` maps a leg to the last place at which its first memory may stand, and ``agreed`` to that place
    for the memory that more than half of the legs with an answer put first. ``exact_bonus`` is in units of the score
    that a first place in the lexical leg earns. ``regime_weights`` maps a regime to weights that replace those of
    ``weights``, and ``regime_reserve`` to places that replace those of ``reserve``, 0 for none. ``rerank`` names a
    reranker that orders the first ``rerank_depth`` memories again, for questions of the ``rerank_regimes`` alone if
    there are some. With ``headroom``, each leg returns at least that many times the wanted hits, whatever its depth.

    ``prior`` multiplies a score by ``prior_floor + (1 - prior_floor) * importance``. A ``prior_floor`` of None is the
    bounded prior: the whole range of importance is worth half of the step from a first to a second place in the
    flattest leg, so a memory that is first in every leg stays first (exactly so in fusions by rank). With a
    ``recency_half_life``, in days, age is a second prior: it multiplies by ``recency_floor + (1 - recency_floor) * 2 **
    (-age / half_life)``, where age is the time between the creation of a memory and that of the newest one found. For
    a question that names a period of time, such as "last week", a ``period_floor`` is a third prior: it multiplies by
    ``period_floor`` unless the memory was created in the period.
    """

    name: str
    weights: Annotated[
        Mapping[str, float],
        Each(Number(0, 100), merge=True),
        "how much a place in the leg's list counts; 0: the leg is not called",
        "leg",
    ]
    rank_constants: Annotated[
        Mapping[str, RankConstant],
        Each(OneOrEach(Number(0, 1_000_000), "regime"), merge=True),
        "k in weight / (k + rank): with a larger k, lower places count almost as much as the first",
        "leg",
    ]
    depths: Annotated[
        Mapping[str, int],
        Each(Number(0, 10_000, whole=True), merge=True),
        "memories that the leg may return; 0: the leg is not called",
        "leg",
    ] = field(default_factory=lambda: dict.fromkeys(("lexical", "dense", "graph"), USUAL_DEPTH))
    timeouts: Annotated[
        Mapping[str, float], Each(Number(0.001, 3600), merge=True), "seconds that the leg may take", "leg"
    ] = field(default_factory=lambda: {"lexical": 5.0, "dense": 10.0, "graph": 5.0})
    reserve: Annotated[
        Mapping[str, int],
        Each(Number(1, 10_000, whole=True)),
        "the last place that the leg's first memory may have; agreed: the same for the memory that most legs put first",
        "fusion",
    ] = field(default_factory=dict)
    prior: Annotated[bool, Switch(), "importance multiplies the score", "fusion"] = True
    prior_floor: Annotated[
        float | None,
        OrNone(Number(0, 1)),
        "factor for a memory of importance 0; none: importance is worth half the step from first to second place",
        "fusion",
    ] = 0.7
    recency_half_life: Annotated[
        float | None,
        OrNone(Number(0.001, 36_500)),
        "age in days, behind the newest memory found, at which the factor for age is halfway to recency_floor; none: "
        "age counts nothing",
        "fusion",
    ] = None
    recency_floor: Annotated[float, Number(0, 1), "the least factor for age", "fusion"] = 0.9
    period_floor: Annotated[
        float | None,
        OrNone(Number(0, 1)),
        'factor for a memory created outside the period that the question names ("last week"); none: such words count '
        "nothing",
        "fusion",
    ] = None
    exact_bonus: Annotated[
        float,
        Number(0, 10),
        "bonus for a memory that holds every word of the question, in units of the lexical leg's first place",
        "fusion",
    ] = 0.0
    dedup: Annotated[bool, Switch(), "memories with the same text count as one hit", "hits"] = True
    superseding: Annotated[bool, Switch(), "a newer memory takes the place of a memory that it supersedes", "hits"] = (
        True
    )
    lexical: Annotated[LexicalSettings, Section(LexicalSettings), "the lexical leg", "lexical"] = field(
        default_factory=LexicalSettings
    )
    graph: Annotated[GraphSettings, Section(GraphSettings), "the graph leg", "graph"] = field(
        default_factory=GraphSettings
    )
    conversation: Annotated[
        ConversationSettings | None,
        Section(ConversationSettings, optional=True),
        "all rules for memories with an author",
        "conversation",
    ] = field(default_factory=ConversationSettings)
    fusion: Annotated[Fusion, Choice(get_args(Fusion)), "the formula that fuses the lists", "fusion"] = "rrf"
    regime_weights: Annotated[
        Mapping[str, Mapping[str, float]],
        Each(Each(Number(0.001, 100)), "regime"),
        "weights that replace those of weights in a regime",
        "fusion",
    ] = field(default_factory=dict)
    regime_reserve: Annotated[
        Mapping[str, Mapping[str, int]],
        Each(Each(Number(0, 10_000, whole=True)), "regime"),
        "places that replace those of reserve in a regime; 0: no place",
        "fusion",
    ] = field(default_factory=dict)
    rerank: Annotated[str | None, OrNone(Reranker()), "the reranker of the first hits", "hits"] = None
    rerank_depth: Annotated[int, Number(1, 1_000, whole=True), "first hits that the reranker orders again", "hits"] = 30
    rerank_regimes: Annotated[
        tuple[str, ...],
        Names(),
        "the regimes in which the reranker orders the first hits again; none: every regime",
        "hits",
    ] = ()
    headroom: Annotated[
        int, Number(0, 10, whole=True), "each leg returns at least this many times the wanted hits", "leg"
    ] = 0

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            if isinstance(value := getattr(self, f.name), Mapping):
                object.__setattr__(self, f.name, _frozen(value))

    @property
    def legs(self) -> tuple[str, ...]:
        """Names of the legs that are called: weight above 0 and depth above 0."""
        return tuple(leg for leg, w in self.weights.items() if w > 0 and self.depths.get(leg, USUAL_DEPTH) > 0)

    @property
    def walks(self) -> bool:
        """Whether the graph leg is called, which walks from the lists of the other legs."""
        return "graph" in self.legs

    @property
    def seeders(self) -> tuple[str, ...]:
        """The legs from whose lists the graph leg walks, where it is called."""
        return self.graph.seeders if self.walks else ()

    @property
    def regimes(self) -> tuple[str, ...]:
        """Names of the regimes, ``("any",)`` when no rank constant depends on the question.

        Nor does one without the graph leg, which alone tells one question from another.
        """
        names = _regimes({leg: self.rank_constants[leg] for leg in self.legs}) if self.walks else ()
        return tuple(sorted(names)) or ("any",)

    def constants(self, regime: str = "any") -> dict[str, float]:
        """Return the rank constant of every called leg in ``regime``; that of *unnamed* where none is known."""
        out: dict[str, float] = {}
        for leg in self.legs:
            constant = self.rank_constants[leg]
            if isinstance(constant, Mapping):
                usual = "unnamed" if "unnamed" in constant else max(constant)
                out[leg] = constant[usual if regime == "any" else regime]
            else:
                out[leg] = constant
        return out

    @property
    def by_time(self) -> bool:
        """Whether a prior reads when a memory was created."""
        return self.recency_half_life is not None or self.period_floor is not None

    def floor(self, regime: str = "any") -> float:
        """Return the factor of a memory of importance 0 in ``regime``, that of the bounded prior if none is set."""
        if self.prior_floor is not None:
            return self.prior_floor
        return 1 - 0.5 / (max(self.constants(regime).values()) + 2)

    def weights_in(self, regime: str = "any") -> dict[str, float]:
        """Return the weight of every called leg in ``regime``."""
        own = self.regime_weights.get(regime, {})
        return {leg: own.get(leg, self.weights[leg]) for leg in self.legs}

    def reserve_in(self, regime: str = "any") -> Mapping[str, int]:
        """Return the reserve in ``regime``."""
        places = {**self.reserve, **self.regime_reserve.get(regime, {})}
        return {leg: place for leg, place in places.items() if place}

    def reranker_in(self, regime: str = "any") -> str | None:
        """Return the name of the reranker in ``regime``; None where none runs."""
        return self.rerank if not self.rerank_regimes or regime in self.rerank_regimes else None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""

        def plain(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {k: plain(v) for k, v in value.items()}
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
            return value

        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


_THREE = {"lexical": 1.0, "dense": 1.0, "graph": 0.35}

_SIXTY = {"lexical": 60.0, "dense": 60.0, "graph": 60.0}
_HALVES = {"lexical": 0.5, "dense": 0.5}
_SIXTY_EACH = {"lexical": 60.0, "dense": 60.0}

_RESERVE = {"graph": 3, "lexical": 4, "dense": 5}

# Every leg is steep: its first places count and the rest hardly does; see adr/0026.
_TWO_REGIMES = Recipe(
    "two-regimes",
    {"lexical": 0.1, "dense": 0.35, "graph": 0.35},
    {"lexical": 4.0, "dense": 8.0, "graph": {"named": 0.0, "unnamed": 8.0}},
    reserve={"agreed": 1, **_RESERVE},
    prior_floor=None,
    graph=GraphSettings(lone_names="leading"),
    conversation=ConversationSettings(dialogue=True, before_asked=0.3),
)

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        r.name: r
        for r in (
            # For questions that name nothing it believes the leg that their lists speak for; see adr/0076.
            replace(
                _TWO_REGIMES,
                name="default",
                rank_constants={
                    "lexical": 4.0,
                    "dense": {"named": 8.0, "anchored": 8.0, "described": 2.0, "unnamed": 8.0},
                    "graph": {"named": 0.0, "anchored": 2.0, "described": 8.0, "unnamed": 8.0},
                },
                regime_reserve={"described": {"agreed": 0}},
            ),
            # The default before adr/0076, and that of semmem 0.1 as first measured: for the records that cite them.
            _TWO_REGIMES,
            Recipe("default-0.1", _THREE, {**_SIXTY, "graph": {"named": 0.0, "unnamed": 8.0}}, reserve=_RESERVE),
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
            # Two weights from 0 to 5; each leg fetches twice what is shown.
            Recipe(
                "nexus",
                {"lexical": 1.0, "dense": 1.0},
                _SIXTY_EACH,
                depths={"lexical": 20, "dense": 20},
                prior=False,
                headroom=2,
            ),
        )
    }
)


SETTINGS: Mapping[str, Setting] = MappingProxyType({row.name: row for row in settings_of(Recipe)})
"""Every setting of a recipe by its dotted name, such as ``weights.LEG``, ``prior`` or ``graph.hops``."""

_VALUES = values_of(Recipe)


def setting(name: str) -> Setting | None:
    """Return the setting of a dotted name, which may name a leg (``weights.graph``); None where there is none."""
    key, _, leg = name.partition(".")
    return SETTINGS.get(name) or (SETTINGS.get(f"{key}.LEG") if leg.isidentifier() else None)


def recipe(name: str | Recipe = "default", /, **changes: "Unpack[RecipeChanges]") -> Recipe:
    """Return the recipe ``name``, or a variant of it.

    Mappings (``weights``, ``rank_constants``, ``depths``, ``timeouts``) are merged over those of the recipe;
    ``reserve``, ``regime_weights`` and ``regime_reserve`` replace it whole (an empty one switches it off). ``lexical``,
    ``graph`` and ``conversation`` take a mapping of their own settings; ``conversation=None`` switches its rules off,
    and True on again. A weight of 0 switches a leg off. A regime that no rank constant names any more loses the weights
    and places that the recipe had for it.

    Raises UnknownRecipe for a name that is not in ``RECIPES``, InvalidInput for an unknown setting or one out of range.
    """
    if not isinstance(name, Recipe) and not (isinstance(name, str) and name in RECIPES):
        own = ", or make one with semmem.recipe('default', weights=…)" if isinstance(name, Mapping) else ""
        raise UnknownRecipe(f"There is no recipe named {name!r}; choose one of {', '.join(sorted(RECIPES))}{own}.")
    base = name if isinstance(name, Recipe) else RECIPES[name]
    settings: dict[str, Any] = {**changes}
    if unknown := sorted(set(settings) - {"name", *_VALUES}):
        raise InvalidInput(f"A recipe has no setting {unknown[0]!r}; it has {', '.join(sorted(('name', *_VALUES)))}.")
    for key, value in settings.items():
        if key != "name":
            present = rules(base) if key == "conversation" else getattr(base, key)
            settings[key] = _VALUES[key].merged(key, value, present)
    changed = dataclasses.replace(base, **settings) if settings else base
    if "rank_constants" in settings:
        changed = dataclasses.replace(changed, **_of_regimes(changed, settings))
    if settings or isinstance(name, Recipe):
        check(changed)
    return changed


def _of_regimes(recipe: Recipe, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by regime that were not ``given``, of the regimes that the rank constants name."""
    names = _regimes(recipe.rank_constants)
    inherited = {name: getattr(recipe, name) for name in ("regime_weights", "regime_reserve") if name not in given}
    return {name: {regime: of[regime] for regime in of if regime in names} for name, of in inherited.items()}


def _regimes(constants: Mapping[str, RankConstant]) -> set[str]:
    return {regime for constant in constants.values() if isinstance(constant, Mapping) for regime in constant}


def rules(recipe: Recipe) -> ConversationSettings:
    """Return the conversation rules of ``recipe``; where they are off, those of the recipe named ``conversation``."""
    named = RECIPES.get(recipe.name, RECIPES["default"])
    return recipe.conversation or named.conversation or ConversationSettings()


def check(recipe: Recipe) -> None:
    """Raise InvalidInput, in one sentence, unless every setting of ``recipe`` is in range and they fit together."""
    for name, values in _VALUES.items():
        values.check(name, getattr(recipe, name))
    regimes = _regimes(recipe.rank_constants)
    if unknown := [regime for regime in recipe.regime_reserve if regime not in regimes]:
        raise InvalidInput(f"regime_reserve has a regime {unknown[0]!r} that no rank constant names.")
    if unknown := [regime for regime in recipe.rerank_regimes if regime not in regimes]:
        known = f"it has {', '.join(sorted(regimes))}" if regimes else "the recipe has one for every question"
        raise InvalidInput(f"rerank_regimes has a regime {unknown[0]!r} that no rank constant names; {known}.")
    for regime in ("any", *recipe.regime_reserve):
        places = recipe.reserve_in(regime)
        if len(set(places.values())) != len(places):
            raise InvalidInput("Each leg of the reserve needs a place of its own, 1 or more.")
    if not recipe.legs:
        raise InvalidInput("A recipe needs at least one leg with a weight and a depth above 0.")
    for leg in recipe.legs:
        if leg not in recipe.rank_constants:
            meant = difflib.get_close_matches(leg, recipe.rank_constants, 1, 0.7)
            hint = f" Did you mean {meant[0]}?" if meant else ""
            raise InvalidInput(
                f"The leg {leg} has a weight but no rank constant; pass rank_constants={{{leg!r}: 60}}.{hint}"
            )
    for leg, constant in recipe.rank_constants.items():
        if isinstance(constant, Mapping) and set(constant) != regimes:
            raise InvalidInput(f"The rank constants of {leg} must name every regime: {', '.join(sorted(regimes))}.")
    for regime, weights in recipe.regime_weights.items():
        if regime not in regimes:
            raise InvalidInput(f"regime_weights has a regime {regime!r} that no rank constant names.")
        if strange := [leg for leg in weights if leg not in recipe.weights]:
            raise InvalidInput(f"regime_weights has a leg {strange[0]!r} that has no weight of its own.")


def deep_enough(recipe: Recipe, hits: int) -> Recipe:
    """Raise every depth to the number of hits wanted, except where the recipe keeps a leg shallow on purpose.

    A recipe with headroom raises every leg to a multiple of that number.
    """
    least = max(recipe.headroom, 1) * hits
    deep = recipe.legs if recipe.headroom else tuple(full_depths(recipe))
    raised = {leg: least for leg in deep if recipe.depths.get(leg, USUAL_DEPTH) < least}
    return replace(recipe, depths={**recipe.depths, **raised}) if raised else recipe


def full_depths(recipe: Recipe) -> dict[str, int]:
    """Return the depth of each leg that the recipe does not keep shallow on purpose."""
    return {leg: n for leg in recipe.legs if (n := recipe.depths.get(leg, USUAL_DEPTH)) >= USUAL_DEPTH}
