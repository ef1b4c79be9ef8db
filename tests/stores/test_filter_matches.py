"""What filters match is kept within a budget, and what was asked longest ago makes room."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from semmem.model.types import Filters
from semmem.stores import filter_matches
from semmem.stores.filter_matches import FilterMatches, Known

HALF = Filters(tags=("half",))


@pytest.fixture(autouse=True)
def _keep_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_matches, "_LEAST", 1)


def state(name: str, *row_ids: int) -> Known:
    return Known(name, 1, np.array(row_ids, dtype=np.int64))


def test_what_was_asked_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_matches, "_ENTRY", 0)
    kept = FilterMatches(budget=40)  # five row ids of eight bytes
    one, other = Filters(tags=("one",)), Filters(tags=("other",))
    kept.keep(one, {"a": state("s", 1, 2, 3)})
    kept.keep(other, {"a": state("s", 4, 5)})
    kept.keep(one, {"a": state("s", 1, 2, 3)})
    kept.keep(other, {"b": state("s", 6, 7)})
    assert kept.of(["a"], other)["a"].place is None
    assert kept.of(["a"], one)["a"].row_ids.tolist() == [1, 2, 3]
    assert kept.of(["b", "a"], other)["b"].row_ids.tolist() == [6, 7]
    kept.keep(one, {"a": state("t", *range(6))})  # more than there is room for, and the older state is gone
    assert kept.of(["a"], one)["a"].place is None
    assert kept.of(["b"], other)["b"].row_ids.tolist() == [6, 7]


def test_many_filters_that_admit_little_fit_the_budget_as_well() -> None:
    kept = FilterMatches(budget=3_000)
    long = [Filters(sessions=tuple(f"session {n} {m}" for m in range(1_000))) for n in range(20)]
    for filters in long:
        kept.keep(filters, {"a": state("s", 1, 2)})
    assert sum(kept.of(["a"], filters)["a"].place is not None for filters in long) == 5  # of 516 bytes each
    keys = [key for _, key in kept._entries]
    assert [len(key) for key in keys] == [16] * 5


def test_few_row_ids_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_matches, "_LEAST", 3)
    kept = FilterMatches(budget=1_000)
    kept.keep(HALF, {"few": state("s", 1, 2), "many": state("s", 1, 2, 3)})
    assert [known.place for known in kept.of(["few", "many"], HALF).values()] == [None, "s"]


def test_times_at_the_ends_of_the_calendar_are_told_apart() -> None:
    kept = FilterMatches(budget=10_000)
    west, east = (timezone(timedelta(hours=hours)) for hours in (-5, 5))
    bounds = [
        Filters(created_before=datetime.max.replace(tzinfo=west)),
        Filters(created_before=datetime.max.replace(tzinfo=east)),
        Filters(created_after=datetime.min.replace(tzinfo=east)),
        Filters(created_after=datetime.min.replace(tzinfo=west)),
    ]
    for number, filters in enumerate(bounds):
        kept.keep(filters, {"a": state("s", number)})
    assert [kept.of(["a"], filters)["a"].row_ids.tolist() for filters in bounds] == [[0], [1], [2], [3]]
