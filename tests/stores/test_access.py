"""How often and when recalls returned a memory: counted beside the recall, in each store and over several processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.model.history import Access
from semmem.model.imported_items import exported_item
from semmem.model.store import life_of
from semmem.model.types import LIST_ORDERS
from semmem.write import access
from semmem.write.access import AccessCounter

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Sink:
    """Where a counter writes to; fails while it is told to."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], int] = {}
        self.fails = False
        self.calls = 0
        self.open = threading.Event()
        self.open.set()
        self.wrote = threading.Event()

    def count_accesses(self, namespace: str, counts: dict[str, Access]) -> int:
        self.calls += 1
        assert self.open.wait(60)
        if self.fails:
            raise StoreUnavailable("It takes no writes.")
        for id, one in counts.items():
            self.held[namespace, id] = self.held.get((namespace, id), 0) + one.count
        self.wrote.set()
        return len(counts)


def counter(sink: Any, every_s: float = 3600) -> AccessCounter:
    return AccessCounter(sink, every_s=every_s)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path / 'notes.db'}"
    return str(request.getfixturevalue("store_url"))


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    with connected(url) as mem:
        yield mem


def connected(url: str, **settings: Any) -> Semmem:
    return semmem.connect(url, recipe="lexical", embedder="none", **settings)


def remember(mem: Semmem) -> None:
    mem.remember("The ferry leaves at nine.", id="ferry")
    mem.remember("The bus leaves at ten.", id="bus")
    mem.remember("The owl sleeps.", id="owl")


def counts(mem: Semmem, *ids: str) -> list[int | None]:
    return [mem.get(id).access_count for id in ids]


# ---------------------------------------------------------------------- the counter


def test_what_is_noted_is_written_later_and_by_nobody_who_notes() -> None:
    sink = Sink()
    counted = counter(sink)
    counted.note([("n", "a"), ("n", "b")])
    counted.note([("n", "a")])
    assert sink.calls == 0
    assert counted.waiting("n", ["a", "c"])["a"].count == 2
    assert counted.write() == 2
    assert (sink.held, counted.waiting("n", ["a"])) == ({("n", "a"): 2, ("n", "b"): 1}, {})
    counted.close()


def test_the_clock_writes_by_itself() -> None:
    sink = Sink()
    counted = counter(sink, every_s=0.01)
    counted.note([("n", "a")])
    assert sink.wrote.wait(60)
    counted.close()
    assert sink.held == {("n", "a"): 1}


def test_what_could_not_be_written_is_counted_on_and_never_twice() -> None:
    sink = Sink()
    sink.fails = True
    counted = counter(sink)
    counted.note([("n", "a"), ("m", "a")])
    with pytest.raises(StoreUnavailable):
        counted.write()
    counted.note([("n", "a")])
    sink.fails = False
    assert counted.write() == 2
    assert sink.held == {("n", "a"): 2, ("m", "a"): 1}
    counted.close()


class OneDown(Sink):
    """Refuses the namespace ``n``, as where its node is down."""

    def count_accesses(self, namespace: str, counts: dict[str, Access]) -> int:
        self.fails = namespace == "n"
        return super().count_accesses(namespace, counts)


def test_the_counts_of_other_namespaces_are_written_where_one_takes_none() -> None:
    sink = OneDown()
    counted = counter(sink)
    counted.note([("m", "a"), ("n", "a"), ("o", "a"), ("o", "b")])
    with pytest.raises(StoreUnavailable, match=r"It takes no writes\."):
        counted.write()
    assert sink.held == {("m", "a"): 1, ("o", "a"): 1, ("o", "b"): 1}
    assert counted.waiting("n", ["a"])["a"].count == 1
    counted.close()


def test_a_failure_after_seconds_ends_the_writing_of_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_PATIENCE_S", -1.0)  # each is late
    sink = OneDown()
    counted = counter(sink)
    counted.note([("m", "a"), ("n", "a"), ("o", "a")])
    with pytest.raises(StoreUnavailable):
        counted.write()
    assert sink.held == {("m", "a"): 1}  # what is well takes as long as it needs
    assert counted.waiting("o", ["a"])["a"].count == 1
    monkeypatch.setattr(access, "_PATIENCE_S", 60.0)
    counted.close()


