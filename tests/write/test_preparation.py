"""The next batch is checked and read while one is written, and what is stored is the same."""

from __future__ import annotations

import pickle
import random
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

import semmem
from semmem.client.connection import Connection
from semmem.client.memory import StoreSemmem
from semmem.embedders.hashing import Hashing
from semmem.model.errors import BadItem
from semmem.model.types import IngestReport
from semmem.write.preparation import Batch, Prepared, Reading, in_advance
from tests.stores.audit import check

NAMES = ("Ada Lovelace", "Bob Reed", "Grace Hopper", "Oslo", "Port Elm", "Acme Works")


def notes(count: int) -> list[dict[str, Any]]:
    """Return notes that name each other's subjects, repeat each other and change what others said."""
    chance = random.Random(11)
    found: list[dict[str, Any]] = []
    for number in range(count):
        one, other = chance.sample(NAMES, 2)
        text = f"{one} met {other} in room {chance.randrange(4)}. {one} has {chance.randrange(3)} boats."
        item: dict[str, Any] = {"id": f"n{number:03}", "text": text, "created_at": f"2026-01-01T00:{number:02}:00Z"}
        found.append(item | ({"title": one} if number % 3 == 0 else {}))
    return found


def test_a_list_of_many_batches_is_stored_as_a_stream_of_them_is(store_url: str) -> None:
    held = []
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        for namespace, items in (("list", notes(50)), ("stream", iter(notes(50)))):
            reports: list[IngestReport] = []
            report = mem.remember_many(items, namespace=namespace, batch_size=20, progress=reports.append)  # 20 > FEW
            assert [one.remembered for one in reports] == [20, 40, 50]
            assert (report.remembered, report.contradictions > 0) == (50, True)
            links = sorted(
                (one.from_id, one.type, one.to_id)
                for number in range(50)
                for one in mem.links(f"n{number:03}", namespace=namespace)
            )
            held.append((mem.graph_hash(namespace=namespace), report.contradictions, links))
    assert held[0] == held[1]
    check(store_url)


def test_an_item_that_is_refused_leaves_what_was_stored_before_and_nothing_behind_it(store_url: str) -> None:
    items = notes(40)
    items[25]["importance"] = 7
    reports: list[IngestReport] = []
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        with pytest.raises(BadItem, match=r"Item 25 \(id 'n025'\): importance must be a number from 0 to 1"):
            mem.remember_many(items, batch_size=10, progress=reports.append)
        assert [one.remembered for one in reports] == [10, 20]
        assert mem.stats().memories == 20
        report = mem.remember_many(items, batch_size=10, on_error="skip")
        assert (report.remembered, report.unchanged) == (19, 20)
        assert [(one.position, one.id) for one in report.rejected] == [(25, "n025")]


def test_of_a_stream_nothing_is_taken_before_the_batch_behind_it_is_stored(store_url: str) -> None:
    taken: list[str] = []

    def stream() -> Iterator[dict[str, Any]]:
        for item in notes(30):
            taken.append(item["id"])
            yield item

    seen: list[int] = []
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        mem.remember_many(stream(), batch_size=10, progress=lambda report: seen.append(len(taken)))
    assert seen == [10, 20, 30]


def test_the_next_is_prepared_in_advance_and_no_more() -> None:
    begun: list[int] = []

    def double(number: int) -> int:
        begun.append(number)
        return 2 * number

    with closing(in_advance(range(5), double)) as coming:
        assert next(coming) == 0
        assert next(coming) == 2
        assert set(begun) <= {0, 1, 2}
        assert list(coming) == [4, 6, 8]
    assert begun == [0, 1, 2, 3, 4]
    assert list(in_advance([], double)) == []


def test_an_error_in_advance_is_raised_in_its_turn() -> None:
    def inverse(number: int) -> float:
        return 1 / number

    with closing(in_advance([2, 1, 0, 4], inverse)) as coming:
        assert [next(coming), next(coming)] == [0.5, 1.0]
        with pytest.raises(ZeroDivisionError):
            next(coming)


class Elsewhere:
    """Reads batches as another process does: whatever is asked and answered is pickled."""

    def __init__(self, reading: Reading) -> None:
        self._reading = pickle.dumps(replace(reading, embedder=Hashing()))
        self.read_positions: list[int] = []

    def read(self, batches: Iterable[tuple[Batch, Collection[int]]], namespace: str) -> Generator[Prepared, None, None]:
        for batch, stored in batches:
            self.read_positions += [position for position, _ in batch if position not in stored]
            prepared = pickle.loads(self._reading)(batch, namespace, stored)
            yield pickle.loads(pickle.dumps(prepared))


def beside(mem: semmem.Semmem) -> tuple[semmem.Semmem, Elsewhere]:
    """Return a Semmem of which another process reads the batches, and that process."""
    here: Connection = mem._here
    readers = Elsewhere(here.ingest.reading())
    return StoreSemmem(here.read_by(readers)), readers


def mixed() -> list[dict[str, Any]]:
    """Return notes, among them a long one, one with another name, and a bad one."""
    items = notes(40)
    items[3]["text"] = "Ada Lovelace met Bob Reed in Oslo. " * 400
    items[7]["metadata"] = {"aliases": ["The Harbour"]}
    items[9]["importance"] = 7
    return items


def test_what_is_read_elsewhere_is_stored_as_what_is_read_here(store_url: str) -> None:
    held = []
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        other, _ = beside(mem)
        for namespace, by in (("here", mem), ("there", other)):
            report = by.remember_many(mixed(), namespace=namespace, batch_size=15, on_error="skip")
            links = sorted(
                (one.from_id, one.type, one.to_id)
                for item in mixed()
                if item["id"] != "n009"
                for one in mem.links(item["id"], namespace=namespace)
            )
            held.append((replace(mem.hashes(namespace=namespace)[namespace]), replace(report, seconds=0), links))
        assert held[0] == held[1]
        assert held[0][0].memories == 39
        with semmem.connect(store_url, embedder="hashing", pool_size=2) as fresh:
            assert [hit.memory.id for hit in fresh.recall("harbour", namespace="there", limit=1)] == ["n007"]
    check(store_url)


def test_an_import_that_is_read_elsewhere_goes_on_where_it_ended(store_url: str) -> None:
    items = notes(40)
    items[25]["importance"] = 7
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        other, readers = beside(mem)
        with pytest.raises(BadItem, match="Item 25"):
            other.import_items(items, batch_size=10, on_error="abort")
        assert readers.read_positions == [*range(30)]
        del items[25]["importance"]
        readers.read_positions.clear()
        report = other.import_items(items, batch_size=10)
        assert (report.remembered, report.unchanged) == (20, 20)
        assert readers.read_positions == [*range(20, 40)]


def test_what_was_read_by_another_embedder_is_embedded_again(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        other, readers = beside(mem)
        reading = pickle.loads(readers._reading)
        foreign = Hashing()
        foreign.fingerprint = "sha256:another"  # type: ignore[misc]
        readers._reading = pickle.dumps(replace(reading, embedder=foreign))
        mem.remember_many(notes(10), namespace="here")
        other.remember_many(notes(10), namespace="there")
        assert mem.hashes(namespace="here")["here"].vector == mem.hashes(namespace="there")["there"].vector
