"""Three connections on one store, and a namespace of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.stores.resident.trio import Trio, new_space, opened


@pytest.fixture(scope="module")
def trio(module_url: str) -> Iterator[Trio]:
    with ExitStack() as stack:
        yield opened(stack, module_url)


@pytest.fixture
def space() -> str:
    return new_space()
