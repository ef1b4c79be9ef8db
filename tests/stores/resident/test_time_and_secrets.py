"""Namespaces in memory with sensitive and time-bounded memories: every answer is the database's, whatever the clock."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from semmem.model.store import life_of
from semmem.model.types import Filters
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.resident.block import Block
from tests.stores.resident.trio import QUESTIONS, Trio, answer, change, item

HOURS = (-49, -25, -23, -1, 1, 23, 25, 49)
SHIFT = """UPDATE semmem.memory SET expires_at = expires_at - %(by)s, valid_from = valid_from - %(by)s,
    valid_to = valid_to - %(by)s WHERE namespace = %(namespace)s"""


def bounded(number: int, chance: random.Random) -> dict[str, Any]:
    """Return a memory that is sensitive, expires, or is valid for a time that begins or ends within two days."""
    now = datetime.now(UTC)
    at = now + timedelta(hours=chance.choice(HOURS), minutes=30)
    more: dict[str, Any] = {
        "sensitive": {"sensitive": True},
        "expires": {"expires_at": max(at, now + timedelta(minutes=30))},  # the past is refused
        "begins": {"valid_from": at},
        "ends": {"valid_to": at},
        "both": {"valid_from": at, "valid_to": at + timedelta(hours=24)},
    }[("sensitive", "expires", "begins", "ends", "both")[number % 5]]
    return {**item(number, chance), "id": f"b{number}", **more}


def fill(trio: Trio, space: str) -> None:
    """Store seventy plain memories, forty with bounds, and links that take effect when the newer memory is valid."""
    change(trio.writer, space, ("many", 0))
    chance = random.Random(4)
    trio.writer.remember_many([bounded(n, chance) for n in range(40)], namespace=space)
    for number in range(0, 40, 3):
        trio.writer.link(f"b{number}", "supersedes", f"m{number}", namespace=space)


@contextmanager
def clock_moved(url: str, space: str, by: timedelta) -> Iterator[None]:
    """Move all bounds of a namespace against the clock, which no sequence number shows, and back."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SHIFT, {"by": by, "namespace": space})
        yield
        connection.execute(SHIFT, {"by": -by, "namespace": space})


def test_one_sensitive_or_bounded_memory_keeps_no_namespace_out_of_memory(trio: Trio, space: str) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    trio.writer.remember("The heron nests here.", namespace=space)
    trio.writer.remember("The pin is 4711.", namespace=space, sensitive=True)
    trio.writer.remember("The ferry is late.", namespace=space, expires_at=tomorrow)
    trio.writer.remember("The ledger is open.", namespace=space, valid_to=tomorrow)
    trio.warm(space)
    for text in ("The pin is 4712.", "The ferry has come."):
        trio.writer.remember(text, namespace=space, sensitive="pin" in text, valid_from=tomorrow)
        trio.kept.recall("ferry", namespace=space)
        assert space in trio.models


@pytest.mark.slow
def test_answers_are_equal_with_and_without_residence_while_the_clock_goes_back_and_forth(
    trio: Trio, module_url: str, space: str
) -> None:
    fill(trio, space)
    trio.warm(space)
    hit_sets = set()
    hows: list[dict[str, Any]] = [{}, {"filters": {"tags": ["few"]}}, {"exclude": ["m1", "b2"]}, {"recipe": "hybrid"}]
    for days in (0, 1, -1, 2, 0):
        with clock_moved(module_url, space, timedelta(days=days)):
            for how in hows:
                for question in QUESTIONS:
                    expected = answer(trio.plain, question, namespace=space, **how)
                    hit_sets.add((question, str(how), tuple(expected["heads"])))
                    for _ in range(3):  # the last is ranked before the database is asked
                        assert answer(trio.kept, question, namespace=space, **how) == expected, (days, how)
                    assert space in trio.models
    assert len(hit_sets) > len(hows) * len(QUESTIONS)  # the clock made a difference


