"""Explain how the graph leg reached a memory: the heaviest chain of edges of its walk, starting at the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from semmem.concepts.surface_forms import written
from semmem.legs.graph_walk import link_of, rarity
from semmem.model.exchange import local
from semmem.model.store import GraphStore, Snapshot

if TYPE_CHECKING:
    from semmem.legs.graph_linking import WalkTrace

__all__ = ["Step", "path_line", "paths_to"]

_BESIDE = "next in session"

_WORTH_SHOWING = 0.1
"""A second path is shown if it brought at least this share of the first path's mass."""


@dataclass(frozen=True, slots=True)
class Step:
    """One hop of a path: from the question or a memory, over the concept ``by``, to the memory ``to``, with its mass.

    Memories are named by their ids; for split texts ``start_part`` and ``part`` are the parts that the edge connects.
    """

    start: str
    by: str
    to: str
    mass: float
    start_part: int | None = None
    part: int | None = None

    def __str__(self) -> str:
        return f"{_named(self.start, self.start_part)} → {self.by} → {_named(self.to, self.part)} ({self.mass:.3g})"


class Edge(NamedTuple):
    """One edge of a path, by row ids and keys; key 0 is a neighbour in the session, other small keys are links."""

    source: int
    key: int
    target: int
    mass: float


def path_line(path: Sequence[Step]) -> str:
    """Return a path on one line: each memory with the mass that the last edge brought to it."""
    first = _named(path[0].start, path[0].start_part)
    return "".join([first, *(f" → {step.by} → {_named(step.to, step.part)} ({step.mass:.3g})" for step in path)])


def _named(id: str, part: int | None) -> str:
    return f"{id} (part {part})" if part else id


def paths_to(
    target: int, trace: WalkTrace, snapshot: Snapshot, graph: GraphStore, language: str = "english"
) -> tuple[Step, ...]:
    """Return the paths to the memory ``target``, one after the other, the one that brought the most mass first.

    A memory can be in the restart (the question names it, or another leg found it) and be reached over edges as well.
    Its restart mass is compared with the mass that edges from other memories brought. The lesser path is added where it
    brought at least a tenth of the mass of the greater one. Concepts are spelled as the memories on the path spell
    them.
    """
    masses = _clean(trace, target)
    restart = trace.restart.get(target, 0.0)
    arrived = sum(float(m[hop.target == target].sum()) for hop, m in zip(trace.hops, masses, strict=True))
    chain = _chain(trace, target, masses)
    paths: list[tuple[float, list[Edge]]] = [(arrived, chain)] if chain else []
    if restart > 0:
        paths.append((restart, []))
    paths.sort(key=lambda path: -path[0])
    shown = [path for mass, path in paths if mass >= _WORTH_SHOWING * paths[0][0]]
    links = [link for path in shown for link in path]
    starts = [path[0].source if path else target for path in shown]
    row_ids = sorted({target, *starts, *(o for link in links for o in (link.source, link.target))})
    metadata = snapshot.metadata(row_ids)
    places = {o: (h.id, h.part or None) for o, h in metadata.items()}
    nowhere = ("?", None)
    first = {
        start: _first(start, trace, snapshot, [h.namespace for o, h in metadata.items() if o == start])
        for start in starts
    }
    names = {
        **graph.names(
            snapshot.scope.namespaces, {link.key for link in links if link.key and link_of(link.key) is None}
        ),
        **dict(filter(_is_key, first.values())),
    }
    shown_texts = snapshot.memories(list(metadata.values())).values() if names else ()
    names = written(names, (text for memory, of in shown_texts for text in (memory.title, of.text)), language)
    steps = []
    for start, path in zip(starts, shown, strict=True):
        by = names.get(first[start][0], first[start][1])
        to, part = places.get(start, nowhere)
        steps.append(Step("question", by, to, trace.restart.get(start, 0.0), None, part))
        for link in path:
            tie = link_of(link.key)
            by = (
                f"linked ({tie})"
                if tie
                else names.get(link.key, trace.labels.get(link.key, "a concept"))
                if link.key
                else _BESIDE
            )
            (source, own), (to, part) = places.get(link.source, nowhere), places.get(link.target, nowhere)
            steps.append(Step(source, by, to, link.mass, own, part))
    return tuple(steps)


