"""Answer the simple search contract with a whole recall or with one leg: ``search(query, …) -> (results, total)``.

For code that measures or combines searches and should not depend on which kind it has; see semmem.model.search.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from semmem.model.errors import InvalidInput, LegFailed
from semmem.model.filters import Within, string
from semmem.model.keywords import FilterValues
from semmem.model.recipe import Recipe
from semmem.model.search import Found, as_result
from semmem.model.types import Filters
from semmem.read.result import Recall

__all__ = ["RecallSearch", "alone", "search_of"]

_SEEDERS = ("lexical", "dense")
"""The legs whose results the graph leg starts from."""


class RecallSearch:
    """A search by recalls: of one leg, or of the recipe; see semmem.model.search."""

    def __init__(
        self, name: str, recall: Callable[..., Recall], namespaces: Sequence[str], recipe: Recipe, *, single: bool
    ) -> None:
        self.name = name
        self.recipe = recipe
        self._recall = recall
        self._namespaces = tuple(namespaces)
        self._single = single

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: Within | Filters | FilterValues | Mapping[str, Any] | None = None,
    ) -> Found:
        """Return the results from ``offset`` to ``offset + limit``, best first, and the number of matching memories.

        The ``components`` of a whole recall sum to the score. A single leg has no components, and its scores are
        divided by the score of its first memory. ``Within`` may name other namespaces and ids to leave out. Raises
        InvalidInput for a bad argument, and LegFailed where the single leg cannot answer.
        """
        chosen: dict[str, Any] = {"namespace": self._namespaces, "filters": filters}
        if isinstance(filters, Within):
            own = {name: getattr(filters, name) for name in Filters.__dataclass_fields__}
            chosen = {"namespace": filters.namespaces, "filters": Filters(**own), "exclude": filters.exclude}
        if not self._single:
            recall = self._recall(query, limit=limit, offset=offset, **chosen)  # settings of the namespace apply
            return [as_result(hit) for hit in recall], recall.total
        recall = self._recall(query, limit=limit, offset=offset, recipe=self.recipe, **chosen)
        if self.name in recall.degraded:
            raise LegFailed(f"The leg {self.name} could not answer: {recall.degraded[self.name]}")
        raw = recall.candidates.raw.get(self.name, ())
        best = max(raw[0], 0.0) if raw else 0.0
        scores = [max(hit.legs[self.name].score, 0.0) / best if best > 0 else 0.0 for hit in recall]
        return [as_result(hit, score=min(1.0, s)) for hit, s in zip(recall, scores, strict=True)], recall.total


def search_of(
    name: str | None, recall: Callable[..., Recall], namespaces: Sequence[str], recipe: Recipe, names: Collection[str]
) -> RecallSearch:
    """Return the leg ``name`` as a search, or the whole recall for None. Raises InvalidInput for an unknown name."""
    if name is None:
        return RecallSearch("recall", recall, namespaces, recipe, single=False)
    if string("name", name) not in names:
        raise InvalidInput(f"There is no leg named {name!r}; choose one of {', '.join(names)}.")
    return RecallSearch(name, recall, namespaces, alone(recipe, name), single=True)


def alone(recipe: Recipe, leg: str) -> Recipe:
    """Return ``recipe`` reduced to ``leg`` in its own order: without prior, bonus, reserve, folding and reranker."""
    graph = replace(recipe.graph, seeders=tuple(s for s in _SEEDERS if s in recipe.legs) or recipe.graph.seeders)
    constant = recipe.rank_constants.get(leg, 60.0)
    return replace(
        recipe,
        name=leg,
        weights={leg: 1.0},
        rank_constants={leg: constant},
        regime_weights={},
        reserve={},
        regime_reserve={},
        prior=False,
        recency_half_life=None,
        period_floor=None,
        exact_bonus=0.0,
        dedup=False,
        superseding=False,
        fusion="rrf",
        rerank=None,
        graph=graph if leg == "graph" else recipe.graph,
    )
