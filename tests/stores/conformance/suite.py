"""What every store does, whatever it is made of: a class of tests over a ``store`` fixture that a subclass gives.

Memories are written through the write pipeline with vectors of three dimensions, so that every number can be worked out
by hand.
"""

from __future__ import annotations

import pytest

from semmem.model.store import Store
from tests.stores.conformance.life import Life
from tests.stores.conformance.recall_log import Log
from tests.stores.conformance.recalling import Recalling
from tests.stores.conformance.remembering import Remembering
from tests.stores.conformance.upkeep import Upkeep
from tests.stores.conformance.vectors import Vectors
from tests.stores.conformance.walls import Walls

__all__ = ["StoreConformance"]


class StoreConformance(Remembering, Walls, Recalling, Vectors, Upkeep, Life, Log):
    """Subclass it, and give a fixture ``store``: an empty store.

    A test marked ``needs("dense")`` is skipped where the store does not declare that capability.
    """

    @pytest.fixture(autouse=True)
    def _declared(self, request: pytest.FixtureRequest, store: Store) -> None:
        for mark in request.node.iter_markers("needs"):
            if mark.args[0] not in store.capabilities:
                pytest.skip(f"a {store.kind} store does not declare the capability {mark.args[0]!r}")
