"""An empty SQLite store for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import semmem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


@pytest.fixture
def mem(file: Path) -> Iterator[semmem.Semmem]:
    with semmem.connect(f"sqlite://{file}", embedder="none") as opened:
        yield opened
