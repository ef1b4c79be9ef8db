"""The conformance suite over every store there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semmem.model.store import GraphStore, Store, VectorStore
from semmem.stores import open_store
from semmem.stores.postgres.graph import PostgresGraph
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.postgres.vectors import PostgresVectors
from semmem.stores.sqlite.store import SqliteStore
from tests.stores.conformance.suite import StoreConformance
from tests.stores.postgres.nodes import NodeStores, wants_citus


class TestPostgres(StoreConformance):
    """PostgreSQL with pgvector, the embedded server."""

    @pytest.fixture
    def store(self, store_url: str) -> Iterator[PostgresStore]:
        """An empty store."""
        store = open_store(store_url, pool_size=2)
        yield store
        store.close()


class TestThreeNodes(StoreConformance):
    """PostgreSQL on three nodes of Citus."""

    pytestmark = wants_citus

    @pytest.fixture
    def store(self, node_stores: NodeStores) -> Iterator[PostgresStore]:
        """An empty store."""
        with node_stores.one() as urls:
            store = open_store(urls[0], pool_size=2)
            yield store
            store.close()


class TestSqliteFile(StoreConformance):
    """SQLite, a file."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        """An empty store."""
        store = open_store(f"sqlite://{tmp_path / 'notes.db'}", pool_size=2)
        yield store
        store.close()


class TestSqliteInMemory(StoreConformance):
    """SQLite, in memory alone."""

    @pytest.fixture
    def store(self) -> Iterator[SqliteStore]:
        """An empty store."""
        store = open_store("sqlite::memory:")
        yield store
        store.close()


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [(Store, PostgresStore), (Store, SqliteStore), (VectorStore, PostgresVectors), (GraphStore, PostgresGraph)],
)
def test_a_store_has_every_method_of_its_protocols(protocol: type[Any], kind: type[Any]) -> None:
    wanted = {name for name, what in vars(protocol).items() if not name.startswith("_") and callable(what)}
    assert len(wanted) > 10
    assert [name for name in sorted(wanted) if not hasattr(kind, name)] == []
