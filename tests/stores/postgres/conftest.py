"""An empty memory on PostgreSQL that keeps no namespace in the memory of the process, and three nodes of Citus."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import semmem
from semmem.client.memory import Semmem
from tests.stores.postgres.nodes import Cluster, three_nodes


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    """An empty memory on PostgreSQL."""
    with semmem.connect(store_url, embedder="hashing", pool_size=2, resident_mb=0) as mem:
        yield mem


@pytest.fixture(scope="session")
def citus() -> Iterator[Cluster]:
    """A coordinator and two workers of Citus."""
    with three_nodes() as cluster:
        yield cluster
