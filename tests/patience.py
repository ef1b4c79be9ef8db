"""How long the product waits for a thread, a process or a server, where a test is about something else.

A full machine may give one of them no processor for ten seconds. The product then goes on without it, as it should: a
leg is degraded, another process answers, a writer gives up. A test of such a time sets its own, shorter one.
"""

from __future__ import annotations

from semmem.model.recipe import Recipe
from semmem.read import rankings
from semmem.stores.postgres import connection as postgres
from semmem.stores.sqlite import connection as sqlite
from semmem.write import access, ingest

__all__ = ["PATIENCE_S", "be_patient"]

PATIENCE_S = 60.0

_SHORTEST_USUAL_S = 5.0
"""The shortest limit that a recipe has by default; a shorter one is that of a test."""


def be_patient() -> None:
    """Let this process wait longer than its users want to."""
    limit = rankings._limit

    def patient(recipe: Recipe, leg: str) -> float:
        own = limit(recipe, leg)
        return own if own < _SHORTEST_USUAL_S else max(own, PATIENCE_S)

    rankings._limit = patient
    postgres._CANCEL_S = sqlite._BUSY_S = access._PATIENCE_S = ingest._PATIENCE_S = PATIENCE_S
