"""What the tests of the MCP server share: asyncio, and a store in a file."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/notes.db"
