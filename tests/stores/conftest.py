"""An empty memory in each store, and the URL of one, for the tests of what becomes of memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem


@pytest.fixture(params=["sqlite", "postgres"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Semmem]:
    """An empty memory in each store."""
    if request.param == "sqlite":
        with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="hashing") as mem:
            yield mem
    else:
        with semmem.connect(request.getfixturevalue("store_url"), embedder="hashing", pool_size=2) as mem:
            yield mem


@pytest.fixture(params=["PostgreSQL", "SQLite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("store_url"))
