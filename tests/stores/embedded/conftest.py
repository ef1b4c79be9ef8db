"""A server of a test's own in a data folder that is made once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.embedded.clients import query


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with an initialised, stopped server."""
    data = tmp_path_factory.mktemp("made") / "data"
    server = EmbeddedServer(data, idle_stop_s=0)
    server.ensure_running()
    server.stop()
    yield data
    shutil.rmtree(data)


@pytest.fixture
def own(made: Path) -> Iterator[EmbeddedServer]:
    """A server that no other test uses at the same time, not yet started."""
    server = EmbeddedServer(made, idle_stop_s=60)
    yield server
    server.stop()


@pytest.fixture
def table(own: EmbeddedServer) -> Iterator[str]:
    """The name of a table that does not exist yet and will be dropped."""
    yield "t"
    query(own, "DROP TABLE t")
