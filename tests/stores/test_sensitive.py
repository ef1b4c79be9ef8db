"""Sensitive memories, over every store there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import semmem
from tests.stores.sensitive import SensitiveConformance


class TestPostgres(SensitiveConformance):
    """PostgreSQL with pgvector, the embedded server."""

    @pytest.fixture
    def mem(self, store_url: str) -> Iterator[semmem.Semmem]:
        """An empty store."""
        with semmem.connect(store_url, embedder="hashing") as mem:
            yield mem


class TestSqlite(SensitiveConformance):
    """SQLite, in memory alone."""

    @pytest.fixture
    def mem(self) -> Iterator[semmem.Semmem]:
        """An empty store."""
        with semmem.connect("sqlite::memory:", embedder="hashing") as mem:
            yield mem
