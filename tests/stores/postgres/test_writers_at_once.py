"""Two who write at once wait for each other: at a memory that both forget, at a term that both bring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.history import Access
from semmem.model.store import life_of
from semmem.stores.postgres import forget, postings
from semmem.stores.sql_files import statements
from tests.stores.audit import check, sql

pytestmark = pytest.mark.nodes


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing", pool_size=5) as mem:
        yield mem


def waits_or_ends(mem: Semmem, other: Future[Any], waiters: int = 1) -> None:
    """Wait until the other one waits for a lock, the last of so many ``waiters``, or has ended without."""
    on_nodes = mem.store.nodes() is not None
    waiting = "SELECT count(*) FROM " + ("citus_lock_waits" if on_nodes else "pg_locks WHERE NOT granted")
    end = time.monotonic() + 60
    while not other.done() and sql(mem, waiting)[0][0] < waiters:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_of_two_who_forget_a_memory_at_once_the_second_finds_it_gone(mem: Semmem) -> None:
    mem.remember("The ferry left.", id="a")
    mem.remember("The bus came.", id="b")
    with ThreadPoolExecutor(1) as pool:

        def first(connection: Any) -> tuple[int, Future[int]]:
            gone = forget.forget(connection, "default", "a", semmem.Filters(), dry_run=False)
            second = pool.submit(mem.forget, "a")
            waits_or_ends(mem, second)
            return gone, second

        gone, second = mem.store.transaction(first)
        assert gone == 1
        with pytest.raises(semmem.NotFound, match="nothing was forgotten"):
            second.result(60)
    check(mem)


def beside_an_update(mem: Semmem, verb: Callable[[], int]) -> int:
    """Return what ``verb`` returns that waits for a memory whose update waits for the namespace, and ends then."""
    with ThreadPoolExecutor(2) as pool:

        def first(connection: Any) -> tuple[Future[Any], Future[int]]:
            connection.execute(statements("postgres")["namespace_own"], {"namespace": "default"})
            update = pool.submit(mem.update, "a", importance=0.25)
            waits_or_ends(mem, update)
            assert not update.done()
            other = pool.submit(verb)
            waits_or_ends(mem, other, 2)
            return update, other

        update, other = mem.store.transaction(first)
        assert update.result(60).version == 2
        return int(other.result(60))


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("which", [{"id": "a"}, {"filters": {"tags": ["water"]}}])
def test_a_memory_that_is_changed_while_a_forget_waits_for_it_is_forgotten(
    mem: Semmem, which: dict[str, Any], hard: bool
) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id, "tags": ["water"]} for id in "abc"])
    gone = beside_an_update(mem, partial(mem.forget, **which, hard=hard))
    left = [memory.id for memory in mem.list()]
    assert (gone, left) == ((1, ["c", "b"]) if "id" in which else (3, []))
    check(mem)


def test_a_memory_that_is_changed_while_its_accesses_are_counted_is_counted(mem: Semmem) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "ab"])
    counts = {id: Access(3, datetime(2026, 3, 1, tzinfo=UTC)) for id in ("a", "b", "nobody")}
    assert beside_an_update(mem, partial(life_of(mem.store).count_accesses, "default", counts)) == 2
    assert [mem.get(id).access_count for id in "ab"] == [3, 3]


def test_a_memory_that_is_changed_while_a_repeat_of_it_is_counted_is_counted(mem: Semmem) -> None:
    mem.remember("The ferry left at nine.", id="a")
    assert beside_an_update(mem, lambda: len(life_of(mem.store).corroborate("default", {"a": 2}))) == 1
    assert mem.get("a").seen_count == 3


def test_a_term_that_two_bring_at_once_is_known_to_be_shared(mem: Semmem) -> None:
    mem.remember("A zebra.", id="a")
    with ThreadPoolExecutor(1) as pool:

        def first(connection: Any) -> Future[Any]:
            assert postings.flush(connection, ["default"]) == 1
            second = pool.submit(mem.remember_many, [{"text": f"The zebra {n} hums."} for n in range(64)])
            waits_or_ends(mem, second)
            return second

        mem.store.transaction(partial(first)).result(60)
    assert {hit.id for hit in mem.recall("zebra", recipe="lexical", limit=100)} >= {"a"}
    check(mem)
