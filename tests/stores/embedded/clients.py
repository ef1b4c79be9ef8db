"""Connect to an embedded server in the way a store does, and wait for what comes about."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import psycopg
import pytest

from semmem.stores.embedded.server import EmbeddedServer

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def eventually(holds: Callable[[], object], seconds: float = 100) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def connected(server: EmbeddedServer) -> psycopg.Connection[tuple[object, ...]]:
    """Connect in the way a store does: once more through ensure_running when that fails, as after a stall."""
    for _ in range(1_000):
        try:
            return psycopg.connect(server.ensure_running(), autocommit=True)
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("no connection")


def query(server: EmbeddedServer, sql: str) -> list[tuple[object, ...]]:
    """Run one statement on a connection of its own."""
    with connected(server) as connection:
        answer = connection.execute(sql)
        return answer.fetchall() if answer.description else []


def pid(server: EmbeddedServer) -> int:
    found = server.status().pid
    assert found is not None
    return found
