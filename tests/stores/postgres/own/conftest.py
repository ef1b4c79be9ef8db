"""A server with TCP and SCRAM passwords for the tests of this folder, and an empty database of an ordinary user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from semmem.client.memory import Semmem
from tests.stores.postgres import own_server
from tests.stores.postgres.own.opening import NOTE, connect
from tests.stores.postgres.own_server import Own


@pytest.fixture(scope="package")
def own() -> Iterator[Own]:
    """The server of these tests."""
    server = own_server.make()
    yield server
    own_server.unmake(server)


@pytest.fixture
def url(own: Own) -> str:
    """The URL of an empty database of the ordinary user ada."""
    return own.url(own.database(), "ada")


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    """An open store on the server, with one memory."""
    with connect(url) as mem:
        mem.remember(NOTE, id="key")
        yield mem
