"""The graph leg: from what the question names and what the other legs found, over concepts, to what belongs with it.

Reads the edges of a few dozen memories, never the whole graph. A question that names nothing, in a store where the other
legs found nothing, has nowhere to start: the leg is empty, and that is normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.errors import SemmemError
from semmem.extractors.rules import NAME_WEIGHT, QuestionConcepts, question, title_is_name
from semmem.protocols import Postings, Question, Ranking, Scope
from semmem.proximity import Edges, Mass, combine, edges, gate, gather, hop, idf, personalised_pagerank, starting_at, strongest
from semmem.types import GraphSettings, Recipe

__all__ = ["Graph", "Trace"]

_COMMON = 5
"""A single word in lower case links to a subject only when at most this many memories mention it."""
_HEADROOM = 50
WEIGHT_UNIT = 100
"""Weights of entries are hundredths."""
NAMED, UNNAMED = "named", "unnamed"


@dataclass(slots=True)
class Trace:
    """How a walk came about, for explain: subject links and concepts of the question, restart, and each hop's edges."""

    linked: dict[int, list[int]] = field(default_factory=dict)
    concepts: dict[int, list[int]] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    seeds: dict[int, str] = field(default_factory=dict)
    restart: dict[int, float] = field(default_factory=dict)
    hops: list[Edges] = field(default_factory=list)
    reason: str = ""