def _is_key(concept: tuple[int, str]) -> bool:
    return concept[0] != 0


def _first(start: int, trace: WalkTrace, snapshot: Snapshot, namespaces: Sequence[str]) -> tuple[int, str]:
    """Return what connects the question with a memory, as (key, label): a name, the heaviest concept, or another leg.

    Key 0 means that it is no concept. The weight of a concept is the mass that the restart gave the memory for it: idf
    × a, as a share of all memories that mention the concept, × a of the question.
    """
    if start in trace.linked:
        key = trace.linked[start][0]
        return key, str(trace.labels.get(key, "a name"))
    if start not in trace.concepts:
        return 0, str(trace.seeds.get(start, "a seed"))
    shared = trace.concepts[start]
    for namespace in namespaces if len(shared) > 1 else ():
        (postings,) = snapshot.postings(namespace, (shared, None))
        weights = {}
        for key, entries in postings.items():
            a = entries["mention"].astype(float)
            own = float(a[entries["ord"] == local(start)].sum())
            weights[key] = own * own * rarity(postings.memories, int((a > 0).sum())) / max(float(a.sum()), 1.0)
        shared = sorted(shared, key=lambda key: (-weights.get(key, 0.0), trace.labels.get(key, "")))
    return shared[0], str(trace.labels.get(shared[0], "a concept"))


def _clean(trace: WalkTrace, target: int) -> list[Any]:
    """Return for each hop the mass that its edges carried, without mass that had been at ``target`` before.

    Mass that leaves a memory and comes back does not explain how the walk got there.
    """
    import numpy as np

    out: list[Any] = []
    for number, hop in enumerate(trace.hops):
        share = np.ones(len(hop.source))
        if number:
            nodes, slot = np.unique(trace.hops[number - 1].target, return_inverse=True)
            came = np.bincount(slot, weights=trace.hops[number - 1].weight, minlength=len(nodes))
            pure = np.bincount(slot, weights=out[-1], minlength=len(nodes))
            # the others start here: the walk of each namespace has hops of its own
            continues = np.isin(hop.source, nodes)
            place = np.searchsorted(nodes, hop.source[continues])
            share[continues] = pure[place] / np.maximum(came[place], 1e-300)
        out.append(np.where(hop.source == target, 0.0, hop.weight * share))
    return out


def _chain(trace: WalkTrace, target: int, masses: Sequence[Any]) -> list[Edge]:
    """Return the path whose last edge brought the most mass, first edge first; empty where there is none.

    No memory occurs twice. A path with one hop more must have brought twice as much, because a shorter path explains
    more.
    """
    import numpy as np

    def back(number: int, path: list[Edge]) -> list[Edge]:
        """Return ``path`` with the heaviest edges of this hop and of those before it in front."""
        hop, mass, here = trace.hops[number], masses[number], path[0].source if path else target
        passed = {here, *(link.target for link in path)}
        inwards = np.flatnonzero((hop.target == here) & (mass > 0))
        for index in inwards[np.lexsort((hop.key[inwards], hop.source[inwards], -mass[inwards]))].tolist():
            source = int(hop.source[index])
            if source in passed:
                continue
            longer = [Edge(source, int(hop.key[index]), here, float(mass[index])), *path]
            if number == 0 or not (trace.hops[number - 1].target == source).any():
                return longer
            if whole := back(number - 1, longer):
                return whole
        return []

    chains = [chain for number in range(len(trace.hops)) if (chain := back(number, []))]
    return max(chains, key=lambda chain: chain[-1].mass / 2 ** len(chain), default=[])
