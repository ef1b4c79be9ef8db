"""The graph leg in a recall of an earlier time: it walks over what is stored today."""

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
    """The graph leg without earlier versions: no walk starts at one, and none finds one."""

    name = "graph"

    def __init__(self, graph: Graph, earlier: Collection[int]) -> None:
        self._graph = graph
        self._earlier = frozenset(local(ord) for ord in earlier)
        self.reads_vector = graph.reads_vector

    def prepare(self, question: Question, scope: Scope, recipe: Recipe) -> Any:
        """Look up the names in the question; see Graph."""
        return self._graph.prepare(question, scope, recipe)

    def search(self, question: Question, scope: Scope, recipe: Recipe, **prepared: Any) -> Ranking:
        """Return the memories of today that the walk reaches; report as degraded that it sees no earlier versions."""
        each = {n: self._without(one) for n, one in question.narrowed.items()}
        todays_question = replace(self._without(question), narrowed=each)
        ranking = self._graph.search(todays_question, scope, recipe, **prepared)
        return replace(ranking, degraded={**ranking.degraded, "as_of": _WHY}) if self._earlier else ranking

    def _without(self, question: Question) -> Question:
        heads = {leg: self._rest(ranking) for leg, ranking in question.heads.items()}
        return replace(question, heads=heads)

    def _rest(self, ranking: Ranking) -> Ranking:
        pairs = [pair for pair in zip(ranking.ords, ranking.scores, strict=True) if local(pair[0]) not in self._earlier]
        return replace(ranking, ords=tuple(ord for ord, _ in pairs), scores=tuple(score for _, score in pairs))
