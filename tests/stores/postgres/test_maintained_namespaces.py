"""``maintain`` costs what has come since the last one, however many namespaces a store has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import psycopg
import pytest

from eval.path import Counter, installed
from semmem.client.memory import Semmem
from semmem.stores.postgres import postings, upkeep
from semmem.stores.postgres.typed import Connection
from tests.stores.audit import sql


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


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gather the namespaces in which rows to be joined are looked for from now on."""
    gathered: list[str] = []
    unsettled = upkeep.unsettled

    def looking(connection: Connection, settled: Mapping[str, int]) -> Any:
        gathered.extend(settled)
        return unsettled(connection, settled)

    monkeypatch.setattr(upkeep, "unsettled", looking)
    return gathered


def test_an_idle_maintain_makes_as_many_round_trips_for_thirty_namespaces_as_for_three(mem: Semmem) -> None:
    _remember(mem, range(3))
    mem.maintain()
    three = _trips(mem)
    _remember(mem, range(3, 30))
    mem.maintain()
    assert _trips(mem) == three


def test_only_the_namespace_that_has_got_memories_is_joined(mem: Semmem, joined: list[str]) -> None:
    _remember(mem, range(4))
    mem.maintain()
    assert joined == ["n0", "n1", "n2", "n3"]
    mem.remember("Ada Lovelace met Charles Babbage.", namespace="n2")
    mem.maintain()
    mem.maintain()
    assert joined[4:] == ["n2"]


def test_a_namespace_is_joined_anew_where_maintain_was_stopped_in_its_middle(mem: Semmem, joined: list[str]) -> None:
    _remember(mem, range(2))
    mem.maintain()
    joined.clear()
    _remember(mem, range(2, 3))
    mem.store.run(  # type: ignore[attr-defined]  # the segment is written, and maintain has not come to join it
        lambda c: c.execute("UPDATE namespace SET settled = segments - 1 WHERE namespace = 'n1'")
    )
    mem.maintain()
    assert joined == ["n1", "n2"]


def test_a_copy_and_a_renamed_namespace_are_joined_once(mem: Semmem, joined: list[str]) -> None:
    _remember(mem, range(1))
    mem.maintain()
    mem.copy_namespace("n0", "copied")
    mem.rename_namespace("n0", "renamed")
    mem.maintain()
    assert joined == ["n0", "copied", "renamed"]
    mem.maintain()
    assert joined[3:] == []
    assert {hit.id for hit in mem.recall("Who met Mary Somerville?", namespace="copied")} == {"m0", "m1"}
    assert {hit.id for hit in mem.recall("Who met Mary Somerville?", namespace="renamed")} == {"m0", "m1"}


def test_nothing_is_left_to_join_in_a_whole_namespace_of_which_only_the_latest_keys_were_joined(mem: Semmem) -> None:
    several = "SELECT count(*) FROM (SELECT FROM posting WHERE NOT lone GROUP BY key HAVING count(*) > 1) AS several"
    for turn, people in enumerate(("Ada Bob", "Bob Cleo", "Cleo Dora Ada", "Emma", "Bob Emma")):
        for number, name in enumerate(people.split()):
            mem.remember(f"{name} Quill met {name} Marsh at quay {turn} with owl {number}.", namespace="n0")
            mem.store.transaction(partial(postings.flush, namespaces=["n0"]))  # type: ignore[attr-defined]
        left = sql(mem, several)[0][0]
        assert (turn == 0) or left > 0
        mem.maintain()
        assert sql(mem, several) == [(0,)]
        whole = mem.store.transaction(partial(upkeep.unsettled, settled={"n0": 0}))  # type: ignore[attr-defined]
        assert whole["n0"].keys.size == 0


