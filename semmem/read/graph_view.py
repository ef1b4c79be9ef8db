"""Build a bounded part of the graph to look at: memories and the concepts that connect them, as a networkx graph.

The view is grown outwards along the edges of the graph leg's walk (semmem.legs.graph_walk), heaviest edges first, until
it holds a given number of memories. Each hop asks the store a few questions, however many memories it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from semmem.concepts.aliases import variants
from semmem.concepts.rules import question
from semmem.concepts.surface_forms import written
from semmem.legs.graph_names import Names, mentioned, recognised
from semmem.legs.graph_walk import Mass, edges, gather, hop, idf, strongest
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.exchange import Kind, RowIds, Scope
from semmem.model.filters import whole_from
from semmem.model.pictures import graph_class
from semmem.model.recipe import GraphSettings
from semmem.model.store import GraphStore, Snapshot, Store, graph_of
from semmem.model.types import Filters, Memory
from semmem.stores.snapshot import StoredSnapshot
from semmem.text.tokens import key, tokens

if TYPE_CHECKING:
    import networkx

__all__ = ["BESIDE", "MENTION", "RELATED", "concept_node", "graph_view", "memory_node"]

MENTION, BESIDE, RELATED = "mention", "next in session", "relationship"
"""Types of edges: memory to concept, memory to memory, concept to concept.

An edge between two memories may also have the type of a link.
"""
_WEIGHT_UNIT = 100
"""Postings and forward entries store weights in hundredths."""
_MOST_HOPS, _LARGEST = 6, 10_000
_FIRST_WORDS = 60
_MOST_ALSO = 8
_MOST_TIES = 20
"""Relationships that are read for each concept that may be drawn, on average."""
_ALL = Filters(created_after=datetime.min.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class _Start:
    """Where the view begins.

    ``df`` maps the key of a concept to the number of memories that mention it; ``row_ids`` are memories, best first.
    """

    df: dict[int, int]
    row_ids: list[int]


def memory_node(id: str) -> str:
    """Return the name of a memory's node."""
    return f"m:{id}"


def concept_node(key: int) -> str:
    """Return the name of the node of the concept that has ``key`` in the store."""
    return f"c:{key & (2**64 - 1):016x}"


def graph_view(
    store: Store,
    *,
    namespace: str,
    around: str | None = None,
    hops: int = 2,
    limit: int = 500,
    language: str = "english",
    settings: GraphSettings | None = None,
) -> networkx.Graph:
    """Return the memories within ``hops`` of a concept or memory, and the concepts that connect them.

    ``around`` is the id of a memory, or a name as people write it. None draws the whole namespace, which may then have
    at most ``limit`` memories. A hop leads from a memory over its concepts, or to its neighbours in its session, to
    other memories; from a name the first hop leads to the memories that mention it. The view has at most ``limit``
    memories and at most as many concepts, the heaviest first.

    Nodes have ``kind`` (memory or concept), ``name`` (the id, or the name people read), ``title`` (the label to show)
    and ``start`` (whether ``around`` named the node). A memory has its ``text`` and, where they are known, ``author``,
    ``session``, ``position``, ``source`` and ``created_at``. A concept has ``sort`` (name, bigram or stem), ``df``,
    ``idf`` and ``also``: further concepts that exactly the same memories of the view mention, which get no node of
    their own.

    Edges have ``type`` and ``weight``. A mention weighs idf × a, or idf × b where b is larger; its ``role`` is subject
    where the memory is about the concept. Neighbours and links have the weight that the walk gives them, relationships
    have 1. Concepts mentioned by more than ``max_df`` memories say little and are left out, unless ``around`` names
    them. Concept names are spelled as most of the drawn memories spell them.

    ``graph.graph`` counts what is missing: ``left_out`` is the number of memories that were reached and had no room,
    ``left_out_concepts`` that of concepts, and ``too_common`` that of names mentioned by more than ``max_df`` memories.

    Raises InvalidInput for a bad argument or a namespace that is too large, NotFound where nothing is called
    ``around``.
    """
    for name, value, most in (("hops", hops, _MOST_HOPS), ("limit", limit, _LARGEST)):
        whole_from(name, value, 1, most)
    plan = settings or GraphSettings()
    concepts = graph_of(store)
    snapshot = StoredSnapshot(store, Scope((namespace,), 0))
    stored = Names(snapshot, namespace, concepts.corrections([namespace])[namespace])
    scope = store.scope((namespace,), Filters(), ())
    expired = frozenset(() if scope.excluded is None else scope.excluded.tolist())
    if around is None:
        start, left_out = _Start({}, []), 0
        row_ids = _whole(store, namespace, scope.size, limit)
    else:
        start = _start(store, stored, namespace, around, language, expired)
        row_ids, left_out = _outwards(store, concepts, stored, namespace, start, hops - bool(start.df), limit, plan)
    row_ids = [row_id for row_id in row_ids if row_id not in expired]
    graph = _drawn(store, concepts, snapshot, stored, namespace, row_ids, start, limit, plan, language)
    graph.graph.update(namespace=namespace, around=around or "", hops=hops, left_out=left_out)
    return graph


