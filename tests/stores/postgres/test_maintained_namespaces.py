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
    """Gather the namespaces whose rows are joined from now on."""
    gathered: list[str] = []
    settle = upkeep.settle

    def settling(connection: Connection, since: Mapping[str, int], *rest: Any) -> Any:
        gathered.extend(since)
        return settle(connection, since, *rest)

    monkeypatch.setattr(upkeep, "settle", settling)
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
    settle, came = upkeep.settle, list[str]()

    def settling(connection: Connection, since: Mapping[str, int], *rest: Any) -> Any:
        if len(joined) == 1 and not came:
            came.append("default")
            with psycopg.connect(mem.store.url, autocommit=True) as other:
                other.execute("UPDATE semmem.namespace SET segments = segments + 1, revision = revision + 1")
        return settle(connection, since, *rest)

    monkeypatch.setattr(upkeep, "settle", settling)
    mem.maintain()
    assert len(joined) > 1
    assert came == _unsettled(mem) == ["default"]
    mem.maintain()
    assert _unsettled(mem) == []
    mem.maintain()
    assert joined[-1] == "default"


def test_a_range_of_keys_in_which_nothing_is_to_be_joined_is_passed_while_a_writer_holds_the_namespace(
    mem: Semmem,
) -> None:
    _remember(mem, range(1))
    mem.maintain()

    def work(connection: Connection) -> object:
        connection.execute("SET LOCAL lock_timeout TO '1s'")
        return upkeep.settle(connection, {"n0": postings.FIRST_KEY}, 2, ())

    with psycopg.connect(mem.store.url) as writer:
        writer.execute("UPDATE semmem.namespace SET revision = revision + 1 WHERE namespace = 'n0'")
        after, written, packed = mem.store.transaction(work)
        assert (abs(after["n0"]) < 3, written, packed) == (True, {}, 0)
        writer.rollback()