def test_keys_that_have_got_no_row_since_are_not_looked_up(mem: Semmem) -> None:
    """Rows that were to be joined before tell whether they are looked up again."""
    for number in range(2):
        mem.remember(f"Ada Quill met Bob Marsh, take {number}.", namespace="n0")
        mem.store.transaction(partial(postings.flush, namespaces=["n0"]))  # type: ignore[attr-defined]
    settled = sql(mem, "UPDATE namespace SET settled = segments RETURNING settled")[0][0]
    rows_of_a_key = "SELECT count(*) FROM posting GROUP BY key ORDER BY 1 DESC LIMIT 1"
    mem.remember("The quokka hums.", namespace="n0")
    mem.maintain()
    assert (settled, sql(mem, rows_of_a_key)) == (2, [(2,)])
    mem.remember("Ada Quill hums.", namespace="n0")
    mem.maintain()
    name = "SELECT count(*) FROM posting WHERE name = %s"
    assert (sql(mem, name, "Ada Quill"), sql(mem, name, "Bob Marsh")) == ([(1,)], [(2,)])


@pytest.mark.parametrize("verb", ["rename_namespace", "copy_namespace"])
def test_postings_that_come_under_a_name_whose_former_ones_were_joined_are_joined_too(mem: Semmem, verb: str) -> None:
    def segment(namespace: str, number: int) -> None:
        mem.remember(f"Ada Lovelace met Mary Somerville {number} times.", namespace=namespace)
        mem.store.transaction(partial(postings.flush, namespaces=[namespace]))  # type: ignore[attr-defined]

    for number, namespace in enumerate(("name", "name", "name", "source", "source")):
        segment(namespace, number)
        if namespace == "name":
            mem.maintain()
    mem.rename_namespace("name", "elsewhere")
    getattr(mem, verb)("source", "name")
    rows_of_a_key = "SELECT count(*) FROM posting WHERE namespace = 'name' GROUP BY key ORDER BY 1 DESC LIMIT 1"
    assert sql(mem, rows_of_a_key) == [(2,)]
    mem.maintain()
    assert sql(mem, rows_of_a_key) == [(1,)]


def _unsettled(mem: Semmem) -> list[str]:
    return [namespace for namespace, *_ in mem.store.rows("namespace_unsettled", {})]  # type: ignore[attr-defined]


def test_a_segment_that_comes_between_two_steps_of_maintain_is_left_to_the_next(
    mem: Semmem, joined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_ROWS_AT_ONCE", 20)  # so that a namespace is joined in several steps
    for _ in range(3):
        mem.remember_many([{"text": f"Ada Lovelace met person{n} at place{n}."} for n in range(40)])
        mem.store.transaction(partial(postings.flush, namespaces=["default"]))
    settle, came, steps = upkeep.settle, list[str](), list[int]()

    def settling(connection: Connection, since: Mapping[str, int], *rest: Any) -> Any:
        steps.extend(since.values())
        if len(steps) == 2:
            came.append("default")
            with psycopg.connect(mem.store.url, autocommit=True) as other:
                other.execute("UPDATE semmem.namespace SET segments = segments + 1, revision = revision + 1")
        return settle(connection, since, *rest)

    monkeypatch.setattr(upkeep, "settle", settling)
    mem.maintain()
    assert len(steps) > 2
    assert came == _unsettled(mem) == ["default"]
    mem.maintain()
    assert _unsettled(mem) == []
    mem.maintain()
    assert joined == ["default", "default"]


def test_a_range_of_keys_in_which_nothing_is_to_be_joined_is_passed_while_a_writer_holds_the_namespace(
    mem: Semmem,
) -> None:
    _remember(mem, range(1))
    mem.maintain()

    def work(connection: Connection) -> object:
        connection.execute("SET LOCAL lock_timeout TO '1s'")
        due = upkeep.unsettled(connection, {"n0": 0})
        assert (due["n0"].keys.size, due["n0"].packs) == (0, False)
        return upkeep.settle(connection, {"n0": postings.FIRST_KEY}, 2, due)

    with psycopg.connect(mem.store.url) as writer:
        writer.execute("UPDATE semmem.namespace SET revision = revision + 1 WHERE namespace = 'n0'")
        after, written, packed = mem.store.transaction(work)
        assert (abs(after["n0"]) < 3, written, packed) == (True, {}, 0)
        writer.rollback()
