"""A filled store, an empty one, and a backup of the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem


@pytest.fixture
def filled(filled_url: str) -> Iterator[Semmem]:
    with semmem.connect(filled_url, embedder="hashing", pool_size=3) as mem:
        yield mem


@pytest.fixture
def empty(other_url: str) -> Iterator[Semmem]:
    with semmem.connect(other_url, embedder="hashing", pool_size=3) as mem:
        yield mem


@pytest.fixture
def file(filled: Semmem, tmp_path: Path) -> Path:
    filled.backup(tmp_path / "mine.semmem")
    return tmp_path / "mine.semmem"