@dataclass(slots=True)
class _Walked:
    """The memories whose edges one walk has read, and the edges."""

    ords: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    edges: list[Edges] = field(default_factory=list)
    neighbours: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)


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
        concepts = question(asked.text, self._language)
        trace = Trace()
        found = []
        named = False
        for namespace in scope.namespaces:
            mass, is_named = self._walk(namespace, asked, concepts, recipe.graph, trace, len(scope.namespaces) > 1)
            found.append(mass)
            named = named or is_named
        scores = gather(np.concatenate([m.ords for m in found]), np.concatenate([m.values for m in found]))
        inside = scope.admits(scores.ords)
        admitted = Mass(scores.ords[inside], scores.values[inside])
        best = strongest(admitted, recipe.depths.get(self.name, 100) + _HEADROOM)
        return Ranking(
            tuple(best.tolist()),
            tuple(admitted.at(best).tolist()),
            int((admitted.values > 0).sum()),
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
        several: bool,
    ) -> tuple[Mass, bool]:
        subjects, named = self._subjects(namespace, concepts, trace)
        shared, span_named = self._concepts(namespace, concepts, settings, trace)
        restart, score = combine(
            [
                (subjects, settings.subject_share, 1.0),
                (shared, settings.concept_share, 1.0),
                (self._seeds(namespace, asked, settings, trace, several), settings.seed_share, 0.5),
            ]
        )
        trace.restart |= restart.as_dict()
        if not len(restart):
            return restart, named or span_named
        walk = self._pagerank if settings.walk == "pagerank" else self._gated
        return walk(namespace, asked, restart, score, settings, trace), named or span_named

    def _seeds(
        self, namespace: str, asked: Question, settings: GraphSettings, trace: Trace, several: bool
    ) -> Mass:
        """Return mass on the heads of the other legs, 1 / (1 + rank) each; only those that live in ``namespace``."""
        placed = [
            (ord, 1.0 / (1 + rank), f"{leg} rank {rank}")
            for leg, ranking in sorted(asked.heads.items())
            for rank, ord in enumerate(ranking.ords[: settings.seeds], 1)
        ]
        if several and placed:
            ours = self._store.heads([namespace], [o for o, _, _ in placed])
            placed = [p for p in placed if p[0] in ours]
        for ord, _, where in placed:
            trace.seeds.setdefault(ord, where)
        return gather([o for o, _, _ in placed], [m for _, m, _ in placed])

    def _subjects(self, namespace: str, concepts: QuestionConcepts, trace: Trace) -> tuple[Mass, bool]:
        """Link the names of the question to memories about them: longest first from left to right, any case."""
        postings: Postings = self._store.postings([namespace], {n.key for n in concepts.names})[namespace]
        by_key = dict(postings.items())
        mass: dict[int, float] = {}
        taken: set[int] = set()
        for name in sorted(concepts.names, key=lambda n: (n.first, -n.size)):
            entries = by_key.get(name.key)
            if entries is None or not taken.isdisjoint(range(name.first, name.past)):
                continue
            about = entries[entries["subject"] > 0]
            if not len(about):
                continue
            taken.update(range(name.first, name.past))
            df = int((entries["mention"] > 0).sum())
            if name.size == 1 and not name.capitalised and df > _COMMON:
                continue
            rarity = float(idf(postings.memories, df)) / WEIGHT_UNIT
            for ord, weight in zip(about["ord"].tolist(), about["subject"].tolist(), strict=True):
                mass[ord] = max(mass.get(ord, 0.0), weight * rarity)
                trace.linked.setdefault(ord, []).append(name.key)
            trace.labels[name.key] = name.label
        titles = self._store.titles([namespace], list(mass)) if mass else {}
        named = any(title and title_is_name(title, language=self._language) for title in titles.values())
        return gather(list(mass), list(mass.values())), named

    def _concepts(
        self, namespace: str, concepts: QuestionConcepts, settings: GraphSettings, trace: Trace
    ) -> tuple[Mass, bool]:
        """Spread mass from the question's own concepts to the memories that mention them."""
        weights = dict(zip(concepts.keys, concepts.weights, strict=True))
        labels = dict(zip(concepts.keys, concepts.labels, strict=True))
        linked = {key for keys in trace.linked.values() for key in keys}
        for name in concepts.names:
            if name.capitalised and name.key not in weights and name.key in linked:
                weights[name.key], labels[name.key] = NAME_WEIGHT, name.label
        postings: Postings = self._store.postings([namespace], weights, max_df=settings.max_df)[namespace]
        spans = {span.key for span in concepts.spans}
        named = False
        ords, values = [], []
        for key, entries in postings.items():
            mentions = entries[entries["mention"] > 0]
            if not len(mentions):
                continue
            named = named or key in spans
            load = weights[key] * float(idf(postings.memories, len(mentions))) / float(mentions["mention"].sum())
            ords += mentions["ord"].tolist()
            values += (mentions["mention"] * load).tolist()
            for ord in mentions["ord"].tolist():
                trace.concepts.setdefault(ord, []).append(key)
            trace.labels[key] = labels[key]
        return gather(ords, values), named

    def _gated(
        self, namespace: str, asked: Question, restart: Mass, score: Mass, settings: GraphSettings, trace: Trace
    ) -> Mass:
        pieces = [score.scaled(0.5)]
        mass = restart
        walked = _Walked()
        for number in range(settings.hops):
            chosen = strongest(mass, settings.beam, self._names(namespace))
            beam = gather(chosen, mass.at(chosen))
            arrived, carried = hop(beam, *self._edges(namespace, beam, settings, walked), settings.neighbour)
            trace.hops.append(carried)
            kept = strongest(arrived, settings.targets, self._names(namespace))
            pruned = gather(kept, arrived.at(kept))
            mass = self._gate(namespace, asked, pruned, settings).scaled(settings.decay)
            pieces.append(mass.scaled(0.5 if number == 0 and settings.hops > 1 else 1.0))
            if not len(mass):
                break
        return gather(np.concatenate([p.ords for p in pieces]), np.concatenate([p.values for p in pieces]))

    def _pagerank(
        self, namespace: str, asked: Question, restart: Mass, score: Mass, settings: GraphSettings, trace: Trace
    ) -> Mass:
        """Pure personalised PageRank over the edges of the restart's heaviest memories."""
        chosen = strongest(restart, settings.beam, self._names(namespace))
        beam = gather(chosen, restart.at(chosen))
        along, neighbours = self._edges(namespace, beam, settings, _Walked())
        trace.hops.append(hop(beam, along, neighbours, settings.neighbour)[1])
        _, plain = hop(Mass(beam.ords, np.ones(len(beam))), along, neighbours, settings.neighbour)
        return personalised_pagerank(restart, plain)

    def _edges(
        self, namespace: str, beam: Mass, settings: GraphSettings, walked: _Walked
    ) -> tuple[Edges, Mapping[int, tuple[int | None, int | None]]]:
        """Return the edges of the beam's memories; those of an earlier hop are not read again."""
        new = np.setdiff1d(beam.ords, walked.ords)
        if len(new):
            forwards = self._store.forwards([namespace], new)
            keys = np.unique(forwards.entries["key"][forwards.entries["mention"] > 0])
            postings = self._store.postings([namespace], keys, max_df=settings.max_df, shared=True)[namespace]
            walked.edges.append(
                edges(
                    forwards,
                    postings,
                    about=settings.about,
                    co_mention=settings.co_mention,
                    fan=settings.fan,
                    max_df=settings.max_df,
                )
            )
            walked.ords = np.union1d(walked.ords, new)
            if settings.neighbour > 0:
                walked.neighbours |= self._store.neighbours([namespace], new)
        return starting_at(beam.ords, walked.edges), walked.neighbours

    def _gate(self, namespace: str, asked: Question, mass: Mass, settings: GraphSettings) -> Mass:
        if settings.gate <= 0 or asked.vector is None or not len(mass):
            return mass
        try:
            vector = asked.vector()
        except SemmemError:
            return mass  # the dense leg reports it; the walk goes on without a gate
        return gate(mass, self._store.similarities([namespace], mass.ords, vector), settings.gate)

    def _names(self, namespace: str) -> Any:
        def names(ords: list[int]) -> Mapping[int, tuple[Any, ...]]:
            return {o: (h.created_at, h.id, h.part) for o, h in self._store.heads([namespace], ords).items()}

        return names
