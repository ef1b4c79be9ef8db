"""Counts of a store on three nodes: an estimate is the exact count where every key and every memory is looked at."""

from __future__ import annotations

from typing import Any

import pytest

import semmem
from semmem.stores.postgres import store as postgres_store
from tests.stores.postgres.nodes import Cluster, wants_citus

pytestmark = wants_citus


def test_three_nodes_estimate_what_they_count(citus: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with semmem.connect(citus.database("counts")[0], embedder="hashing") as mem:
        for space in ("here", "there", "elsewhere"):
            mem.remember_many(
                [{"text": f"Ada Lovelace met owl {n} near the quay."} for n in range(70)], namespace=space
            )
        mem.maintain()
        mem.remember("Mary Somerville is in Bern.", namespace="here")

        def counts(namespace: str | None, **how: Any) -> tuple[int, int, int]:
            found = mem.stats(namespace=namespace, **how)
            assert found.estimated == (() if how else ("concepts", "mentions"))
            return found.memories, found.concepts, found.mentions

        monkeypatch.setattr(postgres_store, "_COUNTED", 0)
        for namespace, memories in ((None, 211), ("here", 71)):
            assert counts(namespace) == counts(namespace, exact=True)
            assert counts(namespace)[0] == memories
