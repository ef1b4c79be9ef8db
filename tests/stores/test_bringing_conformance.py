"""Bringing in and the properties of writing, over every store there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from semmem.model.store import Store
from semmem.stores import open_store
from tests.stores.bringing import BringingConformance
from tests.stores.writing import WritingProperties


class TestPostgres(BringingConformance, WritingProperties):
    """PostgreSQL with pgvector, the embedded server."""

    @pytest.fixture
    def store(self, store_url: str) -> Iterator[Store]:
        """An empty store."""
        store = open_store(store_url, pool_size=2)
        yield store
        store.close()


class TestSqlite(BringingConformance, WritingProperties):
    """SQLite, a file."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """An empty store."""
        store = open_store(f"sqlite://{tmp_path / 'notes.db'}", pool_size=2)
        yield store
        store.close()
