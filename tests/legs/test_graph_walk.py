"""The walk's arithmetic against oracles: numbers by hand, dense matrices of the formulas, networkx's PageRank."""

from __future__ import annotations

import math
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from semmem.concepts.names import longest
from semmem.legs.graph_names import longest_at
from semmem.legs.graph_walk import (
    Edges,
    Mass,
    among,
    combine,
    edges,
    gate,
    gather,
    hop,
    idf,
    personalised_pagerank,
    related_edges,
    starting_at,
    strongest,
)
from semmem.model.exchange import Forwards, Postings
from semmem.stores.packed_postings import FORWARD, POSTING

Held = dict[int, dict[int, tuple[int, int]]]
"""memory -> key -> (mention, subject), in hundredths."""


def forwards(held: Held) -> Forwards:
    rows = [
        (key, 0, mention, subject, 3, b"")
        for row_id in sorted(held)
        for key, (mention, subject) in sorted(held[row_id].items())
    ]
    sizes = np.array([len(held[row_id]) for row_id in sorted(held)], dtype=np.int64)
    return Forwards(np.array(sorted(held), dtype=np.int64), sizes, np.array(rows, dtype=FORWARD))


def postings(held: Held, memories: int | None = None) -> Postings:
    keys = sorted({key for entries in held.values() for key in entries})
    rows = [[(row_id, 0, 1, *held[row_id][key], b"") for row_id in sorted(held) if key in held[row_id]] for key in keys]
    flat = np.array([row for of in rows for row in of], dtype=POSTING)
    sizes = np.array([len(of) for of in rows], dtype=np.int64)
    return Postings(len(held) if memories is None else memories, 0, np.array(keys, dtype=np.int64), sizes, flat)


def mass(values: dict[int, float]) -> Mass:
    return gather(list(values), list(values.values()))


# ---------------------------------------------------------------------- by hand


def test_idf_is_one_for_a_concept_of_one_memory_and_falls_with_df() -> None:
    # ln(1 + 3/1)/ln(1 + 3) = 1; ln(1 + 3/3)/ln 4 = ln 2/ln 4 = 1/2
    assert idf(3, np.array([1, 3, 0])).tolist() == pytest.approx([1.0, 0.5, 0.0])
    assert idf(0, np.array([1])).tolist() == [0.0]


def test_one_hop_of_a_small_graph_worked_out_by_hand() -> None:
    # Memory 1 mentions concept 7 (.3) and 8 (1.0); 2 is about 8 (1.0, no mention); 1, 2 and 3 mention 7 (.3 each).
    held: Held = {1: {7: (30, 0), 8: (100, 0)}, 2: {7: (30, 0), 8: (0, 100)}, 3: {7: (30, 0)}}
    along = edges(forwards({1: held[1]}), postings(held), about=1.0, co_mention=2.0, fan=20, max_df=30)
    # About: only 8 is the subject of another memory, so A = 1 and B = 1: 1 -> 2 carries 1.
    # Co-mention: 7 has df 3; 8 has df 1, below 2. So K(7) = 1, L = 1/3 each: 2 x 1/3 to 1, 2 and 3.
    arrived, carried = hop(mass({1: 0.6}), along, {1: [(9, 0.5)]})
    # 2: .6 (1 + 2/3) = 1.0; 1 and 3: .6 x 2/3 = .4; the neighbour 9: .6 x .5 = .3
    assert arrived.as_dict() == pytest.approx({1: 0.4, 2: 1.0, 3: 0.4, 9: 0.3})
    assert float(carried.weight.sum()) == pytest.approx(0.6 * (1 + 2 + 0.5))
    assert sorted(set(carried.key.tolist())) == [0, 7, 8]


def test_the_fan_keeps_the_heaviest_concepts_and_takes_the_smaller_key_of_equals() -> None:
    held: Held = {1: {5: (30, 0), 6: (60, 0), 7: (30, 0)}, 2: {5: (30, 0), 6: (60, 0), 7: (30, 0)}}
    along = edges(forwards({1: held[1]}), postings(held), about=0.0, co_mention=1.0, fan=2, max_df=30)
    # 5, 6, 7 have df 2 and the same idf, so K = 60 : 30 over 6 and 5; L = 1/2
    assert {
        (k, t): w for k, t, w in zip(along.key.tolist(), along.target.tolist(), along.weight.tolist(), strict=True)
    } == (pytest.approx({(5, 1): 1 / 6, (5, 2): 1 / 6, (6, 1): 1 / 3, (6, 2): 1 / 3}))


