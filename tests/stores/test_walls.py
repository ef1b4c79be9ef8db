"""What is forgotten in one namespace is there in another, in each store, whatever numbers the memories have."""

from __future__ import annotations

from semmem.client.memory import Semmem
from semmem.model.store import graph_of


def test_a_forget_counts_and_takes_the_memories_of_one_namespace(mem: Semmem) -> None:
    for namespace, ids in (("one", "abc"), ("two", "xya")):  # the third of each is another one
        for id in ids:
            mem.remember(f"Note {id}.", id=id, namespace=namespace)
    for filters in ({"id": "a"}, {"filters": {"created_after": "2001-01-01"}}):
        assert mem.forget(**filters, namespace="one", dry_run=True) == (1 if "id" in filters else 3)
    assert mem.forget("a", namespace="one", hard=True) == 1
    left = {name: sorted(memory.id for memory in mem.list(namespace=name)) for name in ("one", "two")}
    assert left == {"one": ["b", "c"], "two": ["a", "x", "y"]}


def test_a_memory_that_waits_for_its_postings_is_found_after_a_forget_in_another_namespace(mem: Semmem) -> None:
    for namespace, id in (("one", "a"), ("two", "x")):  # of the same number, and neither is in a posting yet
        mem.remember("The quokka sleeps.", id=id, namespace=namespace)
    assert mem.forget("a", namespace="one", hard=True) == 1
    mem.maintain()
    assert [hit.id for hit in mem.recall("quokka", namespace="two", recipe="lexical")] == ["x"]


def test_an_id_that_is_left_out_is_left_out_of_its_own_namespace(mem: Semmem) -> None:
    for namespace, ids in (("one", "abc"), ("two", "xya")):
        for id in ids:
            mem.remember(f"Note {id}.", id=id, namespace=namespace)
    found = mem.recall("Which note?", namespace="one", exclude=["a"])
    assert sorted(hit.id for hit in found) == ["b", "c"]


def test_the_neighbours_of_a_turn_are_of_its_own_namespace(mem: Semmem) -> None:
    for namespace, places in (("one", {"a": 1, "b": 3}), ("two", {"x": 2, "y": 4})):  # one session, by its name
        for id, position in places.items():
            mem.remember(f"Turn {id}.", id=id, namespace=namespace, session="s", position=position)
    graph = graph_of(mem.store)
    for namespace, ids in (("one", "ab"), ("two", "xy")):
        first, second = (mem.store.row_ids_of(namespace, id)[0] for id in ids)
        found = graph.neighbours([namespace], [first, second])
        assert sorted(pair[:2] for pair in found) == [(first, second), (second, first)]
