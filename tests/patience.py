"""How long the product waits for a thread, a process or a server, where a test is about something else.

A full machine may give one of them no processor for ten seconds. The product then goes on without it, as it should: a
leg is degraded, another process answers, a writer gives up. A test of such a time sets its own, shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from semmem.model.recipe import Recipe
from semmem.read.rankings import Asking
from semmem.stores import kept_answers
from semmem.stores.postgres import connection as postgres
from semmem.stores.postgres.moving import copy
from semmem.stores.sqlite import connection as sqlite
from semmem.write import access, ingest

__all__ = ["PATIENCE_S", "be_patient"]

PATIENCE_S = 60.0

_SHORTEST_USUAL_S = 5.0
"""The shortest time limit of a leg by default; a shorter one is that of a test."""


class _Limits:
    """The time limits of legs, of which those that a test has not shortened are as long as its patience."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._limits = limits

    def get(self, leg: str, usual: float) -> float:
        own = self._limits.get(leg, usual)
        return own if own < _SHORTEST_USUAL_S else max(own, PATIENCE_S)


def be_patient() -> None:
    """Let this process wait longer than its users want to."""
    answers, once = Asking.answers, Asking.once

    def patient_answers(self: Asking, begun: Any, recipe: Recipe, *more: Any) -> Any:
        return answers(self, begun, _patient(recipe), *more)

    def patient_once(self: Asking, name: str, work: Callable[[], Any], recipe: Recipe, *more: Any) -> Any:
        return once(self, name, work, _patient(recipe), *more)

    patch = pytest.MonkeyPatch()
    patch.setattr(Asking, "answers", patient_answers)
    patch.setattr(Asking, "once", patient_once)
    postgres._CANCEL_S = sqlite._BUSY_S = access._PATIENCE_S = ingest._PATIENCE_S = PATIENCE_S
    copy._PATIENCE_S = kept_answers._PATIENCE_S = PATIENCE_S


def _patient(recipe: Recipe) -> Any:
    """Return of a recipe what is read of it while legs are waited for."""
    return SimpleNamespace(timeouts=_Limits(recipe.timeouts))
