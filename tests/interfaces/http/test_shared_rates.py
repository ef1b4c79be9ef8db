"""The limit of rate that several servers over one store on PostgreSQL share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.http.limits import Limits, Rates
from semmem.interfaces.http.server import Server
from semmem.interfaces.http.shared_rates import SharedRates, rates_of
from semmem.model.errors import InvalidInput
from semmem.model.store.serving import ServingStore
from tests.interfaces.http.test_routes import problem
from tests.serving import running
from tests.stores.audit import sql

SLOW = 0.001
"""Requests a second, so that none is earned again during a test."""


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="none", pool_size=2) as mem:
        yield mem


@pytest.fixture
def store(mem: Semmem) -> ServingStore:
    assert mem.store.serving is not None
    return mem.store.serving


class Counting:
    """The store, which counts how often it is asked for tokens."""

    def __init__(self, store: ServingStore) -> None:
        self.store = store
        self.counts: list[int] = []

    def take_tokens(self, client: bytes, count: int, *, rate: float, burst: float) -> tuple[int, float]:
        self.counts.append(count)
        return self.store.take_tokens(client, count, rate=rate, burst=burst)


def waits(*asked: tuple[Rates, str]) -> list[float]:
    """Return how long each request has to wait, one after the other."""

    async def each() -> list[float]:
        return [await rates.wait(client) for rates, client in asked]

    return asyncio.run(each())


def test_two_servers_let_in_together_what_one_would(store: ServingStore) -> None:
    one, two = SharedRates(SLOW, 5, store), SharedRates(SLOW, 5, store)
    found = waits(*[(rates, "laptop") for rates in (one, two) * 4], (two, "phone"))
    assert found[:5] == [0, 0, 0, 0, 0]
    assert all(900 < wait <= 1000 for wait in found[5:8])
    assert found[8] == 0
    assert waits((Rates(SLOW, 5), "laptop")) == [0]


def test_a_bucket_gives_what_it_has_and_says_when_the_next_token_comes(store: ServingStore) -> None:
    assert store.take_tokens(b"a", 3, rate=SLOW, burst=5) == (3, 0)
    assert store.take_tokens(b"a", 3, rate=SLOW, burst=5) == (2, 0)
    granted, wait = store.take_tokens(b"a", 3, rate=SLOW, burst=5)
    assert granted == 0
    assert 900 < wait <= 1000
    assert store.take_tokens(b"a", 3, rate=1e6, burst=5) == (3, 0)  # full again


def test_a_bucket_is_refilled_after_the_clock_of_the_database_server_was_put_back(
    mem: Semmem, store: ServingStore
) -> None:
    assert store.take_tokens(b"a", 5, rate=SLOW, burst=5) == (5, 0)
    sql(mem, "UPDATE rate_bucket SET at = at + interval '1 hour'")
    assert store.take_tokens(b"a", 1, rate=1e6, burst=5)[0] == 0
    assert store.take_tokens(b"a", 3, rate=1e6, burst=5) == (3, 0)


def test_a_client_that_asks_often_costs_few_questions_to_the_store(store: ServingStore) -> None:
    counting = Counting(store)
    rates = SharedRates(1000.0, 2000, counting, clock=lambda: 0.0)  # type: ignore[arg-type]
    assert waits(*[(rates, "laptop")] * 400) == [0.0] * 400
    assert counting.counts == [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]


def test_tokens_that_were_not_used_are_over_after_a_second(store: ServingStore) -> None:
    counting, now = Counting(store), [0.0]
    rates = SharedRates(1000.0, 2000, counting, clock=lambda: now[0])  # type: ignore[arg-type]
    assert waits(*[(rates, "laptop")] * 4) == [0.0] * 4  # 1, 2, and one of 4
    now[0] = 1.0
    assert waits((rates, "laptop"), (rates, "laptop")) == [0.0, 0.0]
    assert counting.counts == [1, 2, 4, 1, 2]


def test_a_client_that_was_refused_is_refused_without_asking_the_store(store: ServingStore) -> None:
    counting, now = Counting(store), [0.0]
    rates = SharedRates(SLOW, 1, counting, clock=lambda: now[0])  # type: ignore[arg-type]
    found = waits(*[(rates, "laptop")] * 9)
    assert found[0] == 0.0
    assert min(found[1:]) > 900
    assert counting.counts == [1, 1]


def test_where_the_store_does_not_answer_each_server_counts_by_itself(mem: Semmem, store: ServingStore) -> None:
    now = [0.0]
    rates = SharedRates(SLOW, 2, store, clock=lambda: now[0])
    mem.close()
    assert waits(*[(rates, "laptop")] * 3)[:2] == [0.0, 0.0]
    assert waits((rates, "laptop"))[0] > 900


def test_two_servers_over_one_store_refuse_the_third_of_two_requests(store_url: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, key = keys.add("laptop")
    _, other = keys.add("phone")
    limits = Limits(rate=SLOW, burst=2, shared=True)
    with (
        semmem.connect(store_url, embedder="none") as one,
        semmem.connect(store_url, embedder="none") as two,
        running(one, keys=keys, limits=limits) as first,
        running(two, keys=keys, limits=limits) as second,
        httpx.Client(trust_env=False, timeout=60) as http,
    ):

        def ask(server: Server, text: str) -> httpx.Response:
            return http.get(f"{server.url}/v1/namespaces", headers={"authorization": f"Bearer {text}"})

        assert [ask(server, key).status_code for server in (first, second)] == [200, 200]
        for server in (first, second):
            refused = ask(server, key)
            assert problem(refused) == (429, "LimitExceeded")
            assert 900 < int(refused.headers["retry-after"]) <= 1000
        assert ask(second, other).status_code == 200


def test_a_store_that_one_machine_serves_shares_no_rates() -> None:
    sentence = (
        "The setting shared_rate is for servers over one store on PostgreSQL, and this is a SQLite store; leave it out."
    )
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        assert type(rates_of(Limits(), lambda: mem)) is Rates
        with pytest.raises(InvalidInput) as caught:
            Server(mem, port=0, limits=Limits(shared=True))
        assert str(caught.value) == sentence
        assert mem.store.serving is not None
        with pytest.raises(InvalidInput, match="shared_rate"):
            mem.store.serving.take_tokens(b"a", 1, rate=1, burst=1)
