"""The graph leg in a recall that asks for another time: it walks over what is stored today."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from semmem.legs.graph import Graph
from semmem.model.exchange import Question, Ranking, Scope, local
from semmem.model.recipe import Recipe

__all__ = ["Today"]

_WHY = "The graph leg does not see earlier versions."


class Today:
    """The graph leg without the earlier versions: these neither start a walk nor are found by one."""

    name = "graph"

    def __init__(self, graph: Graph, earlier: Collection[int]) -> None:
        self._graph = graph
        self._earlier = frozenset(local(ord) for ord in earlier)
        self.reads_vector = graph.reads_vector

    def prepare(self, asked: Question, scope: Scope, recipe: Recipe) -> Any:
        """Look up what the question names; see Graph."""
        return self._graph.prepare(asked, scope, recipe)

    def search(self, question: Question, scope: Scope, recipe: Recipe, **prepared: Any) -> Ranking:
        """Return what the walk finds among the memories of today; where there are earlier versions it says so."""
        each = {n: self._without(one) for n, one in question.narrowed.items()}
        asked = replace(self._without(question), narrowed=each)
        found = self._graph.search(asked, scope, recipe, **prepared)
        return replace(found, degraded={**found.degraded, "as_of": _WHY}) if self._earlier else found

    def _without(self, question: Question) -> Question:
        heads = {leg: self._rest(ranking) for leg, ranking in question.heads.items()}
        return replace(question, heads=heads)

    def _rest(self, ranking: Ranking) -> Ranking:
        kept = [pair for pair in zip(ranking.ords, ranking.scores, strict=True) if local(pair[0]) not in self._earlier]
        return replace(ranking, ords=tuple(ord for ord, _ in kept), scores=tuple(score for _, score in kept))
