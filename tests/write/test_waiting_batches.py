"""A bulk: the batches of one call stay pending until enough keys wait, and its end flushes the rest."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import StoreError
from semmem.stores.postgres import postings, upkeep
from semmem.stores.postgres.store import PostgresStore
from semmem.text.passages import term_key
from semmem.write.screening import CredentialWarning
from tests.stores.audit import check, sql
from tests.write.sentences import items

DUE = postings.NamespaceBacklog(0, postings.BULK_KEYS, 0)
"""Of a namespace whose pending memories are enough for a flush beside a bulk."""


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    """A Semmem with the hashing embedder on an empty store."""
    with semmem.connect(store_url, embedder="hashing", pool_size=3) as mem:
        yield mem


def many(count: int) -> list[dict[str, Any]]:
    """Return items of which each has a word of its own."""
    return [{**item, "text": f"{item['text']} The gnu{at} came."} for at, item in enumerate(items(count))]


def waiting(mem: Semmem) -> int:
    """Return how many memories are pending."""
    return mem.stats().pending


def test_the_batches_of_a_long_list_wait_and_are_recalled_meanwhile_and_its_end_folds_them(mem: Semmem) -> None:
    seen: list[tuple[int, int]] = []

    def look(report: Any) -> None:
        last = report.remembered - 1
        assert mem.recall(f"When did gnu{last} come?", limit=1).hits[0].id == f"m{last}"
        seen.append((report.remembered, waiting(mem)))

    mem.remember_many(many(240), batch_size=80, progress=look)
    assert seen == [(80, 80), (160, 160), (240, 240)]
    assert (waiting(mem), mem.stats().memories) == (0, 240)
    check(mem)


def test_what_a_bulk_stores_is_what_its_items_store_without_one(store_url: str, mem: Semmem) -> None:
    titled = [{**item, "title": f"Number {at % 7}"} if at % 3 == 0 else item for at, item in enumerate(many(150))]
    mem.remember_many([{**item, "namespace": "bulk"} for item in titled], batch_size=40)
    mem.remember_many([{**item, "namespace": "whole"} for item in titled], batch_size=150)
    mem.maintain()
    query = "SELECT key, sum(n), sum(subjects) FROM posting WHERE namespace = %s GROUP BY key ORDER BY key"
    with psycopg.connect(store_url, options="-c search_path=semmem,public") as connection:
        bulk, whole = (connection.execute(query, (name,)).fetchall() for name in ("bulk", "whole"))
    assert bulk == whole
    assert len(bulk) > 20
    check(mem)


def test_enough_waiting_keys_are_folded_before_the_end(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 300)
    seen: list[int] = []
    mem.remember_many(many(200), batch_size=20, progress=lambda _: seen.append(waiting(mem)))
    assert max(seen) < 120  # of the batches before, all but the last were flushed when the next one was written
    assert waiting(mem) < 64
    check(mem)


def test_the_next_batch_is_prepared_while_one_is_folded_and_written_after_it(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 1)
    prepared, stored = threading.Event(), list[int]()
    real = postings.flush

    def flush(connection: Any, namespaces: Sequence[str], limit: int) -> int:
        assert prepared.wait(30)  # it would not come while the writer waited for this
        stored.append(connection.execute("SELECT count(*) FROM memory").fetchone()[0])
        return real(connection, namespaces, limit)

    def stream() -> Iterator[Mapping[str, Any]]:
        for at, item in enumerate(many(60)):
            if at == 59:
                prepared.set()
            yield item

    monkeypatch.setattr(postings, "flush", flush)
    mem.remember_many(stream(), batch_size=30)
    assert (stored[0], stored[-1], waiting(mem)) == (30, 60, 0)
    check(mem)


@pytest.mark.parametrize("error", [StoreError("The disk is full."), MemoryError(), ValueError("nobody thought of it")])
def test_the_end_of_a_bulk_folds_what_failed_before_and_then_there_is_nothing_to_report(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 1)
    real, calls = postings.flush, list[int]()

    def flush(*arguments: Any, **keywords: Any) -> int:
        calls.append(1)
        if len(calls) <= 3:
            raise error
        return real(*arguments, **keywords)

    monkeypatch.setattr(postings, "flush", flush)
    report = mem.remember_many(many(90), batch_size=30)
    assert (report.remembered, report.degraded, waiting(mem)) == (90, {}, 0)
    check(mem)


def test_a_batch_with_several_times_as_many_keys_is_folded_whole(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 100)
    mem.remember_many(iter(many(120)), batch_size=60)
    # by the end nothing would be left either way, so the end is not asked
    monkeypatch.setattr(PostgresStore, "end_bulk", lambda self, namespaces: self._flushing.finish() or {})
    mem.remember_many(iter({**item, "id": f"b{at}"} for at, item in enumerate(many(120))), batch_size=60)
    assert waiting(mem) < 30


def test_the_end_of_a_bulk_waits_for_another_one_that_folds_what_comes_first(
    mem: Semmem, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, waited = threading.Event(), threading.Event()
    own = upkeep._owned

    def wait(connection: Any, namespaces: Sequence[str]) -> None:
        waited.set()
        own(connection, namespaces)

    def other() -> None:
        with semmem.connect(store_url, embedder="hashing", pool_size=1) as another:

            def flush(connection: Any) -> None:
                assert postings.flush(connection, ["default"]) == 1
                held.set()
                assert waited.wait(30)

            another.store.transaction(flush)  # type: ignore[attr-defined]

    def look(report: Any) -> None:
        if report.remembered == 120:
            monkeypatch.setattr(postings, "BULK_KEYS", 1)  # so that a flush takes one memory
            others.append(pool.submit(other))
            assert held.wait(30)

    monkeypatch.setattr(upkeep, "_owned", wait)
    others: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        report = mem.remember_many(many(120), batch_size=60, progress=look)
        others[0].result(30)
    assert (report.degraded, waiting(mem)) == ({}, 0)
    check(mem)


def test_a_join_that_failed_beside_a_bulk_is_made_by_its_end_or_reported(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 1)
    monkeypatch.setattr(postings, "BULK_COMPACT_AT", 3)
    real, calls = postings.compact, list[int]()

    def compact(*arguments: Any, **keywords: Any) -> int:
        calls.append(1)
        if len(calls) <= most:
            raise StoreError("The disk is full.")
        return real(*arguments, **keywords)

    monkeypatch.setattr(postings, "compact", compact)
    most = 1
    assert mem.remember_many(many(60), batch_size=10, namespace="good").degraded == {}
    most = 10**6
    report = mem.remember_many(many(60), batch_size=10, namespace="bad")
    assert report.degraded == {"maintain": "Flushing is left to `semmem maintain`: The disk is full."}
    left = dict(sql(mem, "SELECT namespace, count(*) FROM fresh GROUP BY namespace"))
    assert left.get("good", 0) < 3 <= left["bad"]
    monkeypatch.setattr(postings, "compact", real)
    check(mem)


def test_nobody_waits_for_the_fold_of_another_bulk_and_closing_waits_for_none(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, leave = threading.Event(), threading.Event()

    def flush_and_compact(*_: Any, **__: Any) -> int:
        begun.set()
        leave.wait(30)
        return 0

    with semmem.connect(store_url, embedder="hashing", pool_size=4) as mem:
        flushing = vars(mem.store)["_flushing"]
        monkeypatch.setattr(postings, "flush_and_compact", flush_and_compact)
        flushing.begin(["default"], {"default": DUE})
        assert begun.wait(30)
        with ThreadPoolExecutor(1) as other:
            other.submit(flushing.finish).result(30)
    assert not leave.is_set()
    leave.set()
    flushing.finish()


def test_half_of_the_connections_are_left_to_recalls(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leave, callers = threading.Event(), list[str]()

    def flush_and_compact(*_: Any, **__: Any) -> int:
        callers.append(threading.current_thread().name)
        if callers[-1] == "semmem-flush":
            leave.wait(30)
        return 0

    with semmem.connect(store_url, embedder="hashing", pool_size=4) as mem:
        flushing = vars(mem.store)["_flushing"]
        monkeypatch.setattr(postings, "flush_and_compact", flush_and_compact)
        flushing.begin(["one", "two", "three"], {"one": DUE, "two": DUE, "three": DUE})
        leave.set()
        flushing.finish()
    assert sorted(callers) == sorted(["semmem-flush", "semmem-flush", threading.current_thread().name])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_does_not_wait_for_a_fold_of_its_parent(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = threading.Event()
    with semmem.connect(store_url, embedder="hashing", pool_size=4) as mem:
        flushing = vars(mem.store)["_flushing"]
        monkeypatch.setattr(postings, "flush_and_compact", lambda *_, **__: 0 if leave.wait(30) else 1)
        flushing.begin(["default"], {"default": DUE})
        if not (child := os.fork()):
            flushing.finish()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        leave.set()
        flushing.finish()


def test_an_import_leaves_out_items_of_an_impossible_namespace_and_folds_the_others(mem: Semmem) -> None:
    items = [*many(100), {"text": "x", "namespace": "a\ud800c"}, {"text": "x", "namespace": "a\0b", "id": "y"}]
    report = mem.import_items(items, batch_size=60, on_error="skip")
    assert (report.remembered, len(report.rejected), report.degraded, waiting(mem)) == (100, 2, {}, 0)


def test_folds_are_made_at_once_where_there_is_one_connection(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 1)
    seen: list[int] = []
    with semmem.connect(store_url, embedder="hashing", pool_size=1) as mem:
        mem.remember_many(iter(many(60)), batch_size=30, progress=lambda _: seen.append(waiting(mem)))
    assert seen == [0, 0]


def test_folds_are_made_at_once_where_no_thread_can_be_started(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 1)

    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "semmem-flush":
            raise RuntimeError("can't start new thread at interpreter shutdown")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    seen: list[int] = []
    mem.remember_many(iter(many(60)), batch_size=30, progress=lambda _: seen.append(waiting(mem)))
    assert seen == [0, 0]


@pytest.mark.slow
def test_enough_waiting_keys_of_small_batches_are_folded_before_the_end(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "BULK_KEYS", 300)
    seen: list[int] = []
    mem.remember_many(many(200), batch_size=5, progress=lambda _: seen.append(waiting(mem)))
    assert 5 < max(seen) < 100
    assert waiting(mem) < 64
    check(mem)


@pytest.mark.parametrize(("more", "taken"), [(0, 2), (1, 3)])
def test_a_fold_takes_no_more_than_the_first_memories_of_a_bulk_that_have_so_many_keys(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, more: int, taken: int
) -> None:
    flushed: list[int] = []

    def stop(_: Any) -> None:
        sizes = [size for (size,) in sql(mem, "SELECT bulk FROM pending ORDER BY ord")]
        assert len(sizes) == 90
        monkeypatch.setattr(postings, "BULK_KEYS", sizes[0] + sizes[1] + more)  # so many have the first two, or fewer
        monkeypatch.setattr(upkeep.postings, "flush", flush)

    real = postings.flush

    def flush(connection: Any, namespaces: Sequence[str], limit: int = 1024) -> int:
        count = real(connection, namespaces, limit)
        flushed.append(count)
        return count

    mem.remember_many(iter(many(90)), batch_size=90, progress=stop)
    assert flushed[0] == taken
    assert sum(flushed) == 90
    assert waiting(mem) == 0


def test_a_bulk_joins_the_rows_of_a_key_that_has_enough_new_ones_and_leaves_one_that_lacks_a_row(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "COMPACT_AT", 2)
    owl, gnu = (term_key(word) for word in ("owl", "gnu"))

    def fold(text: str) -> None:
        mem.remember(text)
        mem.store.transaction(partial(postings.flush, namespaces=["default"]))

    def rows() -> list[tuple[int, int]]:
        keys = "SELECT key, count(*) FROM posting WHERE key = ANY(%s) GROUP BY key"
        counts = dict(sql(mem, keys, [owl, gnu]))
        return [counts[owl], counts[gnu]]

    fold("An owl met a gnu.")
    mem.store.transaction(partial(postings.mark_merged, segments={"default": [1]}))  # no new row any more
    fold("The owl left, the gnu stayed.")
    fold("The owl came back.")
    assert rows() == [3, 2]
    mem.store.transaction(partial(postings.compact, namespace="default", bulk=True))
    assert rows() == [1, 2]  # of its rows two are new, of the other's one
    check(mem)


def test_one_memory_beside_a_bulk_does_not_fold_it(mem: Semmem) -> None:
    left: list[int] = []

    def beside(report: Any) -> None:
        for at in range(3):
            mem.remember(f"Beside {report.remembered} number {at}.")
        left.append(waiting(mem))

    mem.remember_many(many(200), batch_size=100, progress=beside)
    assert left == [103, 206]
    assert waiting(mem) == 0
    check(mem)


def test_single_memories_fold_themselves_first_and_then_a_part_of_what_a_bulk_has_left(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "FLUSH_AT", 4)  # a flush takes at most 64
    left: list[tuple[int, int]] = []

    def beside(report: Any) -> None:
        for at in range(6 if report.remembered == 100 else 0):
            mem.remember(f"Beside number {at}.")
        sizes = [size for (size,) in sql(mem, "SELECT bulk FROM pending")]
        left.append((len(sizes) - sizes.count(0), sizes.count(0)))

    mem.remember_many(many(200), batch_size=100, progress=beside)
    assert left == [(40, 2), (140, 2)]
    assert waiting(mem) == 0
    check(mem)


def test_a_stream_that_fails_leaves_nothing_waiting(mem: Semmem) -> None:
    def stream() -> Iterator[Mapping[str, Any]]:
        yield from many(130)
        raise OSError("the file is gone")

    with pytest.raises(OSError, match="the file is gone"):
        mem.remember_many(stream(), batch_size=65)
    assert (mem.stats().memories, waiting(mem)) == (130, 0)
    check(mem)


def test_a_warning_that_is_an_error_leaves_nothing_of_its_batch_waiting(mem: Semmem) -> None:
    given = [{**item, "text": f"{item['text']} The password is hunter22-x."} if at == 3 else item
             for at, item in enumerate(many(140))]  # fmt: skip
    with pytest.raises(CredentialWarning):  # warnings are errors in these tests
        mem.remember_many(given, batch_size=70)
    assert (mem.stats().memories, waiting(mem)) == (70, 0)
    check(mem)


@pytest.mark.parametrize("error", [StoreError("The disk is full."), MemoryError("no room")])
def test_what_a_bulk_could_not_fold_is_reported_and_left_to_maintain(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: Any, **__: Any) -> int:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(postings, "flush", broken)
        report = mem.remember_many(many(200), batch_size=100)
    assert report.remembered == 200
    assert report.degraded == {"maintain": f"Flushing is left to `semmem maintain`: {error}"}
    assert waiting(mem) == 200
    assert mem.recall("When did gnu7 come?", limit=1).hits[0].id == "m7"
    assert mem.maintain()["folded"] == 200
    check(mem)


def test_memories_of_a_bulk_that_are_extracted_again_keep_waiting(mem: Semmem) -> None:
    text = "We met Zorblax Quimby there."

    def late(report: Any) -> None:
        if report.remembered == 100:
            mem.remember("Somebody.", id="late", title="Zorblax Quimby")
            assert sql(mem, "SELECT count(*) FROM pending WHERE bulk > 0")[0][0] == 100

    given = [{**item, "text": f"{text} {item['text']}"} if at == 5 else item for at, item in enumerate(many(200))]
    mem.remember_many(given, batch_size=100, progress=late)
    assert waiting(mem) == 0
    check(mem)


def test_an_import_whose_batch_raises_after_its_commit_leaves_nothing_of_it_waiting(mem: Semmem) -> None:
    given = [{**item, "text": f"{item['text']} The password is hunter22-x.", "namespace": "other"} for item in many(70)]
    with pytest.raises(CredentialWarning):  # warnings are errors in these tests
        mem.import_items(given, batch_size=70)
    assert (mem.stats().memories, waiting(mem)) == (70, 0)
    check(mem)


def test_an_import_folds_its_batches_at_its_end(mem: Semmem) -> None:
    seen: list[int] = []
    mem.import_items(iter(many(150)), batch_size=70, progress=lambda _: seen.append(waiting(mem)))
    assert seen == [70, 140, 150]
    assert waiting(mem) == 0
    check(mem)