@pytest.mark.slow
def test_a_bound_that_passes_between_two_recalls_counts_at_once(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))

    def found() -> list[str]:
        hits = trio.kept.recall("barometer", namespace=space, recipe="lexical")
        plain = trio.plain.recall("barometer", namespace=space, recipe="lexical")
        assert [hit.memory.id for hit in hits] == [hit.memory.id for hit in plain]
        return [hit.memory.id for hit in hits]

    for seconds in (5, 15, 60):  # a machine that stalls until the bound has passed proves nothing: then again
        soon = datetime.now(UTC) + timedelta(seconds=seconds)
        trio.writer.remember("the barometer fell", id="expires", namespace=space, expires_at=soon)
        trio.writer.remember("the barometer rose", id="ends", namespace=space, valid_to=soon)
        trio.writer.remember("the barometer stood", id="begins", namespace=space, valid_from=soon)
        trio.warm(space)
        before = [found() for _ in range(3)]
        if datetime.now(UTC) < soon:
            break
        for id in ("ends", "begins"):  # which are not stored again with another time
            trio.writer.forget(id, namespace=space)
    for ids in before:
        assert sorted(ids[:2]) == ["ends", "expires"]  # what is not valid stands behind
        assert ids[2:] == ["begins"]
    time.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 0.05)
    for _ in range(3):
        assert found() == ["begins", "ends"]
    assert space in trio.models


def test_a_memory_that_becomes_sensitive_and_open_again_leaves_and_enters_what_is_in_memory(
    trio: Trio, space: str
) -> None:
    change(trio.writer, space, ("many", 0))
    trio.writer.remember("the barometer fell", id="b", namespace=space)
    trio.warm(space)
    for sensitive, ids in ((True, []), (False, ["b"]), (True, [])):
        trio.writer.update("b", sensitive=sensitive, namespace=space)
        for _ in range(3):
            found = trio.kept.recall("barometer", namespace=space, recipe="lexical")
            assert [hit.memory.id for hit in found] == ids
        assert space in trio.models


@pytest.mark.slow
def test_a_recall_of_an_earlier_time_is_the_same_from_memory_as_from_the_database(trio: Trio, space: str) -> None:
    fill(trio, space)
    times = [datetime.now(UTC)]
    for step in (("update", 3), ("few", 90), ("forget", 5), ("update", 11), ("link", 7)):
        change(trio.writer, space, step)
    times.append(datetime.now(UTC))
    trio.warm(space)
    change(trio.writer, space, ("update", 40))  # the model in memory has a block of what came since
    trio.kept.recall("ferry", namespace=space)
    assert len(life_of(trio.plain.store).earlier_at(space, times[0], 99)) >= 2  # versions that were replaced since
    missed = trio.models.asked.missed
    hows: list[dict[str, Any]] = [{}, {"filters": {"tags": ["few"]}}, {"exclude": ["m1", "b2"]}, {"recipe": "lexical"}]
    for at in times:
        for how, question in zip(hows, QUESTIONS, strict=True):
            expected = answer(trio.plain, question, namespace=space, as_of=at, **how)
            assert answer(trio.kept, question, namespace=space, as_of=at, **how) == expected, (at, how, question)
            assert len(expected["heads"]) == 6
    assert trio.models.asked.missed == missed  # memory answered all of them


def test_the_walk_of_a_recall_of_an_earlier_time_goes_by_places_of_keys_too(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(trio, space)
    at, hops, by_places = datetime.now(UTC), [], Block.shared_concepts
    monkeypatch.setattr(Block, "shared_concepts", lambda block, *which: hops.append(which) or by_places(block, *which))
    trio.warm(space)
    for question in QUESTIONS:
        hops.clear()
        asked = answer(trio.kept, question, namespace=space, as_of=at)
        assert asked == answer(trio.plain, question, namespace=space, as_of=at)
        assert hops != []


def test_the_hits_and_the_scope_beside_them_are_those_that_are_read_apart(trio: Trio, space: str) -> None:
    fill(trio, space)
    store = trio.plain.store
    assert isinstance(store, PostgresStore)
    row_ids = [row_id for id in ("m1", "m2", "b2", "b3") for row_id in store.row_ids_of(space, id)]
    scope, memories, wholes = store.scope_and_memories((space,), Filters(), (), row_ids, ())
    assert scope == store.scope((space,), Filters(), ())
    assert len(scope.lapsed) > 0
    assert len(memories) == len(row_ids) == 4
    assert (memories, wholes) == (store.indexed_memories((space,), row_ids), {})
    nobody = store.scope_and_memories(("nobody's",), Filters(), (), row_ids, ())
    assert nobody == (store.scope(("nobody's",), Filters(), ()), {}, {})
