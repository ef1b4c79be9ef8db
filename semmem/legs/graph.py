"""The graph leg: from what the question names and what the other legs found, over concepts, to what belongs with it.

Reads the edges of a few dozen memories, never the whole graph. A question that names nothing, in a store where the other
legs found nothing, has nowhere to start: the leg is empty, and that is normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from semmem.errors import SemmemError
from semmem.extractors.rules import NAME_WEIGHT, QuestionConcepts, question, title_is_name
from semmem.protocols import Postings, Question, Ranking, Scope
from semmem.proximity import Edges, Mass, combine, edges, gate, hop, idf, personalised_pagerank, strongest
from semmem.types import GraphSettings, Kind, Recipe

__all__ = ["Graph", "Trace"]

_TARGETS = 300
"""Targets of a hop that are gated; the others carry too little mass to matter (measured: no change)."""
_COMMON = 5
"""A single word in lower case links to a subject only when at most this many memories mention it."""
_HEADROOM = 50
NAMED, UNNAMED = "named", "unnamed"


@dataclass(slots=True)
class Trace:
    """How a walk came about, for explain: subject links and concepts of the question, restart, and each hop's edges."""

    linked: dict[int, list[int]] = field(default_factory=dict)
    concepts: dict[int, list[int]] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    seeds: dict[int, str] = field(default_factory=dict)
    restart: Mass = field(default_factory=dict)
    hops: list[Edges] = field(default_factory=list)
    reason: str = ""