def test_what_is_noted_while_counts_are_written_waits_for_the_next_write() -> None:
    class Busy(Sink):
        def count_accesses(self, namespace: str, counts: dict[str, Access]) -> int:
            assert self.calls < 9, "It never ends."
            both.note([("m", "a"), (f"n{self.calls}", "b")])  # as recalls without a pause do
            return super().count_accesses(namespace, counts)

    sink = Busy()
    both = counter(sink)
    both.note([("k", "a"), ("m", "a")])
    assert both.write() == 2
    assert sink.held == {("k", "a"): 1, ("m", "a"): 2}
    assert both.waiting("m", ["a"])["a"].count == 1
    assert both.waiting("n0", ["b"])["b"].count == 1


def test_more_memories_of_a_namespace_than_one_transaction_takes_are_all_written() -> None:
    sink = Sink()
    both = counter(sink)
    both.note([("n", f"m{n}") for n in range(501)] + [("o", "m")])
    assert both.write("n") == 501
    assert sink.calls == 2
    assert both.write() == 1


def test_a_note_waits_for_no_write(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink()
    sink.open.clear()
    counted = counter(sink)
    counted.note([("n", "a")])
    writing = threading.Thread(target=counted.write)
    writing.start()
    while not sink.calls:
        pass
    counted.note([("n", "b")])  # while the store does not answer
    assert counted.waiting("n", ["a", "b"]).keys() == {"b"}
    monkeypatch.setattr(access, "_PATIENCE_S", 0.01)
    counted.close()  # nor does closing
    assert sink.held == {}
    sink.open.set()
    writing.join(60)


def test_so_many_memories_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MOST_WAITING", 3)
    sink = Sink()
    counted = counter(sink)
    counted.note([("n", str(n)) for n in range(5)])
    counted.note([("n", "0"), ("n", "4")])
    assert counted.write() == 3
    assert sum(sink.held.values()) == 4
    counted.close()


def test_closing_writes_what_is_left_and_nothing_is_counted_after_it() -> None:
    sink = Sink()
    counted = counter(sink)
    counted.note([("n", "a")])
    counted.close()
    counted.note([("n", "b")])
    assert (sink.held, counted.write()) == ({("n", "a"): 1}, 0)
    nowhere = counter(None)
    nowhere.note([("n", "a")])
    assert (nowhere.write(), nowhere.waiting("n", ["a"])) == (0, {})


# ---------------------------------------------------------------------- recalls


def test_a_recall_counts_what_it_returned_and_get_and_list_show_it_at_once(mem: Semmem) -> None:
    remember(mem)
    before = datetime.now(UTC)
    assert (mem.get("ferry").access_count, mem.get("ferry").last_accessed) == (0, None)
    hits = mem.recall("When does the ferry leave?", limit=1)
    mem.recall("leaves at ten")
    assert [hit.id for hit in hits] == ["ferry"]
    assert hits[0].memory.access_count is None  # a recall looks up no counts
    assert counts(mem, "ferry", "bus", "owl") == [2, 1, 0]
    last = mem.get("ferry").last_accessed
    assert last is not None
    assert before <= last <= datetime.now(UTC)
    assert {memory.id: memory.access_count for memory in mem.list()} == {"ferry": 2, "bus": 1, "owl": 0}
    assert mem.get("ferry").as_dict()["last_accessed"] == last.isoformat()
    assert mem.maintain()["accesses"] == 2
    assert "accesses" not in mem.maintain()
    assert counts(mem, "ferry", "bus", "owl") == [2, 1, 0]


def test_a_page_of_a_list_counts_written_and_waiting_accesses_and_asks_the_store_once(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(mem)
    mem.recall("ferry")
    mem.maintain()
    written = mem.get("ferry").last_accessed
    assert written is not None
    mem.recall("ferry")
    mem.recall("bus")

    def again(life: Any, namespace: str, ids: Any) -> None:
        raise AssertionError("A second statement.")

    monkeypatch.setattr(type(life_of(mem.store)), "accesses", again)
    for order in LIST_ORDERS:
        page = mem.list(sort_by=order)
        assert {one.id: one.access_count for one in page} == {"ferry": 2, "bus": 1, "owl": 0}
        last = {one.id: one.last_accessed for one in page}
        assert last["ferry"] is not None
        assert (last["ferry"] > written, last["owl"]) == (True, None)


def test_counts_are_kept_over_a_close_an_update_and_a_forget_that_is_taken_back(url: str) -> None:
    with connected(url) as mem:
        remember(mem)
        mem.recall("ferry")
    with connected(url) as mem:
        mem.recall("ferry")
        mem.update("ferry", text="The ferry leaves at eleven.")
        assert [one.changed for one in mem.history("ferry")] == [(), ("text",)]
        mem.forget("ferry")
        mem.restore_memory("ferry")
        assert counts(mem, "ferry") == [2]
    with connected(url, count_accesses=False) as mem:
        mem.recall("ferry")
        assert counts(mem, "ferry") == [2]
        assert mem.get("ferry") == mem.recall("ferry")[0].memory  # counts are no part of what a memory is


def test_maintain_does_the_rest_where_no_counts_can_be_written_now(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(mem)
    mem.recall("ferry")
    mem.recall("bus")

    def in_use(life: Any, namespace: str, counts: dict[str, Access]) -> int:
        raise StoreUnavailable("No connection to this store is idle.")

    with monkeypatch.context() as busy:
        busy.setattr(type(life_of(mem.store)), "count_accesses", in_use)
        done = mem.maintain()
        assert "accesses" not in done
        assert done.keys() & {"folded", "joined"}
    assert mem.maintain()["accesses"] == 2
    assert counts(mem, "ferry", "bus") == [1, 1]


def test_what_is_forgotten_meanwhile_leaves_no_count_behind(mem: Semmem) -> None:
    remember(mem)
    mem.recall("ferry")
    mem.forget("ferry", hard=True)
    mem.maintain()
    mem.remember("The ferry is back.", id="ferry")
    assert counts(mem, "ferry") == [0]


@pytest.mark.parametrize("how", [{"id": "ferry", "hard": True}, {"everything": True}, {"filters": {"tags": "sea"}}])
def test_what_was_counted_and_not_written_yet_goes_with_its_memory(mem: Semmem, how: dict[str, Any]) -> None:
    mem.remember("The ferry leaves at nine.", id="ferry", tags=["sea"])
    mem.recall("ferry")
    mem.forget(**{"hard": True, **how} if "filters" in how else how)
    mem.remember("The ferry is back.", id="ferry")
    assert counts(mem, "ferry") == [0]
    mem.recall("ferry")
    mem.drop_namespace("default")
    mem.remember("The ferry is back once more.", id="ferry")
    assert counts(mem, "ferry") == [0]


def test_what_was_counted_and_not_written_yet_goes_along_with_a_name_and_stays_through_a_forget(mem: Semmem) -> None:
    remember(mem)
    mem.recall("ferry")
    mem.copy_namespace("default", "copy")
    mem.recall("ferry")
    mem.rename_namespace("default", "moved")
    assert [mem.get("ferry", namespace=one).access_count for one in ("copy", "moved")] == [1, 2]
    mem.recall("ferry", namespace="moved")
    mem.forget("ferry", namespace="moved")
    assert mem.restore_memory("ferry", namespace="moved").id == "ferry"
    assert mem.get("ferry", namespace="moved").access_count == 3


def test_a_copied_namespace_has_the_counts_and_an_export_leaves_them_out(mem: Semmem) -> None:
    remember(mem)
    mem.recall("ferry")
    mem.maintain()
    mem.copy_namespace("default", "copy")
    assert mem.get("ferry", namespace="copy").access_count == 1
    mem.rename_namespace("copy", "moved")
    assert mem.get("ferry", namespace="moved").access_count == 1
    assert not any("accessed" in key or "access_count" in key for row in mem.export() for key in row)
    item = mem.get("bus").as_dict() | {"id": "again"}
    assert "access_count" not in exported_item("line 1", item)


def test_what_is_asked_again_to_explain_a_recall_is_no_access(mem: Semmem) -> None:
    from semmem.write.access import unlogged

    remember(mem)
    with unlogged():
        found = mem.recall("ferry")
    found.explain("ferry")
    mem.recall("ferry", min_confidence=1.0)  # which returns nothing
    assert counts(mem, "ferry") == [0]


def test_hits_and_lists_are_sorted_by_what_was_returned_last(mem: Semmem) -> None:
    remember(mem)
    for question in ("ferry", "bus"):
        mem.recall(question)
        mem.maintain()
    assert [hit.id for hit in mem.recall("leaves at", sort_by="accessed")] == ["bus", "ferry"]
    assert [memory.id for memory in mem.list(sort_by="accessed")] == ["bus", "ferry", "owl"]
    with pytest.raises(InvalidInput, match='sort_by must be "created", "updated", "importance" or "accessed", not'):
        mem.list(sort_by="relevance")  # type: ignore[arg-type]  # that is the point


def test_pages_by_what_was_returned_last_go_on_with_what_never_was(mem: Semmem) -> None:
    for n in range(7):
        mem.remember(f"number {n}", id=str(n), created_at=f"2026-01-0{n + 1}")
    at = {"1": 9, "2": 9, "5": 8, "0": 7}
    for id, hour in at.items():
        life_of(mem.store).count_accesses("default", {id: Access(1, datetime(2026, 2, 1, hour, 0, 0, 1, tzinfo=UTC))})
    for limit in (1, 2, 3, 7):
        cursor, ids = None, []
        for _ in range(8):
            page = mem.list(sort_by="accessed", limit=limit, cursor=cursor)
            ids.extend(memory.id for memory in page)
            if (cursor := page.cursor) is None:
                break
        assert ids == ["2", "1", "5", "0", "6", "4", "3"]


def test_a_recall_of_a_store_that_takes_no_writes_counts_nothing_and_fails_for_nothing(tmp_path: Path) -> None:
    where = tmp_path / "notes.db"
    with connected(f"sqlite://{where}") as mem:
        remember(mem)
    with connected(f"sqlite://{where}") as mem, sqlite3.connect(where) as other:
        other.execute("CREATE TRIGGER no_access BEFORE INSERT ON access BEGIN SELECT raise(ABORT, 'read only'); END")
        other.commit()
        assert [hit.id for hit in mem.recall("ferry")] == ["ferry"]
        assert mem._here.accesses._try() is False
        assert counts(mem, "ferry") == [1]  # it waits
    other.close()
    with connected(f"sqlite://{where}") as mem:
        assert counts(mem, "ferry") == [0]


COUNTING = """
import sys, semmem
with semmem.connect(sys.argv[1], recipe="lexical", embedder="none", pool_size=2) as mem:
    for n in range(25):
        mem.recall("ferry" if n % 5 else "leaves")
        if n % 7 == 0:
            try:
                mem._here.accesses.write()
            except semmem.StoreUnavailable:
                pass
"""


@pytest.mark.slow
def test_the_counts_of_four_processes_add_up(url: str) -> None:
    with connected(url) as mem:
        remember(mem)
        each = [subprocess.Popen([sys.executable, "-c", COUNTING, url]) for _ in range(4)]
        for n in range(20):
            mem.update("bus", importance=n / 20)
            mem.recall("ferry")
        assert [one.wait(120) for one in each] == [0] * 4
        mem._here.accesses.write()
        assert counts(mem, "ferry", "bus", "owl") == [4 * 25 + 20, 4 * 5, 0]


def test_a_server_that_was_stopped_is_not_started_for_counts(store_url: str) -> None:
    from psycopg import connect as server

    with connected(store_url, pool_size=1) as mem:
        remember(mem)
        mem.recall("ferry")
        with server(store_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            while other.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchone() != (0,):
                pass
        with pytest.raises(StoreUnavailable):
            mem._here.accesses.write()
        assert counts(mem, "ferry") == [1]  # which mends the connection
        assert mem._here.accesses.write() == 1
        assert mem.get("ferry").last_accessed > NOON - timedelta(days=999)  # type: ignore[operator]


def test_closing_waits_for_counts_that_are_being_written() -> None:
    sink = Sink()
    counted = counter(sink)
    counted.note([("n", "a")])
    sink.open.clear()
    writer = threading.Thread(target=counted.write)
    writer.start()
    while not sink.calls:
        threading.Event().wait(0.01)
    closer = threading.Thread(target=counted.close)
    closer.start()
    closer.join(0.3)
    assert closer.is_alive()
    sink.open.set()
    closer.join(60)
    writer.join(60)
    assert sink.held == {("n", "a"): 1}


def test_a_child_of_a_process_that_was_counting_when_it_forked_counts_too() -> None:
    sink = Sink()
    counted = counter(sink)
    counted._lock.acquire()  # as another thread of the parent does while it counts
    counted._process = -1  # what the child finds
    counted.note([("n", "a")])
    assert (counted.write(), sink.held) == (1, {("n", "a"): 1})
    counted.close()


def test_after_each_failure_the_pause_is_twice_as_long_and_an_hour_at_most() -> None:
    sink = Sink()
    counter = AccessCounter(sink, every_s=1_000.0)  # type: ignore[arg-type]
    sink.fails = True
    counter.note([("n", "a")])
    pauses = []
    for fails in (True, True, True, False):
        sink.fails = fails
        assert counter._timer is not None
        counter._timer.cancel()
        counter._tick()
        pauses.append(counter._pause_s)
        if not fails:
            counter.close()
    assert pauses == [2_000.0, 3_600.0, 3_600.0, 1_000.0]