def test_the_gate_moves_mass_to_what_resembles_the_question_and_keeps_the_sum() -> None:
    gated = gate(mass({1: 0.5, 2: 0.5}), {1: 1.0}, 2.0)
    # e^2 : e^0 of a sum of 1
    assert gated.as_dict() == pytest.approx({1: math.e**2 / (math.e**2 + 1), 2: 1 / (math.e**2 + 1)})


def test_restart_parts_have_their_shares_and_absent_ones_are_left_out() -> None:
    restart, score = combine([(mass({1: 3.0, 2: 1.0}), 1.0, 1.0), (mass({}), 5.0, 1.0), (mass({2: 7.0}), 0.5, 0.5)])
    # shares 2/3 and 1/3: 1 gets 3/4 x 2/3 = 1/2; 2 gets 1/6 + 1/3 = 1/2, of which the last 1/3 counts half in the score
    assert restart.as_dict() == pytest.approx({1: 0.5, 2: 0.5})
    assert score.as_dict() == pytest.approx({1: 0.5, 2: 1 / 6 + 1 / 6})


def test_a_relationship_leads_from_one_of_its_concepts_to_the_memories_that_mention_the_other() -> None:
    # 1 mentions 5 (1.0) and 6 (1.0); 5 is tied to 7 and 8, 6 to nothing; 7 is mentioned by 2 and 3 (.6, .2), 8 by 4.
    held: Held = {1: {5: (100, 0), 6: (100, 0)}, 2: {7: (60, 0)}, 3: {7: (20, 0)}, 4: {8: (30, 0)}}
    along = related_edges(forwards({1: held[1]}), postings(held), [(5, 7), (5, 8), (6, 9)], related=2.0, max_df=30)
    # all of 1's mass goes over 5, half of it to each end: 2 x 1/2 x 3/4, 2 x 1/2 x 1/4, 2 x 1/2
    found = zip(along.source.tolist(), along.key.tolist(), along.target.tolist(), along.weight.tolist(), strict=True)
    assert {row[:3]: row[3] for row in found} == pytest.approx({(1, 7, 2): 0.75, (1, 7, 3): 0.25, (1, 8, 4): 1.0})


def test_a_relationship_of_a_concept_with_itself_and_one_with_what_too_many_mention_lead_nowhere() -> None:
    held: Held = {1: {5: (100, 0)}, 2: {5: (100, 0), 7: (50, 0)}, 3: {7: (50, 0), 8: (50, 0)}, 4: {8: (50, 0)}}
    pairs = [(5, 5), (5, 7), (5, 8)]

    def found(max_df: int) -> dict[tuple[int, int, int], float]:
        along = related_edges(forwards({1: held[1]}), postings(held), pairs, related=1.0, max_df=max_df)
        rows = zip(along.source.tolist(), along.key.tolist(), along.target.tolist(), along.weight.tolist(), strict=True)
        return {row[:3]: row[3] for row in rows}

    assert found(2) == pytest.approx({(1, 7, 2): 0.25, (1, 7, 3): 0.25, (1, 8, 3): 0.25, (1, 8, 4): 0.25})
    held[1][8] = (50, 0)  # a third mentions 8
    assert found(2) == pytest.approx({(1, 7, 2): 0.5, (1, 7, 3): 0.5})


# ---------------------------------------------------------------------- a dense transcription

weight = st.sampled_from((0, 30, 60, 90, 100))
graphs = st.dictionaries(
    st.integers(1, 9),
    st.dictionaries(st.integers(-4, 5), st.tuples(weight, weight).filter(any), min_size=1, max_size=6),
    min_size=1,
    max_size=8,
)


def norm(rows: NDArray[Any]) -> NDArray[Any]:
    sums = rows.sum(axis=1, keepdims=True)
    return np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)


