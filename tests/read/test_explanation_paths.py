"""The way by which the graph came to a memory, as explain tells it: which way, and the mass on each step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import semmem
from semmem.legs.graph_linking import WalkTrace
from semmem.legs.graph_paths import paths_to
from semmem.legs.graph_walk import Edges
from semmem.model.exchange import Kind, placed
from semmem.read.explanation import Explanation
from semmem.text.tokens import key
from tests.snapshots import snapshot

PETRA, HERON = key(Kind.NAME, ["petra", "lindqvist"]), key(Kind.NAME, ["heron", "house"])
NORRBECK, TOWN = key(Kind.NAME, ["norrbeck"]), key(Kind.STEM, ["town"])
MEMORIES = (
    ("kestrel", "Kestrel", "Built by Petra Lindqvist."),
    ("petra", "Petra Lindqvist", "Born in Norrbeck, a town."),
    ("heron", "Heron House", "Where Petra Lindqvist keeps the Kestrel, out of town."),
)


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="none") as opened:
        for id, title, text in MEMORIES:
            opened.remember(text, id=id, title=title, namespace="n")
        yield opened


def hop(mem: semmem.Semmem, *edges: tuple[str, int, str, float], namespace: str = "n") -> Edges:
    """Return the edges of one hop as the walk keeps them: (from, concept, to, mass)."""
    row_ids = {id: mem.store.row_ids_of(namespace, id)[0] for edge in edges for id in (edge[0], edge[2])}
    return Edges(
        np.array([row_ids[e[0]] for e in edges], dtype=np.int64),
        np.array([e[1] for e in edges], dtype=np.int64),
        np.array([row_ids[e[2]] for e in edges], dtype=np.int64),
        np.array([e[3] for e in edges]),
    )


def told(mem: semmem.Semmem, target: str, restart: dict[str, float], *hops: Edges) -> list[str]:
    """Return the paths to ``target`` a line each; Kestrel is named by the question, the rest was found by a leg."""
    row_ids = {id: mem.store.row_ids_of("n", id)[0] for id in (*restart, target)}
    trace = WalkTrace(
        linked={row_ids["kestrel"]: [1]} if "kestrel" in row_ids else {},
        labels={1: "Kestrel"},
        seeds=dict.fromkeys(row_ids.values(), "dense rank 8"),
        restart={row_ids[id]: mass for id, mass in restart.items()},
        hops=list(hops),
    )
    path = paths_to(row_ids[target], trace, snapshot(mem, "n"), mem.store.graph)
    found = Explanation(target, "n", None, False, 0.0, None, 5, "any", {}, {}, path)
    return [line.removeprefix("  graph: ") for line in str(found).splitlines()[1:]]


def test_a_seed_that_got_more_over_edges_is_shown_with_the_graphs_own_way_first(mem: semmem.Semmem) -> None:
    edges = hop(mem, ("kestrel", PETRA, "petra", 0.3))
    assert told(mem, "petra", {"kestrel": 0.6, "petra": 0.1}, edges) == [
        "question → Kestrel → kestrel (0.6) → Petra Lindqvist → petra (0.3)",
        "question → dense rank 8 → petra (0.1)",
    ]


def test_a_seed_that_got_less_over_edges_is_a_seed_first(mem: semmem.Semmem) -> None:
    edges = hop(mem, ("kestrel", PETRA, "petra", 0.3))
    assert told(mem, "petra", {"kestrel": 0.2, "petra": 0.4}, edges) == [
        "question → dense rank 8 → petra (0.4)",
        "question → Kestrel → kestrel (0.2) → Petra Lindqvist → petra (0.3)",
    ]


@pytest.mark.parametrize(
    ("restart", "edge", "line"),
    [
        # the lesser way needs a tenth of the greater's mass: .02 < .03, .03 < .04
        (0.02, 0.3, "question → Kestrel → kestrel (0.6) → Petra Lindqvist → petra (0.3)"),
        (0.4, 0.03, "question → dense rank 8 → petra (0.4)"),
    ],
)
def test_a_way_that_brought_next_to_nothing_is_not_shown(
    mem: semmem.Semmem, restart: float, edge: float, line: str
) -> None:
    edges = hop(mem, ("kestrel", PETRA, "petra", edge))
    assert told(mem, "petra", {"kestrel": 0.6, "petra": restart}, edges) == [line]


def test_all_edges_together_are_held_against_the_restart(mem: semmem.Semmem) -> None:
    # .2 + .15 = .35 over two edges outweighs .3, though neither does alone; the heavier edge is the way shown.
    edges = hop(mem, ("kestrel", PETRA, "petra", 0.2), ("heron", PETRA, "petra", 0.15))
    assert told(mem, "petra", {"kestrel": 0.4, "heron": 0.3, "petra": 0.3}, edges)[0] == (
        "question → Kestrel → kestrel (0.4) → Petra Lindqvist → petra (0.2)"
    )


def test_mass_that_only_comes_back_is_no_way_to_a_memory(mem: semmem.Semmem) -> None:
    out, back = hop(mem, ("petra", PETRA, "kestrel", 0.4)), hop(mem, ("kestrel", PETRA, "petra", 0.8))
    assert told(mem, "petra", {"petra": 0.6}, out, back) == ["question → dense rank 8 → petra (0.6)"]


def test_of_what_a_memory_passes_on_only_the_share_from_elsewhere_counts(mem: semmem.Semmem) -> None:
    # Of the .5 that came to kestrel, .4 came from petra herself. Of the .25 that went on, .1/.5 × .25 = .05 is news.
    first = hop(mem, ("petra", PETRA, "kestrel", 0.4), ("heron", HERON, "kestrel", 0.1))
    second = hop(mem, ("kestrel", PETRA, "petra", 0.25))
    assert told(mem, "petra", {"petra": 0.3, "heron": 0.1}, first, second) == [
        "question → dense rank 8 → petra (0.3)",
        "question → dense rank 8 → heron (0.1) → Heron House → kestrel (0.1) → Petra Lindqvist → petra (0.05)",
    ]


@pytest.mark.parametrize(("second", "shown"), [(0.19, "heron (0.2) → Petra"), (0.21, "kestrel (0.3) → Heron House →")])
def test_a_longer_way_is_shown_when_it_brought_twice_as_much(mem: semmem.Semmem, second: float, shown: str) -> None:
    one = hop(mem, ("heron", PETRA, "petra", 0.1), ("kestrel", HERON, "heron", 0.3))
    two = hop(mem, ("heron", PETRA, "petra", second))
    line = told(mem, "petra", {"kestrel": 0.3, "heron": 0.2}, one, two)[0]
    assert shown in line
    assert line.endswith(f"petra ({second if second > 0.2 else 0.1})")


def test_no_memory_is_passed_twice(mem: semmem.Semmem) -> None:
    # kestrel keeps some mass over its own concept; that loop is no step of a way to petra, however heavy.
    one = hop(mem, ("kestrel", PETRA, "kestrel", 0.5), ("kestrel", PETRA, "petra", 0.1))
    two = hop(mem, ("kestrel", PETRA, "petra", 0.9))
    assert told(mem, "petra", {"kestrel": 0.6}, one, two) == [
        "question → Kestrel → kestrel (0.6) → Petra Lindqvist → petra (0.1)"
    ]


def test_the_turn_beside_is_a_step_like_any_other(mem: semmem.Semmem) -> None:
    edges = hop(mem, ("kestrel", 0, "petra", 0.2))
    assert told(mem, "petra", {"kestrel": 0.4}, edges) == [
        "question → Kestrel → kestrel (0.4) → next in session → petra (0.2)"
    ]


def test_each_namespace_walks_for_itself(mem: semmem.Semmem) -> None:
    # The third hop is the first of another namespace: it starts at the restart, not where the second one ended.
    mem.remember("Moth of Heron House.", id="moth", namespace="m")
    mem.remember("Lamp of Heron House.", id="lamp", namespace="m")
    others = hop(mem, ("moth", HERON, "lamp", 0.2), namespace="m")
    first = WalkTrace(hops=[hop(mem, ("heron", PETRA, "kestrel", 0.4)), hop(mem, ("kestrel", PETRA, "petra", 0.3))])
    moth, lamp = mem.store.row_ids_of("m", "moth")[0], mem.store.row_ids_of("m", "lamp")[0]
    walk = WalkTrace(seeds={moth: "lexical rank 1"}, restart={moth: 0.5}, hops=[others])
    steps = paths_to(placed(lamp, 1), WalkTrace.of([first, walk]), snapshot(mem, "n", "m"), mem.store.graph)
    assert list(map(str, steps)) == ["question → lexical rank 1 → moth (0.5)", "moth → Heron House → lamp (0.2)"]


def test_a_memory_nobody_walked_to_has_no_path(mem: semmem.Semmem) -> None:
    assert told(mem, "petra", {"kestrel": 0.4}, hop(mem, ("kestrel", HERON, "heron", 0.2))) == []


def test_of_several_concepts_the_weightiest_is_named(mem: semmem.Semmem) -> None:
    # Norrbeck: one memory, a = 1, so idf 1 and the whole of it. town: in two memories, a = .3.
    row_id = mem.store.row_ids_of("n", "petra")[0]
    trace = WalkTrace(
        concepts={row_id: [TOWN, NORRBECK]}, labels={TOWN: "town", NORRBECK: "Norrbeck"}, restart={row_id: 1.0}
    )
    assert list(map(str, paths_to(row_id, trace, snapshot(mem, "n"), mem.store.graph))) == [
        "question → Norrbeck → petra (1)"
    ]


def test_explain_tells_the_way_and_its_mass(store_url: str) -> None:
    # All of the question leads to the Kestrel: restart 1. Of the names that it mentions one is somebody else's subject,
    # so the about channel (strength 1) carries all of it to Petra: 1. Co-mention brings less over each single concept.
    with semmem.connect(store_url, embedder="none") as mem:
        for id, title, text in MEMORIES[:2]:
            mem.remember(text, id=id, title=title, namespace="n")
        why = mem.recall("Who built the Kestrel?", namespace="n").explain("petra")
        assert str(why).splitlines()[-1] == ("  graph: question → Kestrel → kestrel (1) → Petra Lindqvist → petra (1)")
        assert why.as_dict()["path"] == ["question → Kestrel → kestrel (1)", "kestrel → Petra Lindqvist → petra (1)"]
        assert [len(path) for path in why.paths] == [2]
