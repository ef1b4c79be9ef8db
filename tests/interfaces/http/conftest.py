"""One server for the tests of this folder, and for each of them a store of its own in memory."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.limits import Rates
from semmem.interfaces.http.metrics import Metrics
from semmem.interfaces.http.sent_once import AtWork
from semmem.interfaces.http.server import Server
from tests.serving import running


@pytest.fixture
def mem() -> Iterator[Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        yield mem


@pytest.fixture(scope="session")
def http_server() -> Iterator[Server]:
    with semmem.connect("sqlite::memory:", embedder="none") as mem, running(mem) as server:
        yield server


@pytest.fixture
def http(mem: Semmem, http_server: Server) -> Iterator[httpx.Client]:
    """A client that speaks plain HTTP with a server of ``mem``, which knows nothing of other tests."""
    http_server.service.mem = mem
    http_server.service.at_work, http_server.service.metrics = AtWork(), Metrics(mem)
    http_server.service.rates = Rates(0.0, 1)
    with httpx.Client(base_url=http_server.url, timeout=60.0, trust_env=False) as client:
        yield client
