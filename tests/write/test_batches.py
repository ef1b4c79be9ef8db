"""Batches: what is stored of one with a bad item, of a stream, and of a transaction that fails."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import BadItem, Conflict
from semmem.model.types import IngestReport
from semmem.stores.postgres import write
from semmem.stores.postgres.postings import FLUSH_AT
from tests.stores.audit import check, contents, sql
from tests.write.sentences import items


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    """A Semmem with the hashing embedder on an empty store."""
    with semmem.connect(store_url, embedder="hashing", pool_size=3, keep_forgotten_days=0) as mem:
        yield mem


def test_a_batch_with_a_bad_item_is_not_stored_and_earlier_batches_stay(mem: Semmem) -> None:
    given = [*items(5), {"id": "bad", "text": ""}, *items(8)[6:]]
    seen: list[IngestReport] = []
    with pytest.raises(BadItem, match=r"^Item 5 \(id 'bad'\): The text is empty") as caught:
        mem.remember_many(given, batch_size=2, progress=seen.append)
    assert (caught.value.position, caught.value.id) == (5, "bad")
    assert [r.remembered for r in seen] == [2, 4]
    assert sorted(m.id for m in mem.list()) == ["m0", "m1", "m2", "m3"]
    check(mem)


def test_skipping_stores_the_good_items_and_reports_the_bad_ones_in_order(mem: Semmem) -> None:
    mem.remember("Other words.", id="m2")
    given: list[Any] = items(6)
    given[1] = {"id": 7, "text": "a"}
    given[4] = "no mapping"
    report = mem.remember_many(given, batch_size=4, on_error="skip")
    assert [(r.position, r.id) for r in report.rejected] == [(1, "7"), (2, "m2"), (4, None)]
    assert "id must be a string, not int" in report.rejected[0].reason
    assert "already in the store with another text and created_at; call update" in report.rejected[1].reason
    assert "must be a mapping" in report.rejected[2].reason
    assert (report.remembered, report.unchanged, report.read) == (3, 0, 6)
    assert sorted(m.id for m in mem.list()) == ["m0", "m2", "m3", "m5"]
    check(mem)


def test_a_conflict_aborts_its_batch_and_says_which_item_it_was(mem: Semmem) -> None:
    mem.remember("Other words.", id="m3")
    with pytest.raises(Conflict, match=r"^Item 3: The id 'm3' is already in the store .* call update"):
        mem.remember_many(items(5), batch_size=10)
    assert mem.stats().memories == 1
    check(mem)


def test_an_item_given_twice_in_a_batch_is_stored_once_and_another_of_its_id_is_a_conflict(mem: Semmem) -> None:
    one, other = {"id": "a", "text": "Tea."}, {"id": "a", "text": "Rum."}
    report = mem.remember_many([one, one, other, one], on_error="skip")
    assert (report.remembered, report.unchanged, [r.position for r in report.rejected]) == (1, 2, [2])
    assert "item 0 of the same batch" in report.rejected[0].reason
    with pytest.raises(BadItem, match=r"Item 1 .*item 0 of the same batch"):
        mem.remember_many([{"id": "b", "text": "Tea."}, {"id": "b", "text": "Rum."}])
    twice = mem.remember_many([other, other], on_error="skip")  # neither is stored, so neither is unchanged
    assert (twice.remembered, twice.unchanged, [r.position for r in twice.rejected]) == (0, 0, [0, 1])
    assert mem.get("a").text == "Tea."


def test_one_id_in_two_namespaces_of_one_batch_is_two_memories(mem: Semmem) -> None:
    given = [{"id": "a", "text": "Tea."}, {"id": "a", "text": "Rum.", "namespace": "other"}]
    assert mem.remember_many(given, namespace="one").remembered == 2
    assert (mem.get("a", namespace="one").text, mem.get("a", namespace="other").text) == ("Tea.", "Rum.")
    check(mem)


def test_an_unknown_key_is_an_error_that_lists_the_known_ones(mem: Semmem) -> None:
    with pytest.raises(BadItem, match="Item 0: A memory has no field 'user'; use text, namespace, id, title"):
        mem.remember_many([{"text": "Tea.", "user": "ada"}])


@pytest.mark.slow
def test_a_stream_is_read_batch_by_batch_and_never_held_whole(mem: Semmem) -> None:
    class Item(dict[str, Any]):
        """A dict that can be referred to weakly."""

    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    class Ref:
        """Stands in the item, hashable, and lives as long as it does."""

    def stream() -> Iterator[Mapping[str, Any]]:
        nonlocal most
        for n in range(400):
            ref = Ref()
            alive.add(ref)
            item = Item(text=f"memory {n}")
            item.ref = ref  # type: ignore[attr-defined]
            most = max(most, len(alive))
            yield item

    totals: list[int] = []
    report = mem.remember_many(stream(), batch_size=20, progress=lambda r: totals.append(r.remembered))
    gc.collect()
    assert report.remembered == 400
    assert totals == list(range(20, 401, 20))
    assert most <= 45  # a batch, the one before it at most, and what is in hand


def test_progress_is_called_only_when_the_batch_can_be_seen_by_others(mem: Semmem) -> None:
    seen: list[tuple[int, int]] = []

    def look(report: IngestReport) -> None:
        seen.append((report.remembered, sql(mem, "SELECT count(*) FROM memory")[0][0]))

    mem.remember_many(items(25), batch_size=10, progress=look)
    assert seen == [(10, 10), (20, 20), (25, 25)]


def test_an_error_of_the_stream_itself_keeps_the_batches_before_it(mem: Semmem) -> None:
    def stream() -> Iterator[Mapping[str, Any]]:
        yield from items(25)
        raise OSError("the file is gone")

    with pytest.raises(OSError, match="the file is gone"):
        mem.remember_many(stream(), batch_size=10)
    assert mem.stats().memories == 20
    check(mem)


def test_a_failure_at_the_end_of_a_transaction_leaves_nothing_of_it(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember_many(items(10))
    before = contents(mem)
    few, many = write.index_few, write.index_many

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def fails(*arguments: Any) -> None:
            real(*arguments)
            raise RuntimeError("power cut")

        return fails

    monkeypatch.setattr(write, "index_few", failing(few))
    monkeypatch.setattr(write, "index_many", failing(many))
    for batch in (items(20)[10:], items(40)[10:], items(FLUSH_AT + 40)[10:]):
        with pytest.raises(RuntimeError, match="power cut"):
            mem.remember_many(batch, batch_size=1000)
    with pytest.raises(RuntimeError, match="power cut"):
        mem.remember("Tea.")
    assert contents(mem) == before
