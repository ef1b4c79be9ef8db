"""Two who write at once wait for each other: at a memory that both forget, at a term that both bring."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.stores.postgres import forget, postings
from tests.stores.audit import check, sql

pytestmark = pytest.mark.nodes


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing", pool_size=3) as mem:
        yield mem


def waits_or_ends(mem: Semmem, other: Future[Any]) -> None:
    """Wait until the other one waits for a lock, or has ended without."""
    on_nodes = mem.store.nodes() is not None
    waiting = "SELECT count(*) FROM " + ("citus_lock_waits" if on_nodes else "pg_locks WHERE NOT granted")
    end = time.monotonic() + 60
    while not other.done() and sql(mem, waiting) == [(0,)]:
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
