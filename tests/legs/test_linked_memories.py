"""Links between memories are edges of the graph: a link brings in what nothing else reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import semmem
from semmem.legs.graph_walk import link_edges, link_of
from semmem.model.types import LINK_TYPES, LinkType

ASKED = "What keeps the Kestrel from logging?"


@pytest.fixture(scope="module")
def mem(module_store: Callable[[], str]) -> Iterator[semmem.Semmem]:
    """A store of two namespaces with the same notes, of which those in ``tied`` are linked."""
    notes = [
        {"id": "problem", "title": "Kestrel", "text": "The Kestrel stops logging on Sundays."},
        {"id": "answer", "text": "A full disk was the cause; rotating files cured it."},
        {"id": "next", "text": "Six litres of paint were left over."},
        *({"id": f"n{at:02}", "text": f"Gulls and tides, page {at}."} for at in range(30)),
    ]
    with semmem.connect(module_store(), embedder="none", pool_size=2) as mem:
        for namespace in ("tied", "apart"):
            mem.remember_many(notes, namespace=namespace)
        mem.link("problem", "resolved-by", "answer", namespace="tied")
        mem.link("next", "see-also", "answer", namespace="tied")
        yield mem


def test_a_link_brings_in_a_memory_that_nothing_else_reaches(mem: semmem.Semmem) -> None:
    assert [hit.id for hit in mem.recall(ASKED, namespace="apart")] == ["problem"]
    found = mem.recall(ASKED, namespace="tied")
    assert {hit.id: set(hit.legs) for hit in found} == {"problem": {"lexical", "graph"}, "answer": {"graph"}}
    assert [str(step) for step in found.explain("answer").path][-1].startswith(
        "problem → linked (resolved-by) → answer"
    )
    twice = mem.recall(ASKED, namespace="tied", recipe=semmem.recipe("default", graph={"hops": 2}))
    path = twice.explain("next").path
    assert [(step.start, step.by, step.to) for step in path][-2:] == [
        ("problem", "linked (resolved-by)", "answer"),
        ("answer", "linked (see-also)", "next"),
    ]
    without = semmem.recipe("default", graph={"neighbour": 0})
    assert [hit.id for hit in mem.recall(ASKED, namespace="tied", recipe=without)] == ["problem"]


def test_a_link_weighs_what_a_neighbour_weighs(mem: semmem.Semmem) -> None:
    notes = [{"id": "a", "text": "The Kestrel stops."}, {"id": "b", "text": "A full disk."}]
    mem.remember_many(({**note, "session": "s"} for note in notes), namespace="beside")
    mem.remember_many(notes, namespace="linked")
    mem.link("b", "part-of", "a", namespace="linked")
    beside, linked = (mem.recall("Kestrel", namespace=namespace, recipe="graph") for namespace in ("beside", "linked"))
    assert [(hit.id, hit.legs["graph"].score) for hit in linked] == [
        (hit.id, hit.legs["graph"].score) for hit in beside
    ]
    assert {hit.id for hit in linked} == {"a", "b"}


def test_no_more_round_trips_are_made_where_no_memories_are_linked(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mem.store.life is not None
    asked: list[str] = []
    kind = type(mem.store.life)
    before = kind.linked

    def linked(self: object, namespace: str, row_ids: object) -> object:
        asked.append(namespace)
        return before(self, namespace, row_ids)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "linked", linked)
    mem.recall(ASKED, namespace="apart")
    assert asked == []
    mem.recall(ASKED, namespace=["apart", "tied"])
    assert set(asked) == {"tied"}


def test_the_hash_of_a_graph_has_its_links_and_is_as_ever_where_there_are_none(mem: semmem.Semmem) -> None:
    free, tied = (mem.graph_hash(namespace=namespace) for namespace in ("apart", "tied"))
    assert free != tied
    mem.link("next", "contradicts", "answer", namespace="apart")
    assert mem.graph_hash(namespace="apart") not in (free, tied)
    mem.unlink("next", "contradicts", "answer", namespace="apart")
    assert mem.graph_hash(namespace="apart") == free


def test_a_view_of_the_graph_goes_over_links_and_shows_them(mem: semmem.Semmem) -> None:
    view = mem.graph(namespace="tied", around="problem")
    assert {about["name"] for _, about in view.nodes(data=True) if about["kind"] == "memory"} == {
        "problem", "answer", "next",
    }  # fmt: skip
    assert view.edges["m:problem", "m:answer"] == {"type": "resolved-by", "weight": 0.5}
    assert view.edges["m:answer", "m:next"] == {"type": "see-also", "weight": 0.5}


def test_all_links_of_a_memory_carry_no_more_than_two_neighbours() -> None:
    ties: list[tuple[int, int, LinkType]] = [
        (1, 2, "see-also"),
        (3, 4, "supersedes"),
        (3, 5, "part-of"),
        (3, 6, "part-of"),
        (3, 7, "see-also"),
    ]
    edges = link_edges(ties, 0.25)
    assert edges.source.tolist() == [1, 3, 3, 3, 3]
    assert edges.target.tolist() == [2, 4, 5, 6, 7]
    assert edges.weight.tolist() == [0.25, 0.125, 0.125, 0.125, 0.125]
    assert [link_of(key) for key in edges.key.tolist()] == ["see-also", "supersedes", "part-of", "part-of", "see-also"]
    assert [link_of(key) for key in (0, -1, len(LINK_TYPES) + 1)] == [None] * 3
    nothing = link_edges([], 0.25)
    assert nothing.weight.dtype == np.float64
    assert len(nothing.source) == 0


def test_a_memory_with_a_hundred_links_is_left_by_a_bounded_number_of_them(mem: semmem.Semmem) -> None:
    mem.remember_many(({"id": f"m{at:03}", "text": f"Page {at}."} for at in range(101)), namespace="hub")
    assert mem.store.life is not None
    from semmem.model.history import Link

    mem.store.life.link("hub", [Link("hub", "m000", "see-also", f"m{at:03}") for at in range(1, 101)])
    (row_id,) = mem.store.row_ids_of("hub", "m000")
    assert len(mem.store.life.linked("hub", [row_id])) == 20
