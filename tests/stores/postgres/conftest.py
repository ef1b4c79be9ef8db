"""An empty memory on PostgreSQL that keeps no namespace in the memory of the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import semmem
from semmem.client.memory import Semmem


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    """An empty memory on PostgreSQL."""
    with semmem.connect(store_url, embedder="hashing", pool_size=2, resident_mb=0) as mem:
        yield mem
