"""An empty memory for the tests of recall."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import semmem


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="hashing") as opened:
        yield opened
