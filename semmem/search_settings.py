"""How a recall searches: a recipe and the settings of its legs, as frozen dataclasses. No behaviour beyond reading."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

__all__ = ["ConversationSettings", "Fusion", "GraphSettings", "LexicalSettings", "RankConstant", "Recipe"]

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

    ``named_df`` is how many memories must mention a name, unless one is about it, for a question to name something the
    graph knows: from a name that stands in one memory alone no way leads on. ``anchor_share`` is the restart share of
    names that at most ``anchor_df`` memories mention; ``lower_case`` finds known names that a question writes small;
    ``neighbour_own`` is the weight of a neighbour by the same author; ``related`` is the strength of relationships;
    ``other_names`` links a name of the question to a subject that is written another way; ``targets`` bounds what a hop
    carries on; ``stems`` and ``bigrams`` say whether the walk goes over single words and pairs of words, beside names;
    ``alpha`` is the damping of ``walk="pagerank"``, the chance that it goes on and does not restart; ``seeders`` are
    legs that are asked for seeds although they have no vote of their own (recipe ``graph``).
    """

    seeds: int = 10
    subject_share: float = 1.0
    concept_share: float = 0.25
    anchor_share: float = 1.0
    anchor_df: int = 5
    named_df: int = 2
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

    dialogue: bool = True
    author_lexical: float = 1.6
    author_dense: float = 0.1
    previous: float = 0.3
    asked: float = 0.5
    before: float = 0.1
    before_asked: float = 0.3
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
