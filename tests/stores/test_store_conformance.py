"""The conformance suite over every store there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from semmem.stores import open_store
from semmem.stores.postgres import PostgresStore
from tests.stores.conformance import StoreConformance


class TestPostgres(StoreConformance):
    """PostgreSQL with pgvector, the embedded server."""

    @pytest.fixture
    def store(self, store_url: str) -> Iterator[PostgresStore]:
        """An empty store."""
        store = open_store(store_url, pool_size=2)
        yield store
        store.close()
