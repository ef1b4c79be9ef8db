"""Sessions, parts and corrections of one name in two namespaces, in each store."""

from __future__ import annotations

from semmem.client.memory import Semmem
from semmem.model.store import graph_of


def test_the_turns_of_a_session_are_of_its_own_namespace(mem: Semmem) -> None:
    for namespace, places in (("one", {"a": 1, "b": 3}), ("two", {"x": 2, "y": 4})):
        for id, position in places.items():
            mem.remember(f"Turn {id}.", id=id, namespace=namespace, session="s", position=position)
    rows = [mem.store.row_ids_of("one", id)[0] for id in "ab"]
    assert [turn.candidate.id for turn in mem.store.session_turns(["one"], rows[:1])] == ["a", "b"]


def test_parts_are_counted_in_their_own_namespace(mem: Semmem) -> None:
    mem.remember("Short.", namespace="one")
    mem.remember(" ".join(f"Sentence number {n} is here." for n in range(100)), id="long", namespace="two")
    parts = len(mem.store.row_ids_of("two", "long"))
    assert parts > 1
    assert [mem.stats(namespace=name).parts for name in ("one", "two")] == [0, parts]


def test_corrections_stay_while_a_sensitive_memory_is_there(mem: Semmem) -> None:
    mem.remember("Tea.", id="a")
    mem.remember("The code is 4711.", id="secret", sensitive=True)
    graph = graph_of(mem.store)
    graph.record_correction("default", (1, "one"), (2, "two"))
    mem.forget("a", hard=True)
    assert graph.corrections(["default"])["default"].into == {1: (2, "two")}
    mem.forget("secret", hard=True)
    assert graph.corrections(["default"])["default"].into == {}
