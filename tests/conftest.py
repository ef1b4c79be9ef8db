"""One embedded server for the whole run, in a folder of its own, and a fresh migrated database for every test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import settings

from semmem.stores.embedded import EmbeddedServer
from semmem.stores.migrate import migrate

# A busy machine is no failure. In CI, where a red run lands nothing, the examples are the same every time.
settings.register_profile("people", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "people")

_TEMPLATE = "semmem_template"
_numbers = count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """The server that the tests share. If the run is killed, it stops by itself when idle."""
    server = EmbeddedServer(tmp_path_factory.mktemp("server") / "data", idle_stop_s=300)
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        # A database for each test means checkpoints for each test; they need not survive the machine.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    server.stop("immediate")
    shutil.rmtree(server.data)


@pytest.fixture(scope="session")
def _template(server: EmbeddedServer) -> str:
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
    migrate(_url(server, _TEMPLATE))
    return _TEMPLATE


@pytest.fixture
def store_url(server: EmbeddedServer, _template: str) -> Iterator[str]:
    """The postgresql:// URL of an empty, migrated database that no other test sees."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {_template} STRATEGY file_copy")
    yield _url(server, name)
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _url(server: EmbeddedServer, database: str) -> str:
    where: Path | None = server.status().socket
    assert where is not None
    return f"postgresql://semmem@/{database}?host={quote(str(where), safe='')}"