def _whole(store: Store, namespace: str, size: int, limit: int) -> list[int]:
    """Return the row ids of all memories of a namespace. Raises InvalidInput where there are more than ``limit``."""
    if size > limit:
        raise InvalidInput(
            f"Namespace {namespace!r} holds {size:,} memories and parts, more than the {limit:,} that are drawn at "
            "once: pass a name or an id as around, or raise limit."
        )
    allowed = store.scope((namespace,), _ALL, ()).allowed
    return [] if allowed is None else allowed.tolist()


def _start(store: Store, names: Names, namespace: str, around: str, language: str, expired: Collection[int]) -> _Start:
    """Return the memory with the id ``around``, else the concept of that name.

    A name is tried as a whole, then with its variants, then as the names and words that ``around`` consists of.
    """
    if not isinstance(around, str) or not around.strip():
        raise InvalidInput("around must be the name of a concept or the id of a memory; it is empty.")
    if row_ids := [row_id for row_id in store.row_ids_of(namespace, around) if row_id not in expired]:
        return _Start({}, row_ids)
    folded = [word for word, _, _ in tokens(around, language)]
    stems = [w.stem for w in folded if not w.stop]
    concepts = question(around, language)
    parts = tuple(w.folded for w in folded)
    forms = [
        [key(Kind.NAME, parts)],
        [key(Kind.NAME, form) for form in variants(parts)] if parts else [],
        [n.key for n in concepts.spans],
        [key(Kind.BIGRAM, stems)] if len(stems) == 2 else [],
        list(concepts.keys),
    ]
    # a name that was merged by hand stands for the other name
    forms = [[names.corrections.key(k) for k in form] for form in forms]
    postings = names.postings({k for form in forms for k in form})
    by_key = dict(postings.items())
    for form in forms:
        held_by = {k: by_key[k] for k in form if k in by_key}
        if not held_by:
            continue
        best: dict[int, tuple[int, int]] = {}
        for entries in held_by.values():
            for o, a, b in zip(*(entries[f].tolist() for f in ("ord", "mention", "subject")), strict=True):
                best[o] = max(best.get(o, (0, 0)), (b, a))
        ranked = sorted((o for o, weights in best.items() if any(weights)), key=lambda o: (-best[o][0], -best[o][1], o))
        if ranked:
            return _Start({k: int((e["mention"] > 0).sum()) for k, e in held_by.items()}, ranked)
    raise NotFound(
        f"Nothing in namespace {namespace!r} is called {around!r}; `semmem concepts --like …` lists the names it knows."
    )


