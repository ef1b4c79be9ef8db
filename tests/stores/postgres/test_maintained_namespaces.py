"""``maintain`` costs what has come since the last one, however many namespaces a store has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from eval.path import Counter, installed
from semmem.client.memory import Semmem
from semmem.stores.postgres import postings


def _remember(mem: Semmem, namespaces: range) -> None:
    mem.remember_many(
        [
            {"id": f"m{n}", "namespace": f"n{namespace}", "text": f"Ada Lovelace met Mary Somerville {n} times."}
            for namespace in namespaces
            for n in range(2)
        ]
    )


def _trips(mem: Semmem) -> Mapping[str, int]:
    counter = Counter()
    with installed(counter), counter.counting():
        mem.maintain()
    return counter.counts().trips


def test_an_idle_maintain_makes_as_many_round_trips_for_thirty_namespaces_as_for_three(mem: Semmem) -> None:
    _remember(mem, range(3))
    mem.maintain()
    three = _trips(mem)
    _remember(mem, range(3, 30))
    mem.maintain()
    assert _trips(mem) == three


def test_only_the_namespace_that_has_got_memories_is_joined(mem: Semmem) -> None:
    _remember(mem, range(4))
    mem.maintain()
    mem.remember("Ada Lovelace met Charles Babbage.", namespace="n2")
    trips = _trips(mem)
    assert (trips["compact_range"], trips["namespace_settle"]) == (1, 1)
    assert "namespace_settle" not in _trips(mem)


def test_a_namespace_is_joined_anew_where_maintain_was_stopped_in_its_middle(mem: Semmem) -> None:
    _remember(mem, range(2))
    mem.maintain()
    _remember(mem, range(2, 3))
    mem.store.run(  # type: ignore[attr-defined]  # the segment is written, and maintain has not come to join it
        lambda c: c.execute("UPDATE namespace SET settled = segments - 1 WHERE namespace = 'n1'")
    )
    assert _trips(mem)["compact_range"] == 2


def test_a_copy_and_a_renamed_namespace_are_joined_once(mem: Semmem) -> None:
    _remember(mem, range(1))
    mem.maintain()
    mem.copy_namespace("n0", "copied")
    mem.rename_namespace("n0", "renamed")
    mem.maintain()
    assert "compact_range" not in _trips(mem)
    assert {hit.id for hit in mem.recall("Who met Mary Somerville?", namespace="copied")} == {"m0", "m1"}
    assert {hit.id for hit in mem.recall("Who met Mary Somerville?", namespace="renamed")} == {"m0", "m1"}


def test_a_namespace_moved_under_a_name_whose_postings_were_joined_before_is_joined(mem: Semmem) -> None:
    for _ in range(2):
        _remember(mem, range(1))
        mem.maintain()
        mem.drop_namespace("n0")
    _remember(mem, range(1, 2))
    mem.store.transaction(partial(postings.flush, namespace="n1"))  # type: ignore[attr-defined]  # into one segment
    mem.rename_namespace("n1", "n0")
    assert _trips(mem)["namespace_settle"] == 1
