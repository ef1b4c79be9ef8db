"""An empty memory in each store, and the URL of one, for the tests of what becomes of memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from tests.stores.postgres.nodes import THREE, wants_citus


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test that asks for one a store of each kind, and where it is marked ``nodes`` one on three nodes."""
    if "kind_of_store" in metafunc.fixturenames:
        on_nodes = [pytest.param(THREE, marks=wants_citus)] if metafunc.definition.get_closest_marker("nodes") else []
        metafunc.parametrize("kind_of_store", ["sqlite", "postgres", *on_nodes])


@pytest.fixture
def url(request: pytest.FixtureRequest, kind_of_store: str, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of each kind."""
    if kind_of_store == "sqlite":
        yield f"sqlite://{tmp_path}/notes.db"
    elif kind_of_store == "postgres":
        yield request.getfixturevalue("store_url")
    else:
        with request.getfixturevalue("node_stores").one() as urls:
            yield urls[0]


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    """An empty memory in each store."""
    with semmem.connect(url, embedder="hashing", pool_size=2) as mem:
        yield mem