def _outwards(
    store: Store,
    graph: GraphStore,
    stored: Names,
    namespace: str,
    start: _Start,
    hops: int,
    limit: int,
    plan: GraphSettings,
) -> tuple[list[int], int]:
    """Return the row ids of the memories reached, and how many more were reached but had no room."""
    import numpy as np

    def names(row_ids: list[int]) -> dict[int, tuple[Any, ...]]:
        return {o: (h.created_at, h.id, h.part) for o, h in store.candidate_metadata([namespace], row_ids).items()}

    shown_row_ids = np.unique(np.array(start.row_ids[:limit], dtype=np.int64))
    all_row_ids = np.unique(np.array(start.row_ids, dtype=np.int64))
    beam = Mass(shown_row_ids, np.full(len(shown_row_ids), 1 / max(len(shown_row_ids), 1)))
    for _ in range(hops):
        forwards = stored.forwards(beam.row_ids)
        postings = stored.postings(np.unique(mentioned(forwards)), max_df=plan.max_df, shared=True)
        along = edges(
            recognised(forwards, postings),
            postings,
            about=plan.about,
            co_mention=plan.co_mention,
            fan=plan.fan,
            max_df=plan.max_df,
        )
        beside: dict[int, list[tuple[int, float]]] = {}
        for row_id, other, own in graph.neighbours([namespace], beam.row_ids):
            beside.setdefault(row_id, []).append((other, plan.neighbour_own if own else plan.neighbour))
        for row_id, other, _ in _linked(store, namespace, beam.row_ids):
            beside.setdefault(row_id, []).append((other, plan.neighbour))
        arrived, _ = hop(beam, along, beside)
        is_new = ~np.isin(arrived.row_ids, shown_row_ids) & (arrived.values > 0)
        new = Mass(arrived.row_ids[is_new], arrived.values[is_new])
        chosen = strongest(new, limit - len(shown_row_ids), names)[: limit - len(shown_row_ids)]
        all_row_ids = np.union1d(all_row_ids, new.row_ids)
        beam = gather(chosen, new.at(chosen))
        shown_row_ids = np.union1d(shown_row_ids, chosen)
        if not len(beam):
            break
    reached: list[int] = shown_row_ids.tolist()
    return reached, len(all_row_ids) - len(shown_row_ids)


@dataclass(slots=True)
class _Concept:
    """A concept to draw: its kind, document frequency, idf, and its memories as id -> (a, b)."""

    kind: int
    df: int
    idf: float
    weights: dict[str, tuple[float, float]]

    def weight(self, id: str) -> float:
        """Return the weight of the edge to one memory: idf × the larger of its mention and subject weights."""
        return self.idf * max(self.weights[id])

    @property
    def total(self) -> float:
        """Return the sum of the weights of the concept's edges."""
        return sum(map(self.weight, self.weights))


def _concepts(
    stored: Names, ids: Mapping[int, str], start: _Start, plan: GraphSettings
) -> tuple[dict[int, _Concept], int]:
    """Return the concepts to draw, and how many names were left out because more than ``max_df`` memories mention them.

    Drawn are the concepts that at least two of the memories mention, those where the view starts, and the names that
    the starting memory mentions. ``ids`` maps each row id to the id of its memory; of the parts of one memory the
    largest weight counts.
    """
    forwards = stored.forwards(list(ids))
    candidates = () if forwards.candidates is None else forwards.candidates["key"]
    forwards = recognised(forwards, stored.postings(candidates, max_df=plan.max_df, shared=True))
    entries = forwards.entries
    weights: dict[int, dict[str, tuple[float, float]]] = {}
    kinds: dict[int, int] = {}
    owners = [
        o for o, size in zip(forwards.row_ids.tolist(), forwards.sizes.tolist(), strict=True) for _ in range(size)
    ]
    columns = (entries[f].tolist() for f in ("key", "kind", "mention", "subject"))
    for row_id, concept_key, kind, a, b in zip(owners, *columns, strict=True):
        if kind != Kind.TERM and (a or b):
            by = weights.setdefault(concept_key, {})
            before = by.get(ids[row_id], (0.0, 0.0))
            by[ids[row_id]] = max(before[0], a / _WEIGHT_UNIT), max(before[1], b / _WEIGHT_UNIT)
            kinds[concept_key] = kind
    own = set() if start.df else {ids[o] for o in start.row_ids if o in ids}
    keys = {
        concept_key
        for concept_key, by in weights.items()
        if len(by) > 1 or concept_key in start.df or (kinds[concept_key] == Kind.NAME and own & set(by))
    }
    postings = stored.postings(keys, max_df=plan.max_df)
    df = {concept_key: int((e["mention"] > 0).sum()) for concept_key, e in postings.items()} | start.df
    too_common = sum(kinds[concept_key] == Kind.NAME for concept_key in keys if concept_key not in df)
    concepts = {
        concept_key: _Concept(
            kinds[concept_key],
            df[concept_key],
            float(idf(postings.memories, max(df[concept_key], 1))),
            weights[concept_key],
        )
        for concept_key in sorted(keys)
        if concept_key in df
    }
    return concepts, too_common


