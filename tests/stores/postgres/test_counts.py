"""Counts of a large store on PostgreSQL: those of concepts and mentions are estimates, and say so."""

from __future__ import annotations

from typing import Any

import pytest

from semmem.client.memory import Semmem
from semmem.stores.postgres import store as postgres_store
from tests.stores.audit import sql

LONG = " ".join(f"Chapter {at} tells how Ada Lovelace met Köln {at}, and who paid for it." for at in range(60))


def fill(mem: Semmem) -> None:
    """Store memories of every kind: packed, flushed and pending, split, sensitive, in two namespaces."""
    mem.remember_many([{"text": f"Ada Lovelace met owl {n} in Turin.", "title": f"Owl {n}"} for n in range(70)])
    mem.maintain()
    mem.remember_many([{"text": f"Mary Somerville met owl {n} in Bern.", "title": f"Gnu {n}"} for n in range(70)])
    mem.remember(LONG, id="long")
    mem.remember("Ada Lovelace saw Turin.", namespace="other")
    mem.remember("The PIN of Charles Babbage is 4711.", sensitive=True)
    mem.forget(mem.list(limit=3).memories[-1].id)


def counts(mem: Semmem, namespace: str | None, **how: Any) -> tuple[int, int, int, int, tuple[str, ...]]:
    found = mem.stats(namespace=namespace, **how)
    return found.memories, found.parts, found.concepts, found.mentions, found.estimated


@pytest.fixture
def large(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> Semmem:
    """A store whose concepts are too many to be counted one by one."""
    fill(mem)
    monkeypatch.setattr(postgres_store, "_COUNTED", 0)
    return mem


def test_what_is_not_one_indexed_row_is_counted_with_what_is(mem: Semmem) -> None:
    fill(mem)
    rows = dict(sql(mem, "SELECT (part > 0)::int, count(*) FROM memory GROUP BY 1"))
    assert counts(mem, None)[:2] == (rows[0], rows[1]) == (142, rows[1])
    assert rows[1] > 1
    assert counts(mem, "other")[:2] == (1, 0)
    assert counts(mem, "nobody") == (0, 0, 0, 0, ())


def test_an_estimate_by_every_key_and_every_memory_is_the_exact_count(large: Semmem) -> None:
    for namespace in (None, "default", "other"):
        *exact, none = counts(large, namespace, exact=True)
        *estimate, estimated = counts(large, namespace)
        assert (estimate, none, estimated) == (exact, (), ("concepts", "mentions"))


def test_an_estimate_counts_the_lowest_half_of_the_keys_twice(large: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_store, "_SAMPLED", 64)  # more than 128 memories are indexed, and fewer than 192
    monkeypatch.setattr(postgres_store, "_FEWEST", 0)
    large.maintain()
    held = "SELECT key FROM posting WHERE kind > 0 UNION SELECT unnest(keys) FROM lone_posting"
    ((lowest, kinds),) = sql(large, f"SELECT count(*) FILTER (WHERE key < 0), count(*) FROM ({held}) AS held")
    assert 0 < lowest < kinds
    terms = sql(large, "SELECT kinds, keys FROM lone_posting")
    lowest -= sum(1 for row, keys in terms for kind, key in zip(row, keys, strict=True) if key < 0 and not kind)
    assert large.stats().concepts == 2 * lowest


def test_of_a_part_with_few_concepts_a_larger_one_is_counted(large: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_store, "_SAMPLED", 1)  # 128 parts, each with a few of the concepts
    exact = large.stats(exact=True).concepts
    assert exact == 434
    monkeypatch.setattr(postgres_store, "_FEWEST", exact)
    assert large.stats().concepts == exact
