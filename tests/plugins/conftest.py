"""A database for all tests of one module, where they only ask, or clean up what they store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from urllib.parse import quote

import psycopg
import pytest

from semmem.stores.embedded.server import EmbeddedServer

_numbers = count(1)


@pytest.fixture(scope="module")
def module_store(server: EmbeddedServer, _template: str) -> Iterator[Callable[[], str]]:
    """Return a function that makes an empty, migrated database and gives its URL; all go when the module is done."""
    made = []
    socket = quote(str(server.status().socket), safe="")
    with psycopg.connect(server.ensure_running(), autocommit=True) as admin:

        def make() -> str:
            made.append(f"module_{next(_numbers)}")
            admin.execute(f"CREATE DATABASE {made[-1]} TEMPLATE {_template} STRATEGY file_copy")
            return f"postgresql://semmem@/{made[-1]}?host={socket}"

        yield make
        for name in made:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
