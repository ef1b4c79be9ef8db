"""Measure gold-pair linkage: are the memories that answer a question together connected in the graph at all?

Two gold memories are linked when they share a concept that is not a hub, or follow each other in one session. It is
read off the texts by the same rules the store uses, so it needs no recall; where few pairs are linked, no weight will
make a graph leg help with questions that need both.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eval.datasets import Corpus
from semmem.concepts.names import longest
from semmem.extractors import Rules
from semmem.model.exchange import Kind
from semmem.model.recipe import GraphSettings

__all__ = ["Linkage", "linkage"]


@dataclass(frozen=True, slots=True)
class Linkage:
    """Of ``pairs`` gold pairs (of questions with two or more): how many are linked within two hops, by what.

    ``named`` share a name, ``concept`` any concept (a stem or a bigram will do), ``neighbour`` stand side by side in
    a session, ``linked`` any of these. ``chance`` is the share of random pairs of the same namespace that are linked.
    """

    questions: int
    pairs: int
    linked: int
    named: int
    concept: int
    neighbour: int
    chance: float

    @property
    def share(self) -> float | None:
        """The share of gold pairs that are linked, None where no question has two gold memories."""
        return self.linked / self.pairs if self.pairs else None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
            "questions": self.questions,
            "pairs": self.pairs,
            "linked": self.linked,
            "named": self.named,
            "concept": self.concept,
            "neighbour": self.neighbour,
            "chance": self.chance,
            "share": self.share,
        }


def linkage(corpus: Corpus, *, max_df: int | None = None, chances: int = 2_000, seed: int = 0) -> dict[str, Linkage]:
    """Return the linkage of the headline (``headline``) and of every stratum.

    ``max_df`` is the hub cap: a concept in more memories than that links nothing (default: the graph leg's own).
    """
    import random

    cap = GraphSettings().max_df if max_df is None else max_df
    concepts, names = _concepts(corpus, cap)
    beside = _neighbours(corpus)
    rng = random.Random(seed)
    ids = {space: [key for key in concepts if key[0] == space] for space in corpus.namespaces}
    drawn = [
        tuple(rng.sample(ids[space], 2))
        for space in corpus.namespaces
        if len(ids[space]) > 1
        for _ in range(chances // len(corpus.namespaces))
    ]
    chance = sum(bool(concepts[a] & concepts[b]) or b in beside[a] for a, b in drawn) / len(drawn) if drawn else 0.0
    out = {}
    for group in ("headline", *corpus.strata):
        counts: Counter[str] = Counter()
        for query in corpus.queries:
            if query.any_of or (query.apart if group == "headline" else query.stratum != group) or len(query.gold) < 2:
                continue
            counts["questions"] += 1
            for one, two in itertools.combinations(query.gold, 2):
                a, b = (query.namespace, one), (query.namespace, two)
                shared, next_to = concepts[a] & concepts[b], b in beside[a]
                counts["pairs"] += 1
                counts["concept"] += bool(shared)
                counts["named"] += bool(shared & names)
                counts["neighbour"] += next_to
                counts["linked"] += bool(shared) or next_to
        out[group] = Linkage(
            **{k: counts[k] for k in ("questions", "pairs", "linked", "named", "concept", "neighbour")}, chance=chance
        )
    return out


def _concepts(corpus: Corpus, cap: int) -> tuple[dict[tuple[str, str], set[int]], set[int]]:
    rules = Rules()
    subjects: Mapping[str, set[int]] = defaultdict(set)
    for memory in corpus.memories:
        extraction = rules.extract(memory["text"], memory.get("title"))
        keys = zip(extraction.keys, extraction.subjects, strict=True)
        subjects[memory["namespace"]].update(key for key, subject in keys if subject > 0)
    concepts: dict[tuple[str, str], set[int]] = {}
    names: set[int] = set()
    df: Counter[tuple[str, int]] = Counter()
    for memory in corpus.memories:
        extraction = rules.extract(memory["text"], memory.get("title"))
        known = {key for key, _ in longest(extraction.candidates, subjects[memory["namespace"]])}
        mine = known | {
            key
            for key, kind, weight in zip(extraction.keys, extraction.kinds, extraction.mentions, strict=True)
            if kind != Kind.TERM and weight > 0
        }
        names.update(known)
        names.update(k for k, kind in zip(extraction.keys, extraction.kinds, strict=True) if kind == Kind.NAME)
        concepts[memory["namespace"], memory["id"]] = mine
        df.update((memory["namespace"], key) for key in mine)
    for (space, id), mine in concepts.items():
        concepts[space, id] = {key for key in mine if df[space, key] <= cap}
    return concepts, names


def _neighbours(corpus: Corpus) -> dict[tuple[str, str], set[tuple[str, str]]]:
    sessions: dict[tuple[str, str], list[tuple[Any, int, str]]] = defaultdict(list)
    for memory in corpus.memories:
        if memory.get("session") and memory.get("created_at"):
            sessions[memory["namespace"], memory["session"]].append(
                (memory["created_at"], memory.get("position") or 0, memory["id"])
            )
    beside: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for (space, _), turns in sessions.items():
        for (_, _, one), (_, _, two) in itertools.pairwise(sorted(turns)):
            beside[space, one].add((space, two))
            beside[space, two].add((space, one))
    return beside