class Graph:
    """The gated walk (default) or pure personalised PageRank over the same edges (``GraphSettings.walk``)."""

    name = "graph"

    def __init__(self, store: Any, language: str = "english") -> None:
        self._store = store
        self._language = language

    def search(self, asked: Question, scope: Scope, recipe: Recipe) -> Ranking:
        """Return the memories the walk reaches within scope; it may pass through memories outside it.

        ``regime`` is "named" when the question names something the graph knows, else "unnamed".
        """
        import numpy as np

        concepts = question(asked.text, self._language)
        trace = Trace()
        scores: Mass = {}
        named = False
        for namespace in scope.namespaces:
            found, is_named = self._walk(
                namespace, asked, concepts, recipe.graph, trace, several=len(scope.namespaces) > 1
            )
            scores |= found
            named = named or is_named
        ords = np.array(sorted(scores), dtype=np.int64)
        inside = scope.admits(ords)
        admitted = {o: scores[o] for o in ords[inside].tolist()}
        best = strongest(admitted, recipe.depths.get(self.name, 100) + _HEADROOM)
        return Ranking(
            tuple(best),
            tuple(admitted[o] for o in best),
            len(admitted),
            regime=NAMED if named else UNNAMED,
            trace=trace,
        )

    def _walk(
        self,
        namespace: str,
        asked: Question,
        concepts: QuestionConcepts,
        settings: GraphSettings,
        trace: Trace,
        *,
        several: bool,
    ) -> tuple[Mass, bool]:
        subjects, named = self._subjects(namespace, concepts, trace)
        shared, span_named = self._concepts(namespace, concepts, subjects, settings, trace)
        seeds: Mass = {}
        for leg, ranking in sorted(asked.heads.items()):
            for rank, ord in enumerate(ranking.ords[: settings.seeds], 1):
                seeds[ord] = seeds.get(ord, 0.0) + 1.0 / (1 + rank)
                trace.seeds.setdefault(ord, f"{leg} rank {rank}")
        if seeds and several:
            ours = self._store.heads([namespace], list(seeds))
            seeds = {o: m for o, m in seeds.items() if o in ours}
        restart, score = combine(
            [
                (subjects, settings.subject_share, 1.0),
                (shared, settings.concept_share, 1.0),
                (seeds, settings.seed_share, 0.5),
            ]
        )
        trace.restart |= restart
        if not restart:
            return {}, named or span_named
        if settings.walk == "pagerank":
            result = self._pagerank(namespace, restart, settings, trace)
        else:
            result = self._gated(namespace, asked, restart, score, settings, trace)
        return result, named or span_named

    def _subjects(self, namespace: str, concepts: QuestionConcepts, trace: Trace) -> tuple[Mass, bool]:
        """Link the names of the question to memories about them: longest first from left to right, any case."""
        postings: Postings = self._store.postings([namespace], {n.key for n in concepts.names})[namespace]
        mass: Mass = {}
        taken: set[int] = set()
        for name in sorted(concepts.names, key=lambda n: (n.first, -n.size)):
            places = set(range(name.first, name.past))
            entries = postings.by_key.get(name.key)
            if entries is None or places & taken:
                continue
            about = entries[entries["subject"] > 0]
            df = int((entries["mention"] > 0).sum())
            if not len(about):
                continue
            taken |= places
            if name.size == 1 and not name.capitalised and df > _COMMON:
                continue
            rarity = float(idf(postings.memories, df))
            for ord, weight in zip(about["ord"].tolist(), about["subject"].tolist(), strict=True):
                mass[ord] = max(mass.get(ord, 0.0), weight / 100 * rarity)
                trace.linked.setdefault(ord, []).append(name.key)
            trace.labels[name.key] = name.label
        titles = self._store.titles([namespace], list(mass)) if mass else {}
        return mass, any(title and title_is_name(title) for title in titles.values())

    def _concepts(
        self, namespace: str, concepts: QuestionConcepts, subjects: Mass, settings: GraphSettings, trace: Trace
    ) -> tuple[Mass, bool]:
        """Spread mass from the question's own concepts to the memories that mention them."""
        weights = dict(zip(concepts.keys, concepts.weights, strict=True))
        labels = dict(zip(concepts.keys, concepts.labels, strict=True))
        for name in concepts.names:
            if name.capitalised and name.key not in weights and any(name.key in keys for keys in trace.linked.values()):
                weights[name.key], labels[name.key] = NAME_WEIGHT, name.label
        postings: Postings = self._store.postings([namespace], weights, max_df=settings.max_df)[namespace]
        mass: Mass = {}
        named = False
        spans = {span.key for span in concepts.spans}
        for key, entries in sorted(postings.by_key.items()):
            mentions = entries[entries["mention"] > 0]
            if not len(mentions):
                continue
            named = named or key in spans
            load = weights[key] * float(idf(postings.memories, len(mentions))) / float(mentions["mention"].sum())
            for ord, mention in zip(mentions["ord"].tolist(), mentions["mention"].tolist(), strict=True):
                mass[ord] = mass.get(ord, 0.0) + load * mention
                trace.concepts.setdefault(ord, []).append(key)
            trace.labels[key] = labels[key]
        return mass, named

    def _gated(
        self, namespace: str, asked: Question, restart: Mass, score: Mass, settings: GraphSettings, trace: Trace
    ) -> Mass:
        total = {ord: 0.5 * mass for ord, mass in score.items()}
        mass = restart
        for number in range(settings.hops):
            beam = {o: mass[o] for o in strongest(mass, settings.beam, self._names(namespace))}
            arrived, carried = hop(beam, *self._edges(namespace, beam, settings), settings.neighbour)
            trace.hops.append(carried)
            kept = {o: arrived[o] for o in strongest(arrived, _TARGETS, self._names(namespace))}
            mass = {o: settings.decay * m for o, m in self._gate(namespace, asked, kept, settings).items()}
            factor = 0.5 if number == 0 and settings.hops > 1 else 1.0
            for ord, value in mass.items():
                total[ord] = total.get(ord, 0.0) + factor * value
        return total

    def _pagerank(self, namespace: str, restart: Mass, settings: GraphSettings, trace: Trace) -> Mass:
        beam = {o: restart[o] for o in strongest(restart, settings.beam, self._names(namespace))}
        along, neighbours = self._edges(namespace, beam, settings)
        _, carried = hop(beam, along, neighbours, settings.neighbour)
        trace.hops.append(carried)
        return personalised_pagerank(restart, hop(dict.fromkeys(beam, 1.0), along, neighbours, settings.neighbour)[1])

    def _edges(
        self, namespace: str, beam: Mass, settings: GraphSettings
    ) -> tuple[Edges, Mapping[int, tuple[int | None, int | None]]]:
        forwards = self._store.forwards([namespace], list(beam))
        keys: set[int] = set()
        for entries in forwards.values():
            keys.update(entries["key"][entries["mention"] > 0].tolist())
        postings = self._store.postings([namespace], keys, max_df=settings.max_df)[namespace]
        along = edges(
            {o: e[(e["kind"] != Kind.TERM)] for o, e in forwards.items()},
            postings.by_key,
            postings.memories,
            about=settings.about,
            co_mention=settings.co_mention,
            fan=settings.fan,
            max_df=settings.max_df,
        )
        neighbours = self._store.neighbours([namespace], list(beam)) if settings.neighbour > 0 else {}
        return along, neighbours

    def _gate(self, namespace: str, asked: Question, mass: Mass, settings: GraphSettings) -> Mass:
        if settings.gate <= 0 or asked.vector is None or not mass:
            return mass
        try:
            vector = asked.vector()
        except SemmemError:
            return mass  # the dense leg reports it; the walk goes on without a gate
        return gate(mass, self._store.similarities([namespace], list(mass), vector), settings.gate)

    def _names(self, namespace: str) -> Any:
        def names(ords: list[int]) -> Mapping[int, tuple[Any, ...]]:
            return {o: (h.created_at, h.id, h.part) for o, h in self._store.heads([namespace], ords).items()}

        return names