def _drawn(
    store: Store,
    store_graph: GraphStore,
    snapshot: Snapshot,
    stored: Names,
    namespace: str,
    row_ids: Sequence[int],
    start: _Start,
    limit: int,
    plan: GraphSettings,
    language: str,
) -> networkx.Graph:

    graph = graph_class()()
    memories = snapshot.memories(list(snapshot.metadata(row_ids).values()))
    ids = {o: memories[o][0].id for o in row_ids if o in memories}
    starts = set() if start.df else {ids[o] for o in start.row_ids if o in ids}
    for row_id, id in ids.items():
        if memory_node(id) not in graph:
            graph.add_node(memory_node(id), start=id in starts, **_shown(memories[row_id][0]))
    concepts, too_common = _concepts(stored, ids, start, plan)
    order = sorted(
        concepts,
        key=lambda concept_key: (
            concept_key not in start.df,
            -concepts[concept_key].kind,
            -concepts[concept_key].total,
            concept_key,
        ),
    )
    same: dict[Any, list[int]] = {}
    for concept_key in order:
        concept = concepts[concept_key]
        alone = len(concept.weights) < 2 and concept_key not in start.df
        same.setdefault(concept_key if alone else frozenset(concept.weights), []).append(concept_key)
    every = sorted(same.values(), key=lambda g: (g[0] not in start.df, -concepts[g[0]].total, g[0]))
    groups = every[:limit]
    shown = {concept_key for group in groups for concept_key in group[: _MOST_ALSO + 1]}
    given = dict(stored.corrections.into.values())  # a name that others were merged into is written as a person did
    names = {
        **store_graph.names([namespace], shown),
        **{concept_key: given[concept_key] for concept_key in shown if concept_key in given},
    }
    whole = {id: memories[o][0] for o, id in ids.items()}
    names = written(names, (text for memory in whole.values() for text in (memory.title, memory.text)), language)
    graph.graph.update(left_out_concepts=len(every) - len(groups), too_common=too_common, max_df=plan.max_df)
    for concept_key, *others in groups:
        concept, node = concepts[concept_key], concept_node(concept_key)
        name = names.get(concept_key, node)
        also = {names[o].casefold(): names[o] for o in others[:_MOST_ALSO] if o in names}
        also.pop(name.casefold(), None)
        graph.add_node(
            node,
            kind="concept",
            name=name,
            title=name,
            sort=Kind(concept.kind).name.lower(),
            df=concept.df,
            idf=concept.idf,
            also=", ".join(also.values()),
            start=concept_key in start.df,
        )
        for id, (_, b) in concept.weights.items():
            role = "subject" if b else "mention"
            graph.add_edge(memory_node(id), node, type=MENTION, role=role, weight=concept.weight(id))
    drawn = {concept_key for concept_key, *_ in groups}
    for concept_key, other in stored.relationships(drawn, _MOST_TIES * limit):
        if other in drawn and concept_key != other:
            graph.add_edge(concept_node(concept_key), concept_node(other), type=RELATED, weight=1.0)
    for row_id, other, by_same in store_graph.neighbours([namespace], list(ids)):
        if other in ids and ids[row_id] != ids[other]:
            weight = plan.neighbour_own if by_same else plan.neighbour
            graph.add_edge(memory_node(ids[row_id]), memory_node(ids[other]), type=BESIDE, weight=weight)
    for row_id, other, tie in _linked(store, namespace, list(ids)):
        if other in ids and ids[row_id] != ids[other]:
            graph.add_edge(memory_node(ids[row_id]), memory_node(ids[other]), type=tie, weight=plan.neighbour)
    return graph


def _linked(store: Store, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, str]]:
    """Return (row id, row id of a linked memory, type of the link) for the given memories."""
    return () if store.life is None else store.life.linked(namespace, row_ids)


def _shown(memory: Memory) -> dict[str, Any]:
    """Return the attributes of a memory's node. Values of None are left out, because GraphML has no None."""
    flat = " ".join(memory.text.split())
    short = flat if len(flat) <= _FIRST_WORDS else flat[: _FIRST_WORDS - 1].rstrip() + "…"
    fields = {"author": memory.author, "session": memory.session, "position": memory.position, "source": memory.source}
    when = memory.created_at.isoformat() if memory.created_at else None
    shown = {"kind": "memory", "name": memory.id, "title": memory.title or short, "text": memory.text}
    return shown | {k: v for k, v in {**fields, "created_at": when}.items() if v is not None}
