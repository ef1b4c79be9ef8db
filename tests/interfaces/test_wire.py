"""The one table of errors, and values as plain JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest

from semmem.interfaces import wire
from semmem.interfaces.http.problems import headers_of, status_of
from semmem.model import errors
from semmem.model.serialization import plain
from semmem.model.types import Memory, Page

ALL = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize(
    ("kind", "exit_code", "http_status"),
    [
        (errors.InvalidInput, 2, 422),
        (errors.UnknownRecipe, 2, 422),  # by its parent InvalidInput
        (errors.BadItem, 2, 422),
        (errors.NotFound, 4, 404),
        (errors.Conflict, 5, 409),
        (errors.EmbedderMismatch, 6, 409),
        (errors.EmbedderUnavailable, 7, 503),
        (errors.MissingExtra, 7, 501),
        (errors.StoreUnavailable, 8, 503),
        (errors.SchemaTooNew, 8, 503),
        (errors.SchemaTooOld, 8, 503),
        (errors.SemmemError, 1, 500),
        (RuntimeError, 1, 500),
    ],
)
def test_an_error_is_told_by_its_class_or_its_nearest_parent(
    kind: type[Exception], exit_code: int, http_status: int
) -> None:
    told = wire.answer(kind("why"))
    assert (told.exit_code, told.http_status) == (exit_code, http_status)


@pytest.mark.parametrize("kind", ALL)
def test_no_error_takes_an_exit_code_that_means_something_else(kind: type[Exception]) -> None:
    assert wire.answer(kind("why")).exit_code not in (0, wire.EXIT_REACH, wire.EXIT_INTERRUPTED)


def test_every_direct_child_of_the_error_tree_has_a_row_of_its_own() -> None:
    direct = {kind for kind in ALL if errors.SemmemError in kind.__bases__}
    assert direct <= set(wire.ERRORS)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Pair:
    left: int
    _hidden: int = 9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Fraction(7, 20), 0.35),
        (datetime(2026, 3, 1, 9, tzinfo=UTC), "2026-03-01T09:00:00+00:00"),
        (timedelta(minutes=2), 120.0),
        (Colour.RED, "red"),
        (Pair(1), {"left": 1}),
        (MappingProxyType({1: (Fraction(1, 4),)}), {"1": [0.25]}),
        (frozenset({"b", "a"}), ["a", "b"]),
        (np.float32(0.5), 0.5),
        (Page((), "next"), {"memories": [], "cursor": "next"}),
        (None, None),
        (True, True),
    ],
)
def test_a_value_becomes_what_json_knows(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_a_memory_survives_the_way_through_json() -> None:
    memory = Memory("a", "demo", "Petra lives in Norrbeck.", tags=("x",), created_at=datetime(2026, 1, 2, tzinfo=UTC))
    back = json.loads(json.dumps(plain(memory)))
    assert back["created_at"] == "2026-01-02T00:00:00+00:00"
    assert (back["id"], back["tags"], back["title"]) == ("a", ["x"], None)


def test_an_error_may_have_its_own_status_and_says_when_to_come_again() -> None:
    error = errors.LimitExceeded("Too many requests.")
    assert (status_of(error), headers_of(error)) == (429, {"retry-after": "1"})
    error.http_status, error.retry_after = 409, 2.5
    assert (status_of(error), headers_of(error)) == (409, {"retry-after": "3"})
    assert (errors.LimitExceeded().http_status, errors.LimitExceeded().retry_after) == (None, None)
