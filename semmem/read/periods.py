"""The prior by period: a memory counts less where it was not created in a period that the question names. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from semmem.model.question import Period, Question
from semmem.model.recipe import Recipe

__all__ = ["created_in", "used_by", "with_periods"]

K = TypeVar("K")


def created_in(periods: Sequence[Period], times: Mapping[K, float]) -> dict[K, bool]:
    """Return which of ``times``, in seconds since 1970, lie in one of ``periods``; all of them where there is none."""
    bounds = [period.bounds for period in periods]
    return {key: not bounds or any(start <= at < end for start, end in bounds) for key, at in times.items()}


def with_periods(question: Question, now: datetime | None) -> Question:
    """Return the question with the periods that it names.

    ``now`` is when it was asked, by default the present in the local time of this process.
    """
    from semmem.text.periods import periods_of

    return replace(question, periods=periods_of(question.query, datetime.now() if now is None else now))


def used_by(recipe: Recipe, question: Question) -> Recipe:
    """Return ``recipe`` without the prior by period if the question names none: then there is nothing to multiply."""
    return recipe if recipe.period_floor is None or question.periods else replace(recipe, period_floor=None)
