"""How long the product waits for a thread, a process or a server, where a test is about something else.

A full machine may give one of them no processor for ten seconds. The product then goes on without it, as it should: a
leg is degraded, another process answers, a writer gives up. A test of such a time sets its own, shorter one.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from semmem.model.recipe import Recipe
from semmem.read.rankings import Asking
from semmem.stores.postgres import connection as postgres
from semmem.stores.sqlite import connection as sqlite
from semmem.write import access, ingest

__all__ = ["PATIENCE_S", "be_patient"]

PATIENCE_S = 60.0

_SHORTEST_USUAL_S = 5.0
"""The shortest time limit of a leg by default; a shorter one is that of a test."""


class _Limits(dict[str, float]):
    """The time limits of legs, of which those that a test has not shortened are as long as its patience."""

    def get(self, leg: str, usual: float = _SHORTEST_USUAL_S) -> float:  # type: ignore[override]
        own = super().get(leg, usual)
        return own if own < _SHORTEST_USUAL_S else max(own, PATIENCE_S)


def be_patient() -> None:
    """Let this process wait longer than its users want to."""
    answers, once = Asking.answers, Asking.once

    def patient_answers(self: Asking, begun: Any, recipe: Recipe, *more: Any) -> Any:
        return answers(self, begun, _patient(recipe), *more)

    def patient_once(self: Asking, name: str, work: Callable[[], Any], recipe: Recipe, *more: Any) -> Any:
        return once(self, name, work, _patient(recipe), *more)

    Asking.answers, Asking.once = patient_answers, patient_once  # type: ignore[method-assign]
    postgres._CANCEL_S = sqlite._BUSY_S = access._PATIENCE_S = ingest._PATIENCE_S = PATIENCE_S


def _patient(recipe: Recipe) -> Any:
    """Return of a recipe what is read of it while legs are waited for."""
    return SimpleNamespace(timeouts=_Limits(recipe.timeouts))
