"""The hits of one recall and how they came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as brief
from typing import Any

from semmem.model.recipe import Recipe
from semmem.model.reports import LeftOut
from semmem.model.store import Store
from semmem.model.types import Hit
from semmem.rank_cap import reach_in
from semmem.rank_cap.report import Reach
from semmem.read.candidates import Candidates, Cut
from semmem.read.explanation import Explanation, explain
from semmem.read.steps import lists

__all__ = ["Recall"]


@dataclass(frozen=True)
class Recall(Sequence[Hit]):
    """The hits of one question, best first, and how they came about.

    ``total`` counts the memories any leg matched, and what stands there for superseding one of them
    (``total_is_exact`` when no leg was cut at its depth); ``degraded`` maps a leg that could not answer to the reason;
    ``regime`` is the question's; ``timings`` are seconds. ``settings`` are those of the namespace that changed the
    recipe.

    ``confidence`` in [0, 1] says how sure it is that something here answers the question: a curve over the lexical
    leg's share of the best BM25 possible and the dense leg's cosine, fitted on questions that are answered and such
    that are not, half and half (semmem.read.candidates). It compares across questions, which scores do not. A question
    about something else is told well, one that is nearly answered hardly: adr/0038 has the numbers. ``withheld`` is how
    many hits a recall with a ``min_confidence`` above its confidence has not returned, and ``left_out`` are those that
    a ``token_budget`` had no place for. ``id`` is that of the log of recalls, None where none is kept.
    """

    hits: tuple[Hit, ...]
    total: int
    total_is_exact: bool
    degraded: Mapping[str, str]
    regime: str
    timings: Mapping[str, float]
    confidence: float
    candidates: Candidates = field(repr=False)
    _store: Store = field(repr=False)
    cut: Cut = field(default_factory=Cut)
    settings: Mapping[str, Any] = field(default_factory=dict)
    min_confidence: float = 0.0
    withheld: int = 0
    _language: str = field(default="english", repr=False)
    left_out: tuple[LeftOut, ...] = ()
    id: str | None = None

    def __repr__(self) -> str:
        first = ", ".join(f"{brief(hit.id)} {hit.score:.3f}" for hit in self.hits[:3])
        more = ", …" if len(self.hits) > 3 else ""
        said = [f"confidence {self.confidence:.2f}"]
        if self.withheld:
            said.append(f"{self.withheld} withheld below {self.min_confidence:g}")
        if self.left_out:
            said.append(f"{len(self.left_out)} left out of {self.token_budget} tokens")
        if self.degraded:
            said.append(f"degraded: {', '.join(sorted(self.degraded))}"[:80])
        shown = f": {first}{more}" if first else ""
        return f"Recall({len(self.hits)} of {self.total}{shown}; {', '.join(said)})"

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: Any) -> Any:
        return self.hits[index]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def limit(self) -> int:
        """The most hits this recall was to return."""
        return self.cut.limit

    @property
    def offset(self) -> int:
        """How many hits this recall was to pass over."""
        return self.cut.offset

    @property
    def token_budget(self) -> int | None:
        """The tokens that the hits of this recall were to have at most; None: any number."""
        return self.cut.token_budget

    @property
    def recipe(self) -> Recipe:
        """The recipe that answered: with the settings of the namespace, and as deep as the limit needed."""
        return self.candidates.recipe

    @property
    def reach(self) -> Reach:
        """What each leg could bring into these hits, in every regime; nothing is assumed, the lists are known.

        Lists as long as those that the legs returned, folding as they do, with their importances, in this order and on
        this page. Of a leg that is boost-only or unreachable no hit is that it alone found; what the first
        ``guaranteed_ranks`` of a leg are is a hit, or a duplicate of one. ``k`` is the last place of the page.
        """
        found = lists(self.candidates, self.cut, withheld=bool(self.withheld))
        return reach_in(self.candidates.recipe, found, self.offset + self.limit, scope_size=self.candidates.scope.size)

    def explain(self, id: str, namespace: str | None = None) -> Explanation:
        """Say why the memory ``id`` is where it is, or what would let it in.

        ``namespace`` is needed where several namespaces of this recall have that id. Raises NotFound, InvalidInput.
        """
        why = explain(self.candidates, self.cut, id, self._store, namespace, self._language)
        if self.withheld and why.returned:
            return replace(why, returned=False, withheld_below=self.min_confidence)
        if any((one.id, one.namespace) == (why.id, why.namespace) for one in self.left_out):
            return replace(why, returned=False, over_budget=self.token_budget)
        return why

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
            "id": self.id,
            "hits": [hit.as_dict() for hit in self.hits],
            "total": self.total,
            "total_is_exact": self.total_is_exact,
            "limit": self.limit,
            "offset": self.offset,
            "degraded": dict(self.degraded),
            "regime": self.regime,
            "confidence": self.confidence,
            "min_confidence": self.min_confidence,
            "withheld": self.withheld,
            "token_budget": self.token_budget,
            "left_out": [one.as_dict() for one in self.left_out],
            "timings": dict(self.timings),
            "recipe": self.candidates.recipe.name,
            "settings": dict(self.settings),
        }
