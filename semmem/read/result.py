"""The hits of one recall and how they came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as brief
from typing import Any

from semmem.model.recipe import Recipe
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

    ``total`` counts the memories any leg matched (``total_is_exact`` when no leg was cut at its depth); ``degraded``
    maps a leg that could not answer to the reason; ``regime`` is the question's; ``timings`` are seconds. ``settings``
    are those of the namespace that changed the recipe.

    ``confidence`` in [0, 1] says how well the best finds match the question by themselves: the mean of the lexical
    leg's share of the best BM25 possible and of the dense leg's cosine. It compares across questions of one store and
    embedder, which scores do not. It is no probability that the answer is there: it is not calibrated, and a question
    about something else still gets some. ``withheld`` is how many hits a recall with a ``min_confidence`` above its
    confidence has not returned.
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

    def __repr__(self) -> str:
        first = ", ".join(f"{brief(hit.id)} {hit.score:.3f}" for hit in self.hits[:3])
        more = ", …" if len(self.hits) > 3 else ""
        said = [f"confidence {self.confidence:.2f}"]
        if self.withheld:
            said.append(f"{self.withheld} withheld below {self.min_confidence:g}")
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
        if not (self.withheld and why.returned):
            return why
        return replace(why, returned=False, withheld_below=self.min_confidence)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
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
            "timings": dict(self.timings),
            "recipe": self.candidates.recipe.name,
            "settings": dict(self.settings),
        }
