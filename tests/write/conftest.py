"""A memory of a hundred notes and small batches, for the tests of rebuilding; a namespace of a test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.write import rebuild
from tests.write.other_embedder import notes


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "BATCH", 20)


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing", pool_size=4) as opened:
        opened.remember_many(notes(100))
        yield opened


@pytest.fixture
def space(request: pytest.FixtureRequest) -> str:
    """The name of a namespace that no other test uses."""
    return str(request.node.name)[:100]