def dense(held: Held, about: float, co_mention: float, fan: int, max_df: int) -> tuple[list[int], NDArray[Any]]:
    """The formulas of the recipe over the whole graph as matrices: memories, and edges[from, to]."""
    row_ids, keys = sorted(held), sorted({key for entries in held.values() for key in entries})
    a = np.array([[held[m].get(c, (0, 0))[0] / 100 for c in keys] for m in row_ids])
    b = np.array([[held[m].get(c, (0, 0))[1] / 100 for c in keys] for m in row_ids])
    df = (a > 0).sum(axis=0)
    w = np.array([math.log(1 + len(row_ids) / n) / math.log(1 + len(row_ids)) if 0 < n <= max_df else 0.0 for n in df])
    loads = a * w
    of_others = (b > 0).sum(axis=0)[None, :] - (b > 0) > 0
    A = norm(np.where(of_others, loads, 0.0))
    B = norm((b * (df <= max_df)).T)
    shared = np.where(df >= 2, loads, 0.0)
    for row in shared:
        order = sorted(range(len(keys)), key=lambda c, row=row: (-row[c], keys[c]))
        row[order[fan:]] = 0.0
    K, L = norm(shared), norm((a * (df <= max_df)).T)
    return row_ids, about * A @ B + co_mention * K @ L


@given(
    graphs,
    st.sampled_from((0.0, 1.0)),
    st.sampled_from((0.0, 2.0)),
    st.integers(1, 4),
    st.integers(1, 6),
    st.lists(st.floats(0.01, 1), min_size=9, max_size=9),
)
def test_a_gated_hop_agrees_with_a_dense_transcription_of_the_formulas(
    held: Held, about: float, co_mention: float, fan: int, max_df: int, values: list[float]
) -> None:
    row_ids, matrix = dense(held, about, co_mention, fan, max_df)
    beside = {row_id: [(row_ids[at - 1], 0.5)] for at, row_id in enumerate(row_ids) if at}
    start = mass({row_id: values[at] for at, row_id in enumerate(row_ids)})
    along = edges(forwards(held), postings(held), about=about, co_mention=co_mention, fan=fan, max_df=max_df)
    arrived, _ = hop(start, along, beside)
    sideways = np.zeros_like(matrix)
    for at in range(1, len(row_ids)):
        sideways[at, at - 1] = 0.5
    expected = start.values @ (matrix + sideways)
    assert [arrived.as_dict().get(o, 0.0) for o in row_ids] == pytest.approx(expected.tolist(), abs=1e-12)
    near = {row_id: math.cos(row_id) for row_id in row_ids}
    factors = expected * np.exp(2.0 * np.array([near[o] for o in row_ids]))
    if factors.sum() > 0:
        factors *= expected.sum() / factors.sum()
    gated = gate(arrived, near, 2.0)
    assert [gated.as_dict().get(o, 0.0) for o in row_ids] == pytest.approx(factors.tolist(), abs=1e-12)
    again, _ = hop(gated.scaled(0.5), starting_at(gated.row_ids, [along]), beside)
    assert [again.as_dict().get(o, 0.0) for o in row_ids] == pytest.approx(
        (0.5 * factors @ (matrix + sideways)).tolist(), abs=1e-12
    )


@given(graphs, st.integers(1, 4))
def test_edges_of_some_memories_are_those_of_all_that_start_at_them(held: Held, some: int) -> None:
    chosen = sorted(held)[:some]
    whole = edges(forwards(held), postings(held), about=1.0, co_mention=2.0, fan=3, max_df=30)
    part = edges(forwards({m: held[m] for m in chosen}), postings(held), about=1.0, co_mention=2.0, fan=3, max_df=30)
    kept = starting_at(np.array(chosen, dtype=np.int64), [whole])
    for name in ("source", "key", "target"):
        assert getattr(part, name).tolist() == getattr(kept, name).tolist()
    assert part.weight.tolist() == pytest.approx(kept.weight.tolist())


