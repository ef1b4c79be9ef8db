"""The graph leg: walk over concepts from the memories that the question names and that other legs found.

It reads the edges of a few dozen memories, never the whole graph. Where the question names nothing and the other legs
found nothing, the walk has no start; the list is then empty, which is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semmem.concepts.rules import question as question_concepts
from semmem.legs.dense import products
from semmem.legs.graph_linking import Links, WalkTrace, link
from semmem.legs.graph_names import Names, mentioned, recognised
from semmem.legs.graph_walk import (
    Edges,
    Mass,
    among,
    combine,
    edges,
    gate,
    gather,
    hop,
    link_edges,
    personalised_pagerank,
    related_edges,
    starting_at,
    strongest,
)
from semmem.legs.namespaces import standing
from semmem.model.arrays import held, new_runs
from semmem.model.errors import SemmemError
from semmem.model.exchange import Corrections, Forwards, Kind, Postings, Question, Ranking, local, placed
from semmem.model.protocols import Leg
from semmem.model.recipe import GraphSettings, Recipe
from semmem.model.store import Snapshot

__all__ = [
    "Graph",
]

_MOST_TIES = 2_000
"""Relationships read for one hop."""
_TIES_CUT = f"what was found has more than {_MOST_TIES:,} relationships, so the walk went over the first of them only"
_NO_VERSIONS = "The graph leg does not see earlier versions."
_NO_CORRECTIONS = Corrections()
_EARLIER, _LAST = 0.5, (1.0, 2.0)
"""Factors of a hop's mass in the score: for an earlier hop, for the last of several, and for the only one."""
NAMED, UNNAMED = "named", "unnamed"

Prepared: TypeAlias = "tuple[Mapping[str, Links], Mapping[str, WalkTrace]]"
"""The links of a question in each namespace, and the trace that the walk continues."""


@dataclass(slots=True)
class _Walked:
    """The memories whose edges one walk has read, their edges, and which of them share a name with other memories."""

    snapshot: Snapshot
    sessions: bool
    names: Names
    linked: bool = False
    row_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    edges: list[Edges] = field(default_factory=list)
    neighbours: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    leading: set[int] = field(default_factory=set)


