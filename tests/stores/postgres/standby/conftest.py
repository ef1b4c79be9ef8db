"""A server of one's own with a streaming standby, and a store on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from semmem.stores.postgres import standby as reading
from tests.stores.postgres import own_server
from tests.stores.postgres.own_server import Own
from tests.stores.postgres.standby.standing_by import catch_up, resume, standby_of


@pytest.fixture(scope="package")
def own() -> Iterator[Own]:
    """The primary."""
    server = own_server.make()
    server.sql("ALTER SYSTEM SET wal_keep_size = '256MB'")  # for a standby that was down meanwhile
    server.sql("SELECT pg_reload_conf()")
    yield server
    own_server.unmake(server)


@pytest.fixture(scope="package")
def standby(own: Own) -> Iterator[Own]:
    """A standby that streams the log of the primary."""
    server = standby_of(own)
    yield server
    own_server.unmake(server)


@pytest.fixture(autouse=True)
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the primary where its log ends only where a test says so, however long the machine takes for the rest."""
    monkeypatch.setattr(reading, "_TRUST_S", 3_600.0)


@pytest.fixture
def url(own: Own, standby: Own) -> Iterator[str]:
    """The URL of an empty database of the ordinary user ada, on the primary, which the standby has, too."""
    database = own.database()
    catch_up(own, standby)
    yield own.url(database, "ada")
    resume(standby)