@given(graphs, st.integers(1, 4))
def test_keys_that_one_memory_alone_has_change_no_edge(held: Held, fan: int) -> None:
    owners: dict[int, int] = {}
    for entries in held.values():
        for key in entries:
            owners[key] = owners.get(key, 0) + 1
    shared = {m: {k: v for k, v in entries.items() if owners[k] > 1} for m, entries in held.items()}
    whole = edges(forwards(held), postings(held), about=1.0, co_mention=2.0, fan=fan, max_df=30)
    less = edges(forwards(held), postings(shared, len(held)), about=1.0, co_mention=2.0, fan=fan, max_df=30)
    for name in ("source", "key", "target", "weight"):
        assert getattr(whole, name).tolist() == getattr(less, name).tolist()


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 400)), unique_by=lambda run: run[1]))
def test_the_longest_runs_by_their_places_are_those_that_are_found_one_by_one(runs: list[tuple[int, int]]) -> None:
    runs.sort(key=lambda run: run[1])
    places = np.array([place for _, place in runs], dtype=np.int64)
    assert [runs[at] for at in longest_at(places)] == list(longest(runs, range(-3, 4)))


@given(graphs, st.integers(-5, 5), st.integers(1, 4))
def test_entries_whose_key_no_posting_has_change_no_edge(held: Held, most: int, fan: int) -> None:
    known = postings({m: {k: v for k, v in entries.items() if k <= most} for m, entries in held.items()}, len(held))
    whole = edges(forwards(held), known, about=1.0, co_mention=2.0, fan=fan, max_df=30)
    fewer = among(forwards(held), known)
    less = edges(fewer, known, about=1.0, co_mention=2.0, fan=fan, max_df=30)
    for name in ("source", "key", "target", "weight"):
        assert getattr(whole, name).tolist() == getattr(less, name).tolist()
    assert fewer.sizes.tolist() == [sum(key in known.keys for key in held[m]) for m in sorted(held)]


# ---------------------------------------------------------------------- PageRank

links = st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 7)), st.floats(0.01, 3.0), min_size=1, max_size=20)


@given(links, st.dictionaries(st.integers(0, 7), st.floats(0.1, 1.0), min_size=1, max_size=4))
def test_personalised_pagerank_agrees_with_networkx(
    ties: dict[tuple[int, int], float], restart: dict[int, float]
) -> None:
    pairs = sorted(ties)
    source, target = (np.array([pair[at] for pair in pairs], dtype=np.int64) for at in (0, 1))
    along = Edges(source, np.zeros(len(pairs), dtype=np.int64), target, np.array([ties[p] for p in pairs]))
    found = personalised_pagerank(mass(restart), along, damping=0.5, tolerance=1e-14)
    graph = networkx.DiGraph()
    graph.add_nodes_from({*source.tolist(), *target.tolist(), *restart})
    graph.add_weighted_edges_from((s, t, ties[s, t]) for s, t in pairs)
    expected = networkx.pagerank(graph, alpha=0.5, personalization=restart, dangling=restart, tol=1e-14, max_iter=500)
    assert found.as_dict() == pytest.approx(expected, abs=1e-9)


# ---------------------------------------------------------------------- ties


def test_a_tie_at_the_cut_is_decided_by_names_and_not_by_row_id() -> None:
    tied = mass({1: 0.5, 2: 0.25, 3: 0.25 + 1e-15, 4: 0.25})
    asked: list[list[int]] = []

    def names(row_ids: list[int]) -> dict[int, tuple[Any, ...]]:
        asked.append(list(row_ids))
        return {o: (-o,) for o in row_ids}

    assert strongest(tied, 2, names).tolist() == [1, 4]
    assert [sorted(row_ids) for row_ids in asked] == [[2, 3, 4]]
    assert strongest(tied, 4, names).tolist() == [1, 2, 3, 4]
    assert len(asked) == 1


def test_a_tie_at_the_cut_stays_whole_while_it_makes_at_most_half_as_many_again() -> None:
    tied = mass({1: 0.5, 2: 0.25, 3: 0.25, 4: 0.25})
    assert strongest(tied, 3, lambda row_ids: {o: (-o,) for o in row_ids}).tolist() == [1, 2, 3, 4]


def test_an_edge_of_weight_0_carries_no_mass_and_makes_none_unknown() -> None:
    along = Edges(np.array([1, 2]), np.array([0, 0]), np.array([2, 3]), np.array([1.0, 0.0]))
    found = personalised_pagerank(mass({1: 1.0}), along, damping=0.5)
    # 2 has no edge that carries: its mass returns to 1. x = .5 + .5 y, y = .5 x
    assert found.as_dict() == pytest.approx({1: 2 / 3, 2: 1 / 3, 3: 0.0}, abs=1e-9)
