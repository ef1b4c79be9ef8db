"""Conditions on metadata, in the two ways they are written."""

from __future__ import annotations

from typing import Any

import pytest

from semmem.model.errors import InvalidInput
from semmem.model.metadata_filters import contained, holds

VALUES = {"kind": "note", "page": 3, "tags": ["a", "b"], "deep": {"x": 1, "y": 2}, "nothing": None}


@pytest.mark.parametrize(
    ("conditions", "met"),
    [
        ({}, True),
        ({"kind": "note"}, True),
        ({"kind": "memo"}, False),
        ({"absent": "x"}, False),
        ({"absent": None}, False),
        ({"nothing": None}, True),
        ({"page": {"gt": 2, "lte": 3}}, True),
        ({"page": {"gt": 3}}, False),
        ({"page": {"gt": "2"}}, False),
        ({"page": {"gte": True}}, False),
        ({"absent": {"lt": 5}}, False),
        ({"absent": {"ne": 5}}, True),
        ({"kind": {"in": ["note", "memo"]}}, True),
        ({"kind": {"nin": ["note"]}}, False),
        ({"kind": {"contains": "ot"}}, True),
        ({"kind": {"icontains": "NOTE"}}, True),
        ({"tags": {"contains": "a"}}, True),
        ({"tags": ["a", "b"]}, True),
        ({"kind": "*"}, True),
        ({"absent": "*"}, False),
        ({"deep": {"x": 1}}, True),
        ({"deep": {"x": 2}}, False),
        ({"AND": [{"kind": "note"}, {"page": {"lt": 4}}]}, True),
        ({"OR": [{"kind": "memo"}, {"page": 3}]}, True),
        ({"OR": [{"kind": "memo"}, {"page": 4}]}, False),
        ({"NOT": [{"kind": "memo"}]}, True),
        ({"NOT": [{"kind": "note"}]}, False),
    ],
)
def test_a_condition_is_met_or_not(conditions: dict[str, Any], met: bool) -> None:
    assert holds(conditions, VALUES) is met


@pytest.mark.parametrize(
    ("conditions", "met"),
    [
        ({"page": {"$gt": 2}}, True),
        ({"page": {"$gt": 2, "$lt": 3}}, False),
        ({"page": {"$eq": 3}}, True),
        ({"page": {"$ne": 3}}, False),
        ({"kind": "*"}, False),
        ({"deep": {"y": 2}}, True),
        ({"deep.y": 2}, True),
        ({"deep.z": 2}, False),
        ({"kind.z": 2}, False),
    ],
)
def test_langgraph_writes_a_dollar_before_the_operator(conditions: dict[str, Any], met: bool) -> None:
    assert holds(conditions, VALUES, sign="$") is met


def test_the_store_is_given_what_metadata_must_contain() -> None:
    conditions = {"kind": "note", "page": {"gt": 2}, "absent": "*", "OR": [{"a": 1}], "deep": {"x": 1}}
    assert contained(conditions) == {"kind": "note", "deep": {"x": 1}}
    assert contained({"page": {"$gt": 2}, "kind": "note", "deep.x": 1}, sign="$") == {"kind": "note"}
    assert contained({"kind": "a\0b", "page": 3}) == {"page": 3}  # no store holds a NUL, and none is found


@pytest.mark.parametrize(
    ("conditions", "sign", "sentence"),
    [
        ({"page": {"gt": 2, "like": 3}}, "", "no operator 'like'"),
        ({"page": {"$like": 3}}, "$", "no operator 'like'"),
        ({"page": {"in": 3}}, "", "in takes a list, not 3"),
        ({"OR": {"a": 1}}, "", "OR takes a list of conditions"),
    ],
)
def test_what_is_no_condition_is_refused(conditions: dict[str, Any], sign: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        holds(conditions, VALUES, sign=sign)
