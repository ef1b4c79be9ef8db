"""How a recall searches: a recipe and the settings of its legs, as frozen dataclasses. No behaviour beyond reading."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args

from semmem.model.errors import InvalidInput, UnknownRecipe
from semmem.model.protocols import reranker_parts

if TYPE_CHECKING:
    from semmem.model.keywords import RecipeChanges

__all__ = [
    "RECIPES",
    "ConversationSettings",
    "Fusion",
    "GraphSettings",
    "LexicalSettings",
    "RankConstant",
    "Recipe",
    "check",
    "recipe",
    "rules",
]

Fusion: TypeAlias = Literal["rrf", "convex", "tm2c2", "rank-scaled", "scored"]

RankConstant: TypeAlias = "float | Mapping[str, float]"
"""One rank constant, or one per regime, such as ``{"named": 0, "unnamed": 8}``."""


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """BM25 (Robertson and Zaragoza 2009, Lucene's form): ``k1``, ``b``; ``match`` any, all or auto."""

    k1: float = 1.2
    b: float = 0.5
    match: Literal["any", "all", "auto"] = "any"


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """The walk: seeds per leg, share of each restart part, channel weights, and what bounds the work.

    ``lone_names`` says when a name that one memory alone mentions, and none is about, makes a question one that names
    something: ``leading`` is where a way leads on from that memory over another name, which it shares with others.
    ``anchor_share`` is the restart share of names that at most ``anchor_df`` memories mention; ``lower_case`` finds
    known names that a question writes small; ``neighbour_own`` is the weight of a neighbour by the same author;
    ``related`` is the strength of relationships; ``other_names`` links a name of the question to a subject that is
    written another way; ``targets`` bounds what a hop carries on; ``stems`` and ``bigrams`` say whether the walk goes
    over single words and pairs of words, beside names; ``alpha`` is the damping of ``walk="pagerank"``, the chance that
    it goes on and does not restart; ``seeders`` are legs that are asked for seeds although they have no vote of their
    own (recipe ``graph``).
    """

    seeds: int = 10
    subject_share: float = 1.0
    concept_share: float = 0.25
    anchor_share: float = 1.0
    anchor_df: int = 5
    lone_names: Literal["always", "leading", "never"] = "always"
    lower_case: bool = True
    seed_share: float = 0.5
    about: float = 1.0
    co_mention: float = 2.0
    neighbour: float = 0.5
    neighbour_own: float = 0.25
    related: float = 0.0
    other_names: bool = True
    gate: float = 2.0
    decay: float = 0.5
    hops: int = 1
    beam: int = 20
    targets: int = 100
    fan: int = 20
    max_df: int = 30
    author_bonus: float = 2.0
    stems: bool = True
    bigrams: bool = True
    walk: Literal["gated", "pagerank"] = "gated"
    alpha: float = 0.5
    seeders: tuple[str, ...] = ()


def _frozen(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType({k: _frozen(v) if isinstance(v, Mapping) else v for k, v in value.items()})


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    """Rules for memories with an author; see semmem.legs.conversation. They act inside the legs, not in fusion.

    ``dialogue`` keeps what is about the author (the name out of the question, the two factors, and the walk's) for
    authors who take turns with others: where people write notes about each other, a name is what a question is about,
    and not who said it. ``*_lexical`` are factors of BM25, ``*_dense`` are added to the cosine. ``previous``, ``asked``
    (a previous turn that ends in a question mark), ``before`` (``before_asked`` where the turn in between asks: what is
    answered was said before it), ``next`` and ``own`` (a previous turn by the same author) are the weights of what
    stands around a turn. ``collecting`` recognises questions that gather many turns ("which cities has she", "how
    many"; English, as is what the encoder leaves out of a greeting): what they look for stands alone, so windows and
    the walk's neighbours shrink by the two factors, and the author counts ``collecting_author_dense``. Where questions
    are in another language, ``collecting=False`` switches that rule off.
    """

    dialogue: bool = False
    author_lexical: float = 1.6
    author_dense: float = 0.1
    previous: float = 0.3
    asked: float = 0.5
    before: float = 0.1
    before_asked: float = 0.1
    next: float = 0.1
    own: float = 0.15
    month_lexical: float = 1.5
    month_dense: float = 0.06
    collecting: bool = True
    collecting_window: float = 0.33
    collecting_neighbour: float = 0.5
    collecting_author_dense: float = 0.2


@dataclass(frozen=True, slots=True)
class Recipe:
    """Named, frozen search settings; an ablation is another recipe, never another code path.

    ``weights``, ``rank_constants`` and ``depths`` are by leg name; a leg that is absent from ``weights``, or
    has weight 0, is never called. ``reserve`` maps a leg to the last place its first memory may stand, and
    ``agreed`` to that of the memory which more than half of the legs with an answer put first.
    ``prior`` multiplies by ``prior_floor + (1 - prior_floor) * importance``; a ``prior_floor`` of None is the bounded
    prior: all of importance is worth half of the step from a first place to a second one in the flattest leg, so what
    is first in every leg stays first (exactly so in fusions by rank). ``exact_bonus`` is in units of
    the score that a first place in the lexical leg earns. ``regime_weights`` maps a regime to weights that replace
    those of ``weights`` in it. ``rerank`` names a reranker that orders the first ``rerank_depth`` memories anew.
    ``headroom`` makes each leg return at least so many times what a recall is to show, whatever its depth.
    """

    name: str
    weights: Mapping[str, float]
    rank_constants: Mapping[str, RankConstant]
    depths: Mapping[str, int] = field(default_factory=lambda: {"lexical": 100, "dense": 100, "graph": 100})
    timeouts: Mapping[str, float] = field(default_factory=lambda: {"lexical": 5.0, "dense": 10.0, "graph": 5.0})
    reserve: Mapping[str, int] = field(default_factory=dict)
    prior: bool = True
    prior_floor: float | None = 0.7
    exact_bonus: float = 0.0
    dedup: bool = True
    lexical: LexicalSettings = field(default_factory=LexicalSettings)
    graph: GraphSettings = field(default_factory=GraphSettings)
    conversation: ConversationSettings | None = field(default_factory=ConversationSettings)
    fusion: Fusion = "rrf"
    regime_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rerank: str | None = None
    rerank_depth: int = 30
    headroom: int = 0

    def __post_init__(self) -> None:
        for name in ("weights", "rank_constants", "depths", "timeouts", "reserve", "regime_weights"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))

    @property
    def legs(self) -> tuple[str, ...]:
        """Names of the legs that are called: weight above 0 and depth above 0."""
        return tuple(leg for leg, w in self.weights.items() if w > 0 and self.depths.get(leg, 100) > 0)

    @property
    def regimes(self) -> tuple[str, ...]:
        """Names of the regimes, ``("any",)`` when no rank constant depends on the question."""
        names = {r for leg in self.legs if isinstance(c := self.rank_constants[leg], Mapping) for r in c}
        return tuple(sorted(names)) or ("any",)

    def constants(self, regime: str = "any") -> dict[str, float]:
        """Return the rank constant of every called leg in ``regime``."""
        out: dict[str, float] = {}
        for leg in self.legs:
            constant = self.rank_constants[leg]
            out[leg] = constant[regime] if isinstance(constant, Mapping) else constant
        return out

    def floor(self, regime: str = "any") -> float:
        """Return the factor of a memory of importance 0 in ``regime``, that of the bounded prior if none is set."""
        if self.prior_floor is not None:
            return self.prior_floor
        return 1 - 0.5 / (max(self.constants(regime).values()) + 2)

    def weights_in(self, regime: str = "any") -> dict[str, float]:
        """Return the weight of every called leg in ``regime``."""
        own = self.regime_weights.get(regime, {})
        return {leg: own.get(leg, self.weights[leg]) for leg in self.legs}

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

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        r.name: r
        for r in (
            # Every leg is steep, so that its first places speak and its tail does not; see adr/0026.
            Recipe(
                "default",
                {"lexical": 0.1, "dense": 0.35, "graph": 0.35},
                {"lexical": 4.0, "dense": 8.0, "graph": {"named": 0.0, "unnamed": 8.0}},
                reserve={"agreed": 1, **_RESERVE},
                prior_floor=None,
                graph=GraphSettings(lone_names="leading"),
                conversation=ConversationSettings(dialogue=True, before_asked=0.3),
            ),
            # The default of semmem 0.1 as it was measured first: the records that cite it can be measured again.
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


def recipe(name: str | Recipe = "default", /, **changes: Unpack[RecipeChanges]) -> Recipe:
    """Return the recipe ``name``, or a variant of it.

    Mappings (``weights``, ``rank_constants``, ``depths``, ``timeouts``) are merged over those of the recipe;
    ``reserve`` replaces it whole (``reserve={}`` switches it off). ``lexical``, ``graph`` and ``conversation`` take a
    mapping of their own fields; ``conversation=None`` switches its rules off. A weight of 0 switches a leg off.

    Raises UnknownRecipe for a name that is not in ``RECIPES`` and InvalidInput for a setting that does not exist
    or is out of range.
    """
    if isinstance(name, Recipe):
        base = name
    elif isinstance(name, str) and name in RECIPES:
        base = RECIPES[name]
    else:
        raise UnknownRecipe(f"There is no recipe named {name!r}; choose one of {', '.join(sorted(RECIPES))}.")
    given: dict[str, Any] = {**changes}
    if not given:
        if isinstance(name, Recipe):
            check(base)
        return base
    known = {f.name for f in dataclasses.fields(Recipe)}
    if unknown := sorted(set(given) - known):
        raise InvalidInput(f"A recipe has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}.")
    by_regime = given.get("regime_weights", {})
    if not isinstance(by_regime, Mapping) or not all(isinstance(weights, Mapping) for weights in by_regime.values()):
        raise InvalidInput('regime_weights must map a regime to weights, such as {"named": {"graph": 1}}.')
    for key in ("weights", "rank_constants", "depths", "timeouts", "reserve"):
        if key in given:
            if not isinstance(given[key], Mapping):
                raise InvalidInput(f'{key} must be a mapping from a leg to a number, such as {{"graph": 1}}.')
            if key != "reserve":
                given[key] = {**getattr(base, key), **given[key]}
    kinds = {"lexical": LexicalSettings, "graph": GraphSettings, "conversation": ConversationSettings | None}
    for key, kind in kinds.items():
        if key in given and not isinstance(given[key], Mapping | kind):
            raise InvalidInput(f"{key} must be a mapping of its settings, not {given[key]!r}.")
        if isinstance(given.get(key), Mapping):
            settings = rules(base) if key == "conversation" else getattr(base, key)
            known = {f.name for f in dataclasses.fields(settings)}
            if unknown := sorted(set(given[key]) - known):
                raise InvalidInput(f"{key} has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}.")
            given[key] = dataclasses.replace(settings, **given[key])
    changed = dataclasses.replace(base, **given)
    check(changed)
    return changed


def rules(recipe: Recipe) -> ConversationSettings:
    """Return the rules for conversation of ``recipe``, and where they are off those of the recipe of that name."""
    named = RECIPES.get(recipe.name, RECIPES["default"])
    return recipe.conversation or named.conversation or ConversationSettings()


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
    if recipe.prior_floor is not None:
        _number("prior_floor", recipe.prior_floor, 0, 1)
    _choice("fusion", recipe.fusion, get_args(Fusion))
    if recipe.rerank is not None:
        reranker_parts(recipe.rerank)
    _number("rerank_depth", recipe.rerank_depth, 1, 1_000, whole=True)
    _number("headroom", recipe.headroom, 0, 10, whole=True)
    _number("exact_bonus", recipe.exact_bonus, 0, 10)
    _number("lexical k1", recipe.lexical.k1, 0, 100)
    _number("lexical b", recipe.lexical.b, 0, 1)
    _choice("lexical match", recipe.lexical.match, ("any", "all", "auto"))
    for name, default in dataclasses.asdict(GraphSettings()).items():
        value = getattr(recipe.graph, name)
        if name == "walk":
            _choice("graph walk", value, ("gated", "pagerank"))
        elif name == "lone_names":
            _choice("graph lone_names", value, ("always", "leading", "never"))
        elif name == "alpha":
            _number("graph alpha", value, 0, 1)
            if value == 1:
                raise InvalidInput("graph alpha must be below 1: a walk that never restarts forgets the question.")
        elif isinstance(default, bool):
            _choice(f"graph {name}", value, (True, False))
        elif isinstance(default, int | float):
            _number(f"graph {name}", value, 0, 10_000, whole=isinstance(default, int))
        elif isinstance(default, tuple) and not (isinstance(value, tuple) and all(isinstance(v, str) for v in value)):
            raise InvalidInput(f"graph {name} must be a tuple of names, not {value!r}.")
    for name, default in dataclasses.asdict(ConversationSettings()).items() if recipe.conversation else ():
        value = getattr(recipe.conversation, name)
        if isinstance(default, bool):
            _choice(f"conversation {name}", value, (True, False))
        else:
            _number(f"conversation {name}", value, 0, 100)
    if not recipe.legs:
        raise InvalidInput("A recipe needs at least one leg with a weight and a depth above 0.")
    for leg in recipe.legs:
        if leg not in recipe.rank_constants:
            meant = difflib.get_close_matches(leg, recipe.rank_constants, 1, 0.7)
            hint = f" Did you mean {meant[0]}?" if meant else ""
            raise InvalidInput(
                f"The leg {leg} has a weight but no rank constant; pass rank_constants={{{leg!r}: 60}}.{hint}"
            )
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
