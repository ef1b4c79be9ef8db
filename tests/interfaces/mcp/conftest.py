"""What the tests of the MCP server share: asyncio, a store in a file, and patience, as tests/patience.py says."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem.interfaces.http.keys import ServerKeys
from semmem.interfaces.http.refusals import Refusals
from semmem.interfaces.mcp import server
from tests.patience import PATIENCE_S

server._ROOTS_WITHIN_S = ServerKeys.WAITS_S = Refusals.WAITS_S = PATIENCE_S


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/notes.db"