class Graph(Leg):
    """The gated walk (default) or pure personalised PageRank over the same edges (``GraphSettings.walk``)."""

    name = "graph"
    follows = True
    at_once = True

    def __init__(self, language: str = "english") -> None:
        self._language = language

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        """Return the memories that the walk reaches within scope; it may pass through memories outside the scope.

        Without the result of ``prepare`` in ``question.prepared`` the question is linked now. ``regime`` is "named"
        when the question names something the graph knows, else "unnamed". At an earlier time it walks over the memories
        of today, and says so: no walk starts at an earlier version, and none finds one.
        """
        prepared: Prepared | None = question.prepared
        links, traces = self.prepare(question, snapshot, recipe) if prepared is None else prepared
        snapshot = snapshot.today
        scope = snapshot.scope
        if snapshot.earlier:
            question = _without(question, snapshot.earlier)
        masses = []
        named = False
        for n in scope.namespaces:
            if n not in links:  # empty
                masses.append(gather([], []))
                continue
            names = Names(snapshot, n, links[n].corrections)
            traces[n].labels |= dict(names.corrections.into.values())  # no posting may have their spelling
            walked = _Walked(snapshot, question.within(n).sessions, names, n in scope.linked)
            mass, is_named = self._walk(n, question.within(n), links[n], recipe, traces[n], walked)
            masses.append(mass)
            named = named or is_named
        if len(masses) > 1:
            shares = standing([question.within(n).rankings for n in scope.namespaces])
            masses = [mass.scaled(share) for mass, share in zip(masses, shares, strict=True)]
        trace = WalkTrace.of([traces.get(n, WalkTrace()) for n in scope.namespaces])
        row_ids = np.concatenate([placed(m.row_ids, place) for place, m in enumerate(masses)])
        scores = gather(row_ids, np.concatenate([m.values for m in masses]))
        inside = scope.matches(scores.row_ids)
        matching = Mass(scores.row_ids[inside], scores.values[inside])
        best = strongest(matching, recipe.depths.get(self.name, 100), partial(_names, snapshot, 0))
        degraded = {"relationships": _TIES_CUT} if trace.ties_cut else {}
        return Ranking(
            tuple(best.tolist()),
            tuple(matching.at(best).tolist()),
            int((matching.values > 0).sum()),
            regime=NAMED if named else UNNAMED,
            trace=trace,
            degraded={**degraded, "as_of": _NO_VERSIONS} if snapshot.earlier else degraded,
        )

    def prepare(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Prepared:
        """Link the question in each namespace; this needs no other leg, so it may run beside them."""
        snapshot = snapshot.today
        scope = snapshot.scope
        occupied = scope.occupied()
        traces = {n: WalkTrace() for n in scope.namespaces if n in occupied}
        corrections = scope.corrections or {}
        links = {}
        for n, trace in traces.items():
            one = question.within(n)
            concepts = one.concepts or question_concepts(one.text, self._language)
            names = Names(snapshot, n, corrections.get(n, _NO_CORRECTIONS))
            links[n] = link(snapshot, n, names, concepts, recipe.graph, self._language, trace)
        return links, traces

    def _walk(
        self,
        namespace: str,
        question: Question,
        links: Links,
        recipe: Recipe,
        trace: WalkTrace,
        walked: _Walked,
    ) -> tuple[Mass, bool]:
        conversational, rules = question.conversational, recipe.conversation
        settings = recipe.graph
        if conversational is not None and conversational.collects and rules is not None and rules.collecting:
            settings = replace(settings, neighbour=settings.neighbour * rules.collecting_neighbour)
        restart, score = combine(
            [
                (links.subjects, settings.subject_share, 1.0),
                (links.concepts, settings.concept_share, 1.0),
                (links.anchors, settings.anchor_share, 1.0),
                (self._seeds(question, settings, trace), settings.seed_share, 0.5),
            ]
        )
        trace.restart |= restart.as_dict()
        named = links.named or (settings.lone_names == "always" and bool(links.singleton))
        if not len(restart):
            return restart, named
        walk = self._pagerank if settings.walk == "pagerank" else self._gated
        scores = walk(namespace, question, restart, score, settings, trace, walked)
        if settings.lone_names == "leading":
            named = named or not links.singleton.isdisjoint(walked.leading)
        if (
            conversational is not None
            and conversational.author is not None
            and rules is not None
            and settings.author_bonus != 1
        ):
            theirs = walked.snapshot.by_author(namespace, scores.row_ids, conversational.author)
            scores = Mass(
                scores.row_ids, scores.values * np.where(np.isin(scores.row_ids, theirs), settings.author_bonus, 1.0)
            )
        return scores, named

    def _seeds(self, question: Question, settings: GraphSettings, trace: WalkTrace) -> Mass:
        """Return mass on the first memories of the other legs' lists in this namespace, 1 / (1 + rank) each."""
        placed = [
            (row_id, 1.0 / (1 + rank), f"{leg} rank {rank}")
            for leg, ranking in sorted(question.rankings.items())
            for rank, row_id in enumerate(ranking.row_ids[: settings.seeds], 1)
        ]
        for row_id, _, where in placed:
            trace.seeds.setdefault(row_id, where)
        return gather([o for o, _, _ in placed], [m for _, m, _ in placed])

    def _gated(
        self,
        namespace: str,
        question: Question,
        restart: Mass,
        score: Mass,
        settings: GraphSettings,
        trace: WalkTrace,
        walked: _Walked,
    ) -> Mass:
        pieces = [score.scaled(0.5)]
        names = _of_namespace(walked.snapshot, namespace)
        mass = restart
        for number in range(settings.hops):
            chosen = strongest(mass, settings.beam, names)
            beam = gather(chosen, mass.at(chosen))
            arrived, carried = hop(beam, *self._edges(namespace, beam, settings, walked, trace))
            trace.hops.append(carried)
            targets = strongest(arrived, settings.targets, names)
            pruned = gather(targets, arrived.at(targets))
            mass = _gated_by(question, walked.snapshot, namespace, pruned, settings).scaled(settings.decay)
            pieces.append(mass.scaled(_LAST[settings.hops == 1] if number == settings.hops - 1 else _EARLIER))
            if not len(mass):
                break
        return gather(np.concatenate([p.row_ids for p in pieces]), np.concatenate([p.values for p in pieces]))

    def _pagerank(
        self,
        namespace: str,
        question: Question,
        restart: Mass,
        score: Mass,
        settings: GraphSettings,
        trace: WalkTrace,
        walked: _Walked,
    ) -> Mass:
        """Return personalised PageRank over the edges of the restart's heaviest memories."""
        chosen = strongest(restart, settings.beam, _of_namespace(walked.snapshot, namespace))
        beam = gather(chosen, restart.at(chosen))
        along, neighbours = self._edges(namespace, beam, settings, walked, trace)
        trace.hops.append(hop(beam, along, neighbours)[1])
        _, plain = hop(Mass(beam.row_ids, np.ones(len(beam))), along, neighbours)
        return personalised_pagerank(restart, plain, damping=settings.alpha)

    def _edges(
        self, namespace: str, beam: Mass, settings: GraphSettings, walked: _Walked, trace: WalkTrace
    ) -> tuple[Edges, Mapping[int, Sequence[tuple[int, float]]]]:
        """Return the edges of the beam's memories; edges read by an earlier hop are not read again."""
        new = beam.row_ids[~held(walked.row_ids, beam.row_ids)]
        if len(new):
            beside = settings.neighbour > 0 and walked.sessions
            shared, postings, neighbours, related = self._shared(new, settings, walked, beside, trace)
            if settings.known_names:
                shared = recognised(shared, postings)
            if settings.lone_names == "leading":
                walked.leading |= _sharing_a_name(shared, postings)
            walked.edges.append(
                edges(
                    shared,
                    postings,
                    about=settings.about,
                    co_mention=settings.co_mention,
                    fan=settings.fan,
                    max_df=settings.max_df,
                )
            )
            if walked.linked and settings.neighbour > 0:
                walked.edges.append(link_edges(walked.snapshot.linked(namespace, new), settings.neighbour))
            walked.edges += related
            walked.row_ids = np.sort(np.concatenate([walked.row_ids, new]))
            for row_id, other, own in neighbours:
                strength = settings.neighbour_own if own else settings.neighbour
                walked.neighbours.setdefault(row_id, []).append((other, strength))
        return starting_at(beam.row_ids, walked.edges), walked.neighbours

    def _shared(
        self, row_ids: NDArray[np.int64], settings: GraphSettings, walked: _Walked, beside: bool, trace: WalkTrace
    ) -> tuple[Forwards, Postings, Sequence[tuple[int, int, bool]], list[Edges]]:
        """Return the concepts of memories that others share, their postings, and the neighbours in their sessions.

        Edges over relationships, for which the concepts that a memory has alone are read too, come last.
        """
        by_place = None
        if settings.related <= 0:
            by_place = walked.names.shared_concepts(row_ids, settings.max_df, neighbours=beside)
        if by_place is not None:
            forwards, postings, neighbours = by_place
            return _over(forwards, settings), postings, neighbours, []
        all_forwards, neighbours, pending = walked.names.forwards_and_neighbours(
            row_ids, neighbours=beside, shared=settings.related <= 0
        )
        forwards = _over(all_forwards, settings)
        keys = _distinct(mentioned(forwards, candidates=settings.known_names))
        postings = walked.names.postings(keys, max_df=settings.max_df, shared=True, pending=pending)
        related = [self._related(walked.names, forwards, keys, settings, trace)] if settings.related > 0 else []
        return among(forwards, postings), postings, neighbours, related

    def _related(
        self, names: Names, forwards: Forwards, keys: NDArray[np.int64], settings: GraphSettings, trace: WalkTrace
    ) -> Edges:
        """Return the edges over relationships; a bounded number of relationships is read."""
        pairs = names.relationships(keys.tolist(), _MOST_TIES + 1)
        trace.ties_cut = trace.ties_cut or len(pairs) > _MOST_TIES
        pairs = pairs[:_MOST_TIES]
        ends = {end for pair in pairs for end in pair}
        postings = names.postings(ends, max_df=settings.max_df)
        return related_edges(forwards, postings, pairs, related=settings.related, max_df=settings.max_df)


def _gated_by(question: Question, snapshot: Snapshot, namespace: str, mass: Mass, settings: GraphSettings) -> Mass:
    if settings.gate <= 0 or question.vector is None or not len(mass):
        return mass
    try:
        near = products(snapshot, namespace, mass.row_ids, question.vector)
    except SemmemError:
        return mass  # the dense leg reports it; the walk continues without the gate
    return gate(mass, near, settings.gate)


def _of_namespace(snapshot: Snapshot, namespace: str) -> Callable[[list[int]], Mapping[int, tuple[Any, ...]]]:
    """Return what gives the sort keys of memories by their local row ids."""
    return partial(_names, snapshot, snapshot.scope.namespaces.index(namespace))


def _names(snapshot: Snapshot, place: int, row_ids: list[int]) -> Mapping[int, tuple[Any, ...]]:
    """Return the sort keys of memories, whose row ids are those of the namespace at ``place``, or placed ones for 0."""
    metadata = snapshot.metadata([placed(row_id, place) for row_id in row_ids]) if place else snapshot.metadata(row_ids)
    return {local(o) if place else o: (h.created_at, h.id, h.part) for o, h in metadata.items()}


def _without(question: Question, earlier: Collection[int]) -> Question:
    """Return the question without the earlier versions among the heads that other legs found."""

    def rest(ranking: Ranking) -> Ranking:
        pairs = [row for row in zip(ranking.row_ids, ranking.scores, strict=True) if local(row[0]) not in earlier]
        return replace(ranking, row_ids=tuple(row_id for row_id, _ in pairs), scores=tuple(score for _, score in pairs))

    def cleaned(one: Question) -> Question:
        return replace(one, rankings={leg: rest(ranking) for leg, ranking in one.rankings.items()})

    return replace(cleaned(question), narrowed={n: cleaned(one) for n, one in question.narrowed.items()})


def _distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return distinct ``keys``, ascending; for ten thousand keys eight times as fast as np.unique."""
    ordered: NDArray[np.int64] = np.sort(keys)
    return ordered[new_runs(ordered)]


def _sharing_a_name(forwards: Forwards, postings: Postings) -> set[int]:
    """Return the memories that mention a name which another memory of ``postings`` also mentions, or is about.

    ``forwards`` have no other keys than ``postings``.
    """
    entries = forwards.entries
    names = (entries["kind"] == int(Kind.NAME)) & (entries["mention"] > 0)
    if not (several := postings.sizes > 1).all():
        slot = np.arange(len(postings.keys)).repeat(postings.sizes)
        about = np.bincount(slot, weights=postings.entries["subject"] > 0, minlength=len(postings.keys)) > 0
        names &= held(postings.keys[several], entries["key"]) | (
            (entries["subject"] == 0) & held(postings.keys[about], entries["key"])
        )
    return set(forwards.row_ids.repeat(forwards.sizes)[names].tolist())


def _over(forwards: Forwards, settings: GraphSettings) -> Forwards:
    """Return ``forwards`` without mentions of the kinds of concept that the walk must not use."""
    off = [int(kind) for kind, on in ((Kind.STEM, settings.stems), (Kind.BIGRAM, settings.bigrams)) if not on]
    if not off:
        return forwards
    entries = forwards.entries.copy()
    entries["mention"][np.isin(entries["kind"], off)] = 0
    return replace(forwards, entries=entries)
