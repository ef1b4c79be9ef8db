"""Open a store on a server of one's own, name its database, and check that nothing is stored in part."""

from __future__ import annotations

from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import StoreError
from tests.stores.audit import check
from tests.stores.postgres.own_server import PASSWORD, Own

NOTE = "Ada Lovelace keeps the key behind the radio."


def connect(url: str, **options: Any) -> Semmem:
    return semmem.connect(url, embedder="hashing", **options)


def refused(url: str) -> str:
    """Return the sentence with which a store is not opened; the password is nowhere in it."""
    with pytest.raises(StoreError) as caught:
        connect(url)
    sentence = str(caught.value)
    assert PASSWORD not in sentence
    assert "\n" not in sentence
    return sentence


def database(url: str) -> str:
    return url.rpartition("/")[2]


def whole(own: Own, url: str) -> None:
    """Check that nothing is stored in part."""
    check(own.url(database(url)))
