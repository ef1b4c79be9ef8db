"""A leg that a store cannot answer: known by name, and degraded with the reason whenever a recipe calls it."""

from __future__ import annotations

from typing import NoReturn

from semmem.errors import LegFailed
from semmem.records import Question, Scope
from semmem.search_settings import Recipe

__all__ = ["Absent"]


class Absent:
    """Stands for a leg whose capability the store does not declare."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def search(self, question: Question, scope: Scope, recipe: Recipe) -> NoReturn:
        """Raise LegFailed with the reason."""
        raise LegFailed(self.reason)
