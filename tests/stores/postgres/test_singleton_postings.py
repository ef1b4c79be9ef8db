"""The postings of keys that one memory alone has are packed by maintain; nobody who reads or writes can tell."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from semmem.client.memory import Semmem
from semmem.stores.packed_postings import POSTING
from semmem.stores.postgres import upkeep
from semmem.stores.postgres.postings import FIRST_KEY, LAST_KEY, flush
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.postgres.upkeep import LONE_FULL
from tests.stores.audit import check, singleton, sql

NAMES = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Köln", "Turin")
QUESTIONS = ("Who met Ada Lovelace?", "owl 17", "What does zebra7 say of Turin?", "gnu3 and owl")


def items(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {"id": f"m{n}", "text": f"{NAMES[n % 5]} met owl {n} and zebra{n} near gnu{n // 2}.", "title": f"Owl {n}"}
        for n in range(first, last)
    ]


def answers(mem: Semmem) -> list[Any]:
    """Return what can be read of the postings: recalls with their reasons, concepts, counts."""
    found: list[Any] = []
    for question in QUESTIONS:
        answer = mem.recall(question, limit=8)
        found.append([(hit.id, hit.score, dict(hit.components)) for hit in answer])
        found.append(answer.explain(answer[0].id).as_dict() if len(answer) else None)
    stats = mem.stats()
    return [*found, mem.concepts(limit=1000), stats.concepts, stats.mentions, mem.graph_hash()]


def count(mem: Semmem) -> tuple[int, int]:
    """Return how many keys of one memory have rows of their own, and how many are packed."""
    return (sql(mem, "SELECT count(*) FROM posting WHERE lone")[0][0], len(singleton(mem)))


@pytest.mark.slow
def test_what_is_packed_is_read_written_and_forgotten_as_before(mem: Semmem) -> None:
    mem.remember_many(items(0, 70), batch_size=70)
    apart, _ = count(mem)
    before = answers(mem)
    mem.maintain()
    assert count(mem) == (0, apart)
    assert answers(mem) == before
    mem.remember("Who met zebra7? A gnu34 did.", id="pending")  # a key that one memory has and one that waits
    assert {hit.id for hit in mem.recall("zebra7", limit=2)} == {"m7", "pending"}
    mem.remember_many(items(70, 140), batch_size=70)
    mem.remember_many([{"text": f"The zebra{n} and owl {n} slept."} for n in range(64)], batch_size=64)
    check(mem)
    before = answers(mem)
    mem.maintain()
    assert answers(mem) == before
    check(mem)
    for number in range(0, 140, 3):
        mem.forget(f"m{number}")
    check(mem)
    mem.update("m1", text="Nothing of what it said.")
    check(mem)
    left = mem.graph_hash()
    assert mem.rebuild(extract=True).read > 0
    mem.maintain()
    assert mem.graph_hash() == left
    check(mem)
    mem.forget(filters={"created_before": "9999-01-01"})
    assert (singleton(mem), sql(mem, "SELECT count(*) FROM posting")) == ({}, [(0,)])


def test_keys_are_packed_a_range_at_a_time_and_each_is_in_one_row(mem: Semmem) -> None:
    mem.remember_many(items(0, 70), batch_size=70)
    apart, _ = count(mem)
    for steps in (1, 7):
        since, went = {"default": FIRST_KEY}, 0
        while since["default"] <= LAST_KEY:
            before = count(mem)
            due = mem.store.run(partial(upkeep.unsettled, settled={"default": 0}))
            step = partial(
                upkeep.settle, since=since, steps=steps, due={"default": due["default"]._replace(packs=True)}
            )
            since, _, packed = mem.store.transaction(step)
            assert count(mem) == (before[0] - packed, before[1] + packed)
            went += packed
            check(mem)
        if steps == 1:
            assert (went, count(mem)) == (apart, (0, apart))
            assert sql(mem, "SELECT count(*) FROM lone_posting") == [(-(-apart // LONE_FULL),)]
            mem.remember_many(items(70, 140), batch_size=70)
    assert count(mem)[0] == 0


def unsettled(mem: Semmem, namespace: str = "default") -> tuple[int, bool]:
    """Return in how many steps the whole namespace is joined and packed, and whether it is packed."""
    due = mem.store.run(partial(upkeep.unsettled, settled={namespace: 0}))[namespace]
    return due.steps, due.packs


@pytest.mark.slow
def test_a_part_of_the_keys_says_how_many_there_are(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    mem.remember_many(items(0, 140), batch_size=70)
    exact = unsettled(mem)
    apart, _ = count(mem)
    several = "SELECT count(*) AS n FROM posting WHERE NOT lone GROUP BY key HAVING count(*) > 1"
    shared = int(sql(mem, f"SELECT coalesce(sum(n), 0) FROM ({several}) AS several")[0][0])
    assert exact == (1, True)
    monkeypatch.setattr(upkeep, "_ROWS_AT_ONCE", 1)
    assert unsettled(mem) == (shared + apart, True)
    monkeypatch.setattr(upkeep, "_SAMPLED", 4)
    monkeypatch.setattr(upkeep, "_SAMPLE", 1)
    steps, packs = unsettled(mem)
    assert packs
    assert (steps - shared) % 4 == 0
    assert abs(steps - shared - apart) < apart / 2
    mem.maintain()
    assert unsettled(mem, "nothing") == (0, False)
    assert unsettled(mem) == (0, False)


def test_a_few_new_keys_are_packed_when_they_are_an_eighth_of_the_others(mem: Semmem) -> None:
    mem.remember_many(items(0, 140), batch_size=140)
    mem.maintain()
    _, packed = count(mem)
    mem.remember("The quokka hums.", id="few")
    mem.maintain()
    few, same = count(mem)
    assert (few > 0, same) == (True, packed)
    mem.remember_many(items(140, 210), batch_size=70)
    mem.maintain()
    assert count(mem)[0] == 0
    check(mem)


def test_a_dropped_namespace_takes_its_packed_keys_along_and_leaves_those_of_newer_memories(mem: Semmem) -> None:
    mem.remember_many(items(0, 70), batch_size=70)
    upto = sql(mem, "SELECT ords FROM namespace")[0][0]
    mem.remember_many(items(70, 140), batch_size=70)
    mem.maintain()
    sql(mem, "UPDATE namespace SET dropping = %s", upto)
    mem.maintain()
    assert mem.stats().memories == 70
    row_ids = [int(np.frombuffer(entry, dtype=POSTING)["ord"][0]) for _, _, entry in singleton(mem).values()]
    assert min(row_ids) == upto + 1
    assert max(row_ids) == upto + 70
    assert mem.recall("zebra100")[0].id == "m100"


def test_a_key_that_several_memories_of_another_namespace_have_is_that_of_one_memory_here(mem: Semmem) -> None:
    mem.remember_many([{**item, "namespace": "other"} for item in items(0, 10)], batch_size=10)
    mem.maintain()
    mem.remember_many([{**items(0, 1)[0], "namespace": "here"}])
    mem.maintain()
    assert sql(mem, "SELECT name FROM posting WHERE namespace = 'here'") == [("Owl 0",)]  # what it is about
    assert sql(mem, "SELECT count(*) FROM posting WHERE namespace = 'other'")[0][0] > 0
    check(mem)


def test_a_flush_takes_the_pending_memories_of_its_namespace_alone(mem: Semmem) -> None:
    """Row ids are those of a namespace, so both memories have the first."""
    assert isinstance(mem.store, PostgresStore)
    for namespace, text in (("here", "Ada Lovelace met Bob."), ("there", "Zebra Street leads to Gnu Hill.")):
        mem.remember(text, id="a", namespace=namespace)
    assert mem.store.transaction(partial(flush, namespaces=["here"])) == 1
    names = sql(mem, "SELECT namespace, name FROM semmem.posting WHERE name IN ('Ada Lovelace', 'Gnu Hill')")
    assert names == [("here", "Ada Lovelace")]
    assert mem.store.rows("pending_namespaces", {}) == [("there", 1)]
