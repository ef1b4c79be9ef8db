"""What is forgotten in one namespace is there in another, in each store, whatever numbers the memories have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from semmem.client.memory import Semmem
from semmem.model.store import graph_of
from semmem.stores.postgres import forget
from semmem.stores.sqlite import renaming


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


def begun_to_drop(mem: Semmem) -> Callable[[], None]:
    """Drop the memories of the default namespace, as a process that is stopped then; return what does the rest."""
    name, store = "default", mem.store
    if store.kind == "SQLite":
        upto = store._run(lambda c: renaming.begin_drop(c, name))[1]

        def rest() -> None:
            while store._writing(lambda c: renaming.drop(c, name, upto)):
                pass

        assert store._writing(lambda c: renaming.drop(c, name, upto))
        return rest
    upto = store.transaction(lambda c: forget.begin_drop(c, name))[1]
    assert store.transaction(lambda c: forget.DROP_STEPS[0](c, name, upto))
    return partial(store.drop, name, upto)


def test_of_an_id_that_is_used_anew_during_a_drop_the_dropped_versions_go(mem: Semmem) -> None:
    mem.remember("The code is 1234.", id="a")
    mem.update("a", text="The code is 5678.")
    rest = begun_to_drop(mem)
    mem.remember("Bread is baked on Sundays.", id="a")
    mem.update("a", text="Bread is baked on Mondays.")
    rest()
    assert [one.memory.text for one in mem.history("a")] == ["Bread is baked on Sundays.", "Bread is baked on Mondays."]


def test_what_was_stored_and_forgotten_during_a_drop_can_be_brought_back(mem: Semmem) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "abc"])
    mem.forget("c")
    rest = begun_to_drop(mem)
    mem.remember_many([{"text": f"The bus {id} came.", "id": id} for id in "xy"])
    mem.link("x", "supersedes", "y")
    mem.forget("x")
    rest()
    assert [one.memory.id for one in mem.forgotten()] == ["x"]
    assert mem.restore_memory("x").text == "The bus x came."
    assert [one.to_id for one in mem.links("x")] == ["y"]
