"""What the embedded server takes on disk beside the memories."""

from __future__ import annotations

from pathlib import Path

import psycopg

import semmem
from semmem.stores.embedded.server import EmbeddedServer

_WRITE = "SELECT pg_logical_emit_message(true, 'semmem', repeat('x', 100000)), pg_switch_wal()"


def log_of(server: EmbeddedServer) -> int:
    """Return the bytes of the server's log of changes."""
    folder: Path = server.data / "postgresql" / "cluster" / "pg_wal"
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


def test_maintain_leaves_little_of_the_log(server: EmbeddedServer, embedded_url: str) -> None:
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        assert connection.execute("SHOW wal_segment_size").fetchone() == ("4MB",)
        for _ in range(8):
            connection.execute(_WRITE)
    assert log_of(server) >= 32 << 20
    with semmem.connect(embedded_url, embedder="none", pool_size=2) as mem:
        mem.maintain()
    assert log_of(server) <= 16 << 20
