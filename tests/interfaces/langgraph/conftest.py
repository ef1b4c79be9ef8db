"""What the tests of LangGraph's store share: one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from semmem.interfaces.langgraph import SemmemStore


@pytest.fixture
def items() -> Iterator[SemmemStore]:
    from semmem.interfaces.langgraph import SemmemStore  # only where the package is installed

    with SemmemStore.from_conn_string("sqlite::memory:", embedder="none", recipe="lexical") as opened:
        opened.setup()
        yield opened
