"""Old answers and buckets that nobody uses go by twos, whatever the planner believes of their tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.store.serving import ServingStore
from tests.stores.audit import sql

pytestmark = pytest.mark.nodes


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing") as mem:
        yield mem


def serving(mem: Semmem) -> ServingStore:
    assert mem.store.serving is not None
    return mem.store.serving


def keep(mem: Semmem, *keys: str) -> None:
    for key in keys:
        serving(mem).once(key.encode(), b"request", lambda: "answer", together=False, keep_days=1.0)


def test_two_old_answers_go_for_a_new_one_from_a_table_of_which_one_row_was_counted(mem: Semmem) -> None:
    keep(mem, "1")
    sql(mem, "ANALYZE answered")  # the planner now expects one row, and may read the list of old ones again for each
    keep(mem, "2", "3", "4", "5")
    sql(mem, "UPDATE answered SET at = now() - interval '2 days'")
    keep(mem, "6")
    assert sql(mem, "SELECT count(*) FROM answered") == [(4,)]


def test_two_old_buckets_go_for_a_new_one_from_a_table_of_which_one_row_was_counted(mem: Semmem) -> None:
    def take(*clients: str) -> None:
        for client in clients:
            serving(mem).take_tokens(client.encode(), 1, rate=1.0, burst=1.0)

    take("1")
    sql(mem, "ANALYZE rate_bucket")
    take("2", "3", "4", "5")
    sql(mem, "UPDATE rate_bucket SET at = now() - interval '2 days'")
    take("6")
    assert sql(mem, "SELECT count(*) FROM rate_bucket") == [(4,)]
